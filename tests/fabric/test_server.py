"""The inside of servers: counts from the catalog, routes, and the loss of a detour that emerges
from shared links."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.catalog.world import draw, nominal
from eastwest.errors import UserError
from eastwest.fabric.graph import Network, NodeKind
from eastwest.fabric.server import (
    Counts,
    LinkClass,
    ServerGraph,
    Structure,
    bottlenecks,
    route,
    server_graph,
    structure,
)

WORLD = nominal()
SERVERS = WORLD.catalog.ids("server")


def x16_Bps(generation: int) -> float:
    return WORLD.number("pcie", f"gen{generation}", "x16_Bps")


def direct(graph: ServerGraph) -> list[tuple[tuple[int, ...], float]]:
    """All GPUs send and receive through their NICs at once, each NIC at weight 1 in each
    direction."""
    flows = []
    for nic in range(len(graph.nic)):
        gpus = graph.structure.gpus_of_nic[nic]
        for gpu in gpus:
            ends = (graph.gpu[gpu], graph.nic[nic])
            flows += [
                (route(graph.structure, *ends), 1 / len(gpus)),
                (route(graph.structure, *reversed(ends)), 1 / len(gpus)),
            ]
    return flows


def staged(graph: ServerGraph) -> list[tuple[tuple[int, ...], float]]:
    """The same through the host memory of each GPU's socket."""
    flows = []
    for nic in range(len(graph.nic)):
        gpus = graph.structure.gpus_of_nic[nic]
        for gpu in gpus:
            memory = graph.dram[graph.socket_of_gpu[gpu]]
            for a, b in ((graph.gpu[gpu], memory), (memory, graph.nic[nic])):
                flows += [
                    (route(graph.structure, a, b), 1 / len(gpus)),
                    (route(graph.structure, b, a), 1 / len(gpus)),
                ]
    return flows


@pytest.mark.parametrize("server", SERVERS)
def test_every_server_of_the_catalog_becomes_a_graph_with_its_counts(server: str) -> None:
    graph = server_graph(WORLD, server)

    def count(attribute: str) -> int:
        return int(WORLD.number("server", server, attribute))

    assert (len(graph.gpu), len(graph.nic), len(graph.storage_nic)) == (
        count("gpus"),
        count("nics"),
        count("storage_nics"),
    )
    assert (len(graph.root), len(graph.dram), len(graph.bmc)) == (
        count("sockets"),
        count("sockets"),
        count("oob_ports"),
    )
    part = count("gpus") / count(
        "scaleup_domain_gpus"
    )  # a tray's graph holds its part of a rack's NVSwitches
    assert (len(graph.nvswitch), len(graph.pcie_switch)) == (
        count("nvswitches") * part,
        count("pcie_switches"),
    )
    kinds = graph.fabric.node_kind
    for nodes, kind in (
        (graph.gpu, NodeKind.GPU),
        (graph.nic, NodeKind.NIC),
        (graph.bmc, NodeKind.BMC),
        (graph.root, NodeKind.ROOT),
        (graph.dram, NodeKind.DRAM),
        (graph.storage_nic, NodeKind.NIC),
        (graph.nvswitch, NodeKind.NVSWITCH),
        (graph.pcie_switch, NodeKind.PCIE_SWITCH),
    ):
        assert np.all(kinds[nodes] == kind)
    assert np.all(graph.fabric.node_network[graph.nic] == Network.COMPUTE)
    assert np.array_equal(graph.fabric.node_plane[graph.nic], np.arange(count("nics")))


@pytest.mark.parametrize("server", SERVERS)
def test_a_route_goes_from_end_to_end_and_never_through_a_gpu_a_nic_or_memory(server: str) -> None:
    graph = server_graph(WORLD, server)
    ends = [*graph.gpu, *graph.nic, *graph.dram]
    closed = {NodeKind.GPU, NodeKind.NIC, NodeKind.DRAM, NodeKind.BMC}
    for a in ends:
        for b in ends:
            links = route(graph.structure, a, b)
            at = a
            for link in links:
                assert graph.fabric.link_source[link] == at
                at = graph.fabric.link_target[link]
            assert at == b
            inner = {
                NodeKind(graph.fabric.node_kind[graph.fabric.link_target[link]])
                for link in links[:-1]
            }
            assert not inner & closed


