"""The cluster's graph: one server's graph repeated, with every cable of every plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.errors import InternalError, UserError
from eastwest.fabric.build import Wiring, build_fabric, port_nodes
from eastwest.fabric.distance import crossing
from eastwest.fabric.graph import Fabric, Ints, Network, NodeKind
from eastwest.fabric.laws import check_plan
from eastwest.fabric.lookup import gpu_table, port_table
from eastwest.fabric.plan import SERVER, TARGET, Demand, Plan, SwitchPorts
from eastwest.fabric.topology import TOPOLOGIES, star

NVLINK_Bps, PCIE_Bps, NDR_Bps, GIGABIT_Bps = 450e9, 64e9, 50e9, 0.125e9


@dataclass(frozen=True)
class TinyServer:
    """GPUs on one NVSwitch, each with its NIC; a root with two storage NICs and a BMC."""

    fabric: Fabric
    gpu: Ints
    nic: Ints
    storage_nic: Ints
    bmc: Ints


def ints(values: list[int]) -> Ints:
    return np.array(values, np.int32)


def tiny_server(gpus: int) -> TinyServer:
    gpu, nic = list(range(gpus)), list(range(gpus, 2 * gpus))
    nvswitch, root, storage, bmc = (
        2 * gpus,
        2 * gpus + 1,
        [2 * gpus + 2, 2 * gpus + 3],
        2 * gpus + 4,
    )
    pairs = [(g, nvswitch, NVLINK_Bps) for g in gpu] + [
        (g, n, PCIE_Bps) for g, n in zip(gpu, nic, strict=True)
    ]
    pairs += [(end, root, PCIE_Bps) for end in (*nic, *storage, bmc)]
    kinds = [NodeKind.GPU] * gpus + [NodeKind.NIC] * gpus
    kinds += [NodeKind.NVSWITCH, NodeKind.ROOT, NodeKind.NIC, NodeKind.NIC, NodeKind.BMC]
    nodes, links = len(kinds), 2 * len(pairs)
    fabric = Fabric(
        node_kind=ints([int(k) for k in kinds]),
        node_server=np.zeros(nodes, np.int32),
        node_index=ints([*gpu, *gpu, 0, 0, 0, 1, 0]),
        node_tier=np.zeros(nodes, np.int32),
        node_network=np.zeros(nodes, np.int32),
        node_plane=ints([*[-1] * gpus, *gpu, -1, -1, 0, 1, -1]),
        node_latency_s=np.zeros(nodes),
        node_part=np.full(nodes, -1, np.int32),
        link_source=ints([end for a, b, _ in pairs for end in (a, b)]),
        link_target=ints([end for a, b, _ in pairs for end in (b, a)]),
        link_rate_Bps=np.array([rate for _, _, rate in pairs for _ in range(2)]),
        link_latency_s=np.full(links, 1e-7),
        link_tier=np.zeros(links, np.int32),
        link_network=np.zeros(links, np.int32),
        link_port=np.zeros(links, np.int32),
        link_cable=np.full(links, -1, np.int32),
    )
    fabric.check()
    return TinyServer(fabric, ints(gpu), ints(nic), ints(storage), ints([bmc]))


def planned(name: str, demand: Demand, radix: int, port_Bps: float = NDR_Bps) -> Plan:
    topology = TOPOLOGIES[name]
    return topology.plan(topology.Params(), demand, SwitchPorts("sw", radix, port_Bps), "")


def wiring(network: Network, plan: Plan, first_s: float, targets: int = 0) -> Wiring:
    """Cables of class i take ``first_s`` times i + 1, switches of role i ten times that."""
    links = tuple(first_s * (i + 1) for i in range(len(plan.links)))
    roles = tuple(10 * first_s * (i + 1) for i in range(len(plan.roles)))
    return Wiring(network, plan, links, roles, targets)


def three_networks(name: str, servers: int, gpus: int, planes: int, radix: int) -> list[Wiring]:
    compute = planned(name, Demand(servers, gpus, planes), radix)
    storage = planned("fat-tree", Demand(servers, 2, 1, 8), radix, NDR_Bps / 2)
    star_params = star.Params(uplink_rate="100Gb/s")
    switch = SwitchPorts("sn2201", 48, GIGABIT_Bps)
    management = star.plan(star_params, Demand(servers, 1, 1, 5), switch, "")
    return [
        wiring(Network.COMPUTE, compute, 1e-7),
        wiring(Network.STORAGE, storage, 4e-7, targets=4),
        wiring(Network.MANAGEMENT, management, 1e-8),
    ]


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(list(TOPOLOGIES)),
    st.integers(1, 60),
    st.integers(1, 4),
    st.integers(1, 2),
    st.integers(8, 16),
)
def test_nodes_and_links_are_those_of_the_server_and_the_plans(
    name: str, servers: int, gpus: int, planes: int, radix: int
) -> None:
    server = tiny_server(gpus)
    try:
        networks = three_networks(name, servers, gpus, planes, radix)
    except UserError:
        return
    fabric = build_fabric(server, servers, networks)
    fabric.check()
    switches = sum(role.count for w in networks for role in w.plan.roles)
    assert fabric.nodes == servers * server.fabric.nodes + switches + 4
    assert np.count_nonzero(fabric.node_kind == NodeKind.SWITCH) == switches
    assert len(fabric.of_kind(NodeKind.GPU)) == servers * gpus
    for wired in networks:
        own = fabric.link_network == wired.network
        for number, links in enumerate(wired.plan.links):
            count = links.count if links.lower != TARGET or wired.targets else 0
            assert np.count_nonzero(own & (fabric.link_tier == number + 1)) == 2 * count
    assert np.count_nonzero(fabric.link_tier == 0) == servers * server.fabric.links


def test_every_cable_joins_the_nodes_that_a_loop_over_the_plan_joins() -> None:
    servers, gpus = 40, 2
    server = tiny_server(gpus)
    networks = three_networks("rail-optimised", servers, gpus, 2, 8)
    fabric = build_fabric(server, servers, networks)
    found = set(zip(fabric.link_source.tolist(), fabric.link_target.tolist(), strict=True))
    expected = set()
    for s in range(servers):
        for a, b in zip(
            server.fabric.link_source.tolist(), server.fabric.link_target.tolist(), strict=True
        ):
            expected.add((s * server.fabric.nodes + a, s * server.fabric.nodes + b))
    first = servers * server.fabric.nodes
    for wired in networks:
        plan, demand, starts = wired.plan, wired.plan.demand, [first]
        own = port_nodes(server, wired.network).tolist()
        for role in plan.roles:
            starts.append(starts[-1] + role.count)
        for links in plan.links:
            for low, high in links.ends.tolist():
                if links.lower == SERVER:
                    nic = low // demand.planes
                    lower = nic // demand.rails * server.fabric.nodes + own[nic % demand.rails]
                elif links.lower == TARGET:
                    if not wired.targets:
                        continue
                    lower = starts[-1] + low // (demand.target_ports // wired.targets)
                else:
                    lower = starts[plan.role(links.lower)] + low
                upper = starts[plan.role(links.upper)] + high
                expected |= {(lower, upper), (upper, lower)}
        first = starts[-1] + wired.targets
    assert found == expected


def test_rates_latencies_and_kinds_follow_network_and_tier() -> None:
    servers = 40
    fabric = build_fabric(tiny_server(2), servers, three_networks("fat-tree", servers, 2, 1, 8))
    for network, tier, rate, latency in (
        (Network.COMPUTE, 1, NDR_Bps, 1e-7),
        (Network.COMPUTE, 3, NDR_Bps, 3e-7),
        (Network.STORAGE, 1, NDR_Bps / 2, 4e-7),
        (Network.STORAGE, 2, NDR_Bps / 2, 8e-7),
        (Network.MANAGEMENT, 1, GIGABIT_Bps, 1e-8),
        (Network.MANAGEMENT, 2, 100 * GIGABIT_Bps, 2e-8),
    ):
        links = (fabric.link_network == network) & (fabric.link_tier == tier)
        assert links.any()
        assert np.all(fabric.link_rate_Bps[links] == rate)
        assert np.all(fabric.link_latency_s[links] == latency)
        switches = (fabric.node_network == network) & (fabric.node_tier == tier)
        assert np.all(fabric.node_latency_s[switches] == 10 * latency)
    inside = fabric.node_kind != NodeKind.SWITCH
    assert np.all(fabric.node_latency_s[inside] == 0)
    assert np.all(fabric.node_part[inside] == -1)
    bought = ~inside & (fabric.node_network == Network.COMPUTE)
    assert {fabric.parts[i] for i in fabric.node_part[bought]} == {"sw"}
    targets = fabric.of_kind(NodeKind.TARGET)
    assert np.all(fabric.node_network[targets] == Network.STORAGE)
    assert fabric.node_index[targets].tolist() == [0, 1, 2, 3]


def test_a_cable_may_have_its_own_latency_in_both_directions() -> None:
    plan = planned("fat-tree", Demand(4, 2), 8)
    latency = np.linspace(1e-9, 8e-9, 8)
    fabric = build_fabric(tiny_server(2), 4, [Wiring(Network.COMPUTE, plan, (latency,), (0.0,))])
    outside = fabric.link_network == Network.COMPUTE
    assert fabric.link_latency_s[outside].tolist() == np.repeat(latency, 2).tolist()


@pytest.mark.parametrize(
    ("name", "planes", "served"),
    [("rail-optimised", 1, {0, 1}), ("rail-only", 1, {0, 1}), ("fat-tree", 2, {0, 1})],
)
def test_leaves_know_the_rail_or_else_the_plane_that_they_serve(
    name: str, planes: int, served: set[int]
) -> None:
    plan = planned(name, Demand(40, 2, planes), 8)
    fabric = build_fabric(tiny_server(2), 40, [wiring(Network.COMPUTE, plan, 1e-7)])
    leaves = (fabric.node_kind == NodeKind.SWITCH) & (fabric.node_tier == 1)
    assert set(fabric.node_plane[leaves].tolist()) == served
    if name == "rail-optimised":
        spines = (fabric.node_kind == NodeKind.SWITCH) & (fabric.node_tier == 2)
        assert set(fabric.node_plane[spines].tolist()) == {-1}


def test_a_plan_for_other_ports_than_the_server_has_is_our_fault() -> None:
    plan = planned("fat-tree", Demand(4, 3), 16)
    with pytest.raises(InternalError) as caught:
        build_fabric(tiny_server(2), 4, [wiring(Network.COMPUTE, plan, 1e-7)])
    assert str(caught.value) == "compute network: planned for 4 servers with 3 ports, not 4 with 2"


def test_131_072_gpus_have_every_node_and_link() -> None:
    """16,384 servers of eight; some 0.8 million cables both ways."""
    servers, gpus = 16_384, 8
    server = tiny_server(gpus)
    plan = planned("rail-only", Demand(servers, gpus), 64)
    check_plan(plan)
    fabric = build_fabric(server, servers, [wiring(Network.COMPUTE, plan, 1e-7)])
    assert len(fabric.of_kind(NodeKind.GPU)) == 131_072
    assert len(fabric.of_kind(NodeKind.SWITCH)) == 10_240
    assert fabric.links == servers * server.fabric.links + 2 * 3 * 131_072


def test_links_are_found_by_the_node_that_they_leave_and_reach() -> None:
    fabric = build_fabric(tiny_server(2), 40, three_networks("rail-optimised", 40, 2, 1, 8))
    for near, ends in (
        (fabric.outgoing(), fabric.link_source),
        (fabric.incoming(), fabric.link_target),
    ):
        assert len(near.link) == fabric.links
        for node in (0, 7, fabric.nodes // 2, fabric.nodes - 1):
            assert near.of(node).tolist() == np.flatnonzero(ends == node).tolist()


@pytest.mark.parametrize("planes", [1, 2])
def test_tables_lead_from_gpus_and_ports_to_nodes_and_switches(planes: int) -> None:
    servers, gpus = 40, 2
    server = tiny_server(gpus)
    networks = three_networks("rail-optimised", servers, gpus, planes, 8)
    fabric = build_fabric(server, servers, networks)
    assert gpu_table(fabric).shape == (servers, gpus)
    ports, plan = port_table(fabric, Network.COMPUTE), networks[0].plan
    assert ports.nic.shape == (servers, gpus, planes)
    first = servers * server.fabric.nodes
    assert (ports.switch.reshape(-1) - first).tolist() == plan.attach.ends[:, 1].tolist()
    for s, r in ((0, 0), (17, 1), (39, 0)):
        assert fabric.node_server[ports.nic[s, r, 0]] == s
        assert fabric.node_index[ports.nic[s, r, 0]] == r
    assert np.all(fabric.link_source[ports.link + 1] == ports.switch)
    assert np.all(fabric.link_target[ports.link + 1] == ports.nic)


@settings(deadline=None, max_examples=30)
@given(
    st.sampled_from(list(TOPOLOGIES)),
    st.integers(2, 40),
    st.integers(1, 3),
    st.integers(8, 16),
    st.data(),
)
def test_the_time_of_a_path_is_that_of_what_the_plan_says_it_crosses(
    name: str, servers: int, gpus: int, radix: int, data: st.DataObject
) -> None:
    try:
        wired = wiring(Network.COMPUTE, planned(name, Demand(servers, gpus), radix), 1e-7)
    except UserError:
        return
    fabric = build_fabric(tiny_server(gpus), servers, [wired])
    nic = port_table(fabric, Network.COMPUTE).nic[:, 0, 0]
    a, b = (data.draw(st.integers(0, servers - 1)) for _ in range(2))
    if a == b:
        return
    way = crossing(wired.plan, a * gpus, b * gpus)
    expected = sum(n * s for n, s in zip(way.links, wired.link_s, strict=True))
    expected += sum(n * s for n, s in zip(way.switches, wired.switch_s, strict=True))
    assert _path_s(fabric, int(nic[a]), int(nic[b])) == pytest.approx(expected, abs=1e-15)


def _path_s(fabric: Fabric, source: int, target: int) -> float:
    """The time of a path with the fewest links outside of servers, by breadth-first search."""
    near, took, front = fabric.outgoing(), {source: 0.0}, [source]
    while target not in took:
        after = []
        for node in front:
            for link in near.of(node).tolist():
                there = int(fabric.link_target[link])
                if fabric.link_network[link] == Network.INSIDE or there in took:
                    continue
                node_s = float(fabric.node_latency_s[there]) if there != target else 0.0
                took[there] = took[node] + float(fabric.link_latency_s[link]) + node_s
                after.append(there)
        front = after
    return took[target]
