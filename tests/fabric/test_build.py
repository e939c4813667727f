"""The cluster's graph: one server's graph repeated, with every cable of every plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.errors import InternalError, UserError
from eastwest.fabric.build import Wiring, build_fabric, port_nodes
from eastwest.fabric.graph import Fabric, Ints, Network, NodeKind
from eastwest.fabric.topology import TOPOLOGIES, Demand, Plan, SwitchPorts, star

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
        link_source=ints([end for a, b, _ in pairs for end in (a, b)]),
        link_target=ints([end for a, b, _ in pairs for end in (b, a)]),
        link_rate_Bps=np.array([rate for _, _, rate in pairs for _ in range(2)]),
        link_latency_s=np.full(links, 1e-7),
        link_tier=np.zeros(links, np.int32),
        link_network=np.zeros(links, np.int32),
    )
    fabric.check()
    return TinyServer(fabric, ints(gpu), ints(nic), ints(storage), ints([bmc]))


def planned(name: str, demand: Demand, radix: int) -> Plan:
    topology = TOPOLOGIES[name]
    return topology.plan(topology.Params(), demand, SwitchPorts("sw", radix), "")


def three_networks(name: str, servers: int, gpus: int, planes: int, radix: int) -> list[Wiring]:
    compute = planned(name, Demand(servers, gpus, planes), radix)
    storage = planned("fat-tree", Demand(servers, 2, 1, 8), radix)
    management = star.plan(star.Params(), Demand(servers, 1, 1, 5), SwitchPorts("sn2201", 48), "")
    return [
        Wiring(Network.COMPUTE, compute, (NDR_Bps,) * 3, (1e-7, 2e-7, 3e-7)),
        Wiring(
            Network.STORAGE, storage, (NDR_Bps / 2, NDR_Bps, NDR_Bps), (4e-7, 5e-7, 6e-7), targets=4
        ),
        Wiring(Network.MANAGEMENT, management, (GIGABIT_Bps, 100 * GIGABIT_Bps), (1e-8, 2e-8)),
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
    switches = sum(tier.switches for w in networks for tier in w.plan.tiers)
    assert fabric.nodes == servers * server.fabric.nodes + switches + 4
    assert np.count_nonzero(fabric.node_kind == NodeKind.SWITCH) == switches
    assert len(fabric.of_kind(NodeKind.GPU)) == servers * gpus
    for wiring in networks:
        plan, own = wiring.plan, fabric.link_network == wiring.network
        for tier, links in enumerate(plan.links):
            targets = len(plan.target_links) if tier == 0 and wiring.targets else 0
            assert np.count_nonzero(own & (fabric.link_tier == tier + 1)) == 2 * (
                len(links) + targets
            )
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
    for wiring in networks:
        demand, tiers = wiring.plan.demand, wiring.plan.tiers
        own = port_nodes(server, wiring.network).tolist()
        starts = [first]
        for tier in tiers:
            starts.append(starts[-1] + tier.switches)
        for tier_number, links in enumerate(wiring.plan.links):
            for low, high in links.tolist():
                if tier_number == 0:
                    nic = low // demand.planes
                    lower = nic // demand.rails * server.fabric.nodes + own[nic % demand.rails]
                else:
                    lower = starts[tier_number - 1] + low
                expected |= {
                    (lower, starts[tier_number] + high),
                    (starts[tier_number] + high, lower),
                }
        if wiring.targets:
            for port, leaf in wiring.plan.target_links.tolist():
                ends = (
                    starts[-1] + port // (demand.target_ports // wiring.targets),
                    starts[0] + leaf,
                )
                expected |= {ends, ends[::-1]}
        first = starts[-1] + wiring.targets
    assert found == expected


def test_rates_latencies_and_kinds_follow_network_and_tier() -> None:
    servers = 40
    fabric = build_fabric(tiny_server(2), servers, three_networks("fat-tree", servers, 2, 1, 8))
    for network, tier, rate, latency in (
        (Network.COMPUTE, 1, NDR_Bps, 1e-7),
        (Network.COMPUTE, 3, NDR_Bps, 3e-7),
        (Network.STORAGE, 1, NDR_Bps / 2, 4e-7),
        (Network.STORAGE, 2, NDR_Bps, 5e-7),
        (Network.MANAGEMENT, 1, GIGABIT_Bps, 1e-8),
        (Network.MANAGEMENT, 2, 100 * GIGABIT_Bps, 2e-8),
    ):
        links = (fabric.link_network == network) & (fabric.link_tier == tier)
        assert links.any()
        assert np.all(fabric.link_rate_Bps[links] == rate)
        assert np.all(fabric.link_latency_s[links] == latency)
    targets = fabric.of_kind(NodeKind.TARGET)
    assert np.all(fabric.node_network[targets] == Network.STORAGE)
    assert fabric.node_index[targets].tolist() == [0, 1, 2, 3]


def test_a_cable_may_have_its_own_latency_in_both_directions() -> None:
    plan = planned("fat-tree", Demand(4, 2), 8)
    latency = np.linspace(1e-9, 8e-9, 8)
    fabric = build_fabric(
        tiny_server(2), 4, [Wiring(Network.COMPUTE, plan, (NDR_Bps,), (latency,))]
    )
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
    fabric = build_fabric(
        tiny_server(2), 40, [Wiring(Network.COMPUTE, plan, (1.0,) * 3, (0.0,) * 3)]
    )
    leaves = (fabric.node_kind == NodeKind.SWITCH) & (fabric.node_tier == 1)
    assert set(fabric.node_plane[leaves].tolist()) == served
    if name == "rail-optimised":
        spines = (fabric.node_kind == NodeKind.SWITCH) & (fabric.node_tier == 2)
        assert set(fabric.node_plane[spines].tolist()) == {-1}


def test_a_plan_for_other_ports_than_the_server_has_is_our_fault() -> None:
    plan = planned("fat-tree", Demand(4, 3), 16)
    with pytest.raises(InternalError) as caught:
        build_fabric(tiny_server(2), 4, [Wiring(Network.COMPUTE, plan, (1.0,), (0.0,))])
    assert str(caught.value) == "compute network: planned for 4 servers with 3 ports, not 4 with 2"


def test_131_072_gpus_have_every_node_and_link() -> None:
    """16,384 servers of eight; some 0.8 million cables both ways."""
    servers, gpus = 16_384, 8
    server = tiny_server(gpus)
    plan = planned("rail-only", Demand(servers, gpus), 64)
    plan.check()
    fabric = build_fabric(
        server, servers, [Wiring(Network.COMPUTE, plan, (NDR_Bps,) * 3, (1e-7,) * 3)]
    )
    assert len(fabric.of_kind(NodeKind.GPU)) == 131_072
    assert len(fabric.of_kind(NodeKind.SWITCH)) == 10_240
    assert fabric.links == servers * server.fabric.links + 2 * 3 * 131_072