@pytest.mark.parametrize("server", SERVERS)
def test_every_nic_serves_gpus_and_every_gpu_has_one(server: str) -> None:
    graph = server_graph(WORLD, server)
    served = {gpu for nic in range(len(graph.nic)) for gpu in graph.structure.gpus_of_nic[nic]}
    assert served == set(range(len(graph.gpu)))
    for gpu, nic in enumerate(graph.nic_of_gpu):
        assert gpu in graph.structure.gpus_of_nic[nic]


def test_gpus_of_p4d_share_a_nic_in_pairs_and_those_of_oracle_have_two_nics_each() -> None:
    assert server_graph(WORLD, "aws-p4d").nic_of_gpu == (0, 0, 1, 1, 2, 2, 3, 3)
    assert server_graph(WORLD, "oci-h100").nic_of_gpu == (0, 2, 4, 6, 8, 10, 12, 14)


def test_gpudirect_of_the_dgx_h100_is_bound_by_the_pcie_x16_of_gpu_and_nic_alone() -> None:
    graph = server_graph(WORLD, "dgx-h100")
    assert bottlenecks(graph, direct(graph))[0][1] == pytest.approx(x16_Bps(5))


def test_the_uplink_of_a_dgx_h100_carries_a_staged_byte_four_times_for_two_gpus() -> None:
    graph = server_graph(WORLD, "dgx-h100")
    name, rate = bottlenecks(graph, staged(graph))[0]
    assert name in {
        "PCIe switch 0 uplink, to the root complex",
        "PCIe switch 0 uplink, from the root complex",
    }
    assert rate == pytest.approx(x16_Bps(5) / 4)


def test_host_memory_carries_a_staged_byte_four_times_reads_and_writes_together() -> None:
    graph = server_graph(WORLD, "dgx-h100")
    memory = dict(bottlenecks(graph, staged(graph)))["memory of socket 1"]
    peak = WORLD.number("server", "dgx-h100", "memory_Bps") * WORLD.number(
        "stack", "host", "memory_share"
    )
    assert memory == pytest.approx(peak / (4 * 4))  # four NICs a socket, four crossings


def test_gb200_sends_through_grace_without_a_pcie_switch() -> None:
    graph = server_graph(WORLD, "gb200-nvl72")
    names = [
        graph.structure.link_name(link)
        for link in route(graph.structure, graph.gpu[1], graph.nic[1])
    ]
    assert names == ["GPU 1 to root complex 0", "root complex 0 to NIC 1"]


@pytest.mark.parametrize("server", ["dgx-a100", "dgx-h100", "gb200-nvl72", "mi300x-8"])
def test_all_scale_up_links_of_a_gpu_together_have_its_published_rate(server: str) -> None:
    graph = server_graph(WORLD, server)
    links = [
        i
        for i in range(graph.fabric.links)
        if graph.fabric.link_source[i] == graph.gpu[0]
        and graph.structure.link_class[i] in (LinkClass.NVLINK, LinkClass.MESH)
    ]
    published = WORLD.number("gpu", WORLD.text("server", server, "gpu"), "scaleup_oneway_Bps")
    assert graph.fabric.link_rate_Bps[links].sum() == pytest.approx(published)


def test_the_cube_mesh_of_v100_has_double_and_single_links_and_none_between_some_gpus() -> None:
    graph = server_graph(WORLD, "hgx-v100")
    rate = {
        (
            int(graph.fabric.link_source[i]),
            int(graph.fabric.link_target[i]),
        ): graph.fabric.link_rate_Bps[i]
        for i in np.flatnonzero(graph.structure.link_class == LinkClass.MESH)
    }
    assert rate[0, 3] == pytest.approx(50e9)
    assert rate[1, 0] == pytest.approx(25e9)
    assert (0, 5) not in rate


def test_gpus_talk_through_an_nvswitch_not_through_their_pcie_switch() -> None:
    graph = server_graph(WORLD, "dgx-h100")
    classes = graph.structure.link_class[list(route(graph.structure, graph.gpu[0], graph.gpu[1]))]
    assert set(classes.tolist()) == {LinkClass.NVLINK}


def test_a_staged_byte_of_a_gb300_does_not_touch_the_pcie_switch_before_memory() -> None:
    graph = server_graph(WORLD, "gb300-nvl72")
    links = route(graph.structure, graph.gpu[0], graph.dram[0])
    assert graph.structure.link_class[list(links)].tolist() == [LinkClass.C2C, LinkClass.MEMORY]


def test_no_uplink_is_faster_than_the_root_complex_that_it_ends_at() -> None:
    graph = server_graph(WORLD, "dgx-b300")
    uplinks = graph.structure.link_class == LinkClass.UPLINK
    assert graph.fabric.link_rate_Bps[uplinks].max() == pytest.approx(x16_Bps(5))
    assert graph.fabric.link_rate_Bps[
        graph.structure.link_class == LinkClass.NIC_PCIE
    ].min() == pytest.approx(x16_Bps(6))


def test_other_nics_take_the_place_of_the_servers_own() -> None:
    graph = server_graph(WORLD, "dgx-h100", nics=1, nic="cx6-dx")
    assert len(graph.nic) == 1
    assert set(graph.nic_of_gpu) == {0}
    link = route(graph.structure, graph.gpu[0], graph.nic[0])[-1]
    assert graph.fabric.link_rate_Bps[link] == pytest.approx(x16_Bps(4))


@pytest.mark.parametrize(
    ("fact", "expected_Bps"),
    [
        (("nic", "cx7-ndr", "pcie_gen"), x16_Bps(4)),
        (("nic", "cx7-ndr", "pcie_lanes"), x16_Bps(5) / 4),
        (("gpu", "h100-sxm", "pcie_gen"), x16_Bps(4)),
        (("server", "dgx-h100", "pcie_lanes"), x16_Bps(5) / 4),
    ],
)
def test_a_pcie_link_runs_at_the_older_generation_and_narrower_width_of_its_ends(
    fact: tuple[str, str, str], expected_Bps: float
) -> None:
    value = 4.0  # of a generation, and of lanes
    world = nominal(WORLD.catalog.with_overrides({fact: value}))
    graph = server_graph(world, "dgx-h100")
    assert bottlenecks(graph, direct(graph))[0][1] == pytest.approx(expected_Bps)


def test_an_unknown_server_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UserError, match="did you mean 'dgx-h100'"):
        server_graph(WORLD, "dgx-h10")


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(SERVERS), st.integers(0, 40), st.integers(0, 2**16))
def test_a_detour_through_host_memory_is_never_faster(server: str, nics: int, seed: int) -> None:
    graph = server_graph(next(draw(1, seed)), server, nics=nics)
    assert bottlenecks(graph, staged(graph))[0][1] <= bottlenecks(graph, direct(graph))[0][1] * (
        1 + 1e-9
    )


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(SERVERS), st.floats(0.1, 10))
def test_bottlenecks_ascend_and_scale_with_the_load(server: str, factor: float) -> None:
    graph = server_graph(WORLD, server)
    found = bottlenecks(graph, staged(graph))
    scaled = bottlenecks(graph, [(links, weight * factor) for links, weight in staged(graph)])
    rates = [rate for _, rate in found]
    assert rates == sorted(rates)
    assert dict(scaled) == pytest.approx({name: rate / factor for name, rate in found})


def test_an_onboard_gigabit_nic_can_be_built_in() -> None:
    graph = server_graph(WORLD, "dgx-h100", nics=1, nic="onboard-1g")
    link = route(graph.structure, graph.gpu[0], graph.nic[0])[-1]
    assert graph.fabric.link_rate_Bps[link] <= x16_Bps(2)


def small(**changes: Any) -> Structure:
    """Return four GPUs and two NICs on two PCIe switches, one a socket, with changes."""
    counts = Counts(4, 0, 2, 2, 2, 0, 0)
    return structure(replace(counts, **changes))


def names_of(form: Structure, source: int, target: int) -> list[str]:
    return [form.link_name(link) for link in route(form, source, target)]


def test_with_acs_a_way_between_devices_of_one_switch_goes_up_to_the_cpu_and_down_again() -> None:
    free, controlled = small(), small(acs=True)
    assert names_of(free, free.gpu[0], free.nic[0]) == [
        "GPU 0 to PCIe switch 0",
        "PCIe switch 0 to NIC 0",
    ]
    assert names_of(controlled, controlled.gpu[0], controlled.nic[0]) == [
        "GPU 0 to PCIe switch 0",
        "PCIe switch 0 uplink, to the root complex",
        "PCIe switch 0 uplink, from the root complex",
        "PCIe switch 0 to NIC 0",
    ]
    # What meets the CPU anyway stays as it was.
    assert names_of(free, free.gpu[0], free.dram[0]) == names_of(
        controlled, controlled.gpu[0], controlled.dram[0]
    )


def test_nics_at_the_cpu_share_the_uplinks_of_the_switches_with_nothing_but_their_gpus() -> None:
    form = small(nic_at_cpu=True)
    assert names_of(form, form.gpu[0], form.nic[0]) == [
        "GPU 0 to PCIe switch 0",
        "PCIe switch 0 uplink, to the root complex",
        "root complex 0 to NIC 0",
    ]


def test_places_say_where_each_device_hangs_and_a_gpu_takes_the_nearest_nic() -> None:
    form = small(
        gpu_places=("switch0", "switch1", "switch0", "switch1"),
        nic_places=("switch1", "switch0"),
        switch_sockets=(1, 0),
    )
    assert form.nic_of_gpu == (1, 0, 1, 0)
    assert form.gpus_of_nic == ((1, 3), (0, 2))
    assert form.socket_of_gpu == (1, 0, 1, 0)
    assert form.socket_of_nic == (0, 1)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 8), st.integers(1, 8))
def test_wherever_devices_hang_each_gpu_has_one_nic_and_each_nic_a_gpu(
    data: st.DataObject, gpus: int, nics: int
) -> None:
    place = st.sampled_from(["switch0", "switch1", "switch2", "socket0", "socket1"])
    form = structure(
        Counts(
            gpus,
            0,
            3,
            2,
            nics,
            0,
            0,
            gpu_places=tuple(data.draw(st.lists(place, min_size=gpus, max_size=gpus))),
            nic_places=tuple(data.draw(st.lists(place, min_size=nics, max_size=nics))),
            switch_sockets=(0, 1, 1),
        )
    )
    assert all(g in form.gpus_of_nic[form.nic_of_gpu[g]] for g in range(gpus))
    assert all(form.gpus_of_nic)
    for g in range(gpus):
        assert route(form, form.gpu[g], form.nic[form.nic_of_gpu[g]])


def test_bridges_join_pairs_and_four_gpus_of_a_board_without_nvswitch_each_two() -> None:
    bridged = server_graph(WORLD, "h100-nvl-8")
    joined_pairs = {
        tuple(sorted((int(bridged.fabric.link_source[i]), int(bridged.fabric.link_target[i]))))
        for i in np.flatnonzero(bridged.structure.link_class == LinkClass.MESH)
    }
    assert joined_pairs == {(0, 1), (2, 3), (4, 5), (6, 7)}
    board = server_graph(WORLD, "hgx-a100-4")
    mesh = board.structure.link_class == LinkClass.MESH
    # Four of twelve NVLinks to each of three peers: 100 GB/s.
    assert board.fabric.link_rate_Bps[mesh] == pytest.approx(100e9)
    assert mesh.sum() == 4 * 3
