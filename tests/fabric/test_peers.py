"""What GPUs of a server have between them: it emerges from the links that their traffic shares."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.catalog.load import Catalog, catalog
from eastwest.catalog.world import World, draw, nominal
from eastwest.fabric.server import Peers, peers, server_graph
from eastwest.spec.own_server import OwnServer, server_facts, server_id

WORLD = nominal()
X16 = {gen: WORLD.number("pcie", f"gen{gen}", "x16_Bps") for gen in (3, 4, 5)}


def own(**keys: object) -> tuple[World, str]:
    """Return a world with a described server, and its name."""
    said = OwnServer.model_validate(keys)
    facts: Catalog = catalog().with_facts(server_facts(said, catalog(), "test"))
    return nominal(facts), server_id(said)


def between(gpus: int, peer_to_peer: bool = True, **keys: object) -> Peers:
    base = {"gpu": "a100-80-pcie", "gpus": gpus, "nics": 1, "nic": "cx6-dx", "cpu": "amd"}
    world, server = own(**(base | keys))
    return peers(server_graph(world, server), world, gpus, peer_to_peer)


def test_gpus_of_one_pcie_switch_get_a_whole_link_each_and_stay_below_the_cpu() -> None:
    found = between(4, sockets=1, pcie_switches=1)
    assert found.ring_Bps == pytest.approx(X16[4])
    assert found.exchange_Bps == pytest.approx(X16[4])
    assert not found.scale_up
    assert found.links == 0


def test_switches_on_one_socket_share_an_uplink_between_the_gpus_of_each() -> None:
    found = between(4, sockets=1, pcie_switches=2)
    assert found.ring_Bps == pytest.approx(X16[4])  # one hop of the ring crosses, either way
    # Each of two GPUs sends two of its three parts through their uplink.
    assert found.exchange_Bps == pytest.approx(X16[4] / (2 * 2 / 3))


def test_a_ring_across_sockets_is_bound_by_peer_access_between_them() -> None:
    found = between(4, sockets=2, socket_link="100GB/s")
    share = WORLD.number("root-complex", "all", "peer_socket_share")
    assert found.ring_Bps == pytest.approx(100e9 * share)
    assert found.limit.startswith("peer access from root complex")
    # Four of the twelve pairs cross in each direction, each with a third of a GPU's bytes.
    assert found.exchange_Bps == pytest.approx(100e9 * share / (4 / 3))


def test_an_intel_cpu_passes_peer_traffic_in_small_packets() -> None:
    share = WORLD.number("root-complex", "intel", "peer_share")
    found = between(2, sockets=1, cpu="intel")
    assert found.ring_Bps == pytest.approx(X16[4] * share)


def test_with_acs_two_gpus_of_a_switch_meet_at_the_cpu() -> None:
    assert between(2, sockets=1, pcie_switches=1, cpu="intel").ring_Bps == pytest.approx(X16[4])
    share = WORLD.number("root-complex", "intel", "peer_share")
    controlled = between(2, sockets=1, pcie_switches=1, cpu="intel", acs=True)
    # Both directions of the uplink carry both GPUs' bytes.
    assert controlled.ring_Bps == pytest.approx(X16[4] * share / 2)


def test_gpus_without_peer_access_go_through_memory_as_do_all_with_p2p_disabled() -> None:
    kept = between(2, sockets=1, memory_rate="50GB/s")
    memory = 50e9 * WORLD.number("stack", "host", "memory_share")
    expected = pytest.approx(min(X16[4], memory / 4))  # each of two writes and reads a byte
    assert kept.ring_Bps == pytest.approx(X16[4])
    assert between(2, False, sockets=1, memory_rate="50GB/s").ring_Bps == expected
    game = between(2, gpu="rtx-4090", sockets=1, memory_rate="50GB/s")
    assert game.ring_Bps == expected


def test_a_bridge_joins_two_and_does_nothing_for_a_ring_of_more() -> None:
    pair = between(2, gpu_links="bridge")
    assert (pair.scale_up, pair.ring_Bps, pair.links) == (True, 300e9, 12)
    four = between(4, gpu_links="bridge", sockets=1)
    assert not four.scale_up
    assert four.ring_Bps == pytest.approx(X16[4])


@pytest.mark.parametrize("gpus", range(2, 9))
def test_so_many_of_eight_mi300x_use_the_links_between_them_alone(gpus: int) -> None:
    found = peers(server_graph(WORLD, "mi300x-8"), WORLD, gpus)
    assert found.ring_Bps == pytest.approx(64e9 * (gpus - 1))
    assert found.usable_Bps == pytest.approx(48e9 * (gpus - 1))


def test_the_cube_mesh_of_v100_counts_rings_of_single_links() -> None:
    found = peers(server_graph(WORLD, "hgx-v100"), WORLD, 8)
    assert (found.rings, found.relayed, found.links) == (6, False, 6)
    assert found.ring_Bps == pytest.approx(150e9)
    assert peers(server_graph(WORLD, "hgx-v100"), WORLD, 4).rings == 4


@pytest.mark.parametrize("server", catalog().ids("server"))
def test_no_gpu_sends_more_than_its_own_links_carry(server: str) -> None:
    graph = server_graph(WORLD, server)
    for gpus in range(1, len(graph.gpu) + 1):
        found = peers(graph, WORLD, gpus)
        out = graph.fabric.link_source == graph.gpu[0]
        assert 0 < found.exchange_Bps <= found.ring_Bps * (1 + 1e-9)
        assert found.ring_Bps <= graph.fabric.link_rate_Bps[out].sum() * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["a100-80-pcie", "l40s", "rtx-4090", "h100-nvl"]),
    st.integers(2, 8),
    st.integers(0, 4),
    st.integers(1, 2),
    st.integers(0, 99),
)
def test_acs_and_fewer_lanes_never_speed_a_ring_up(
    gpu: str, gpus: int, switches: int, sockets: int, seed: int
) -> None:
    base = {"gpu": gpu, "gpus": gpus, "nics": 1, "nic": "cx6-dx", "gpu_links": "pcie"}
    base |= {"pcie_switches": switches, "sockets": sockets, "nic_at": "cpu"}

    def rate(**more: object) -> float:
        world, server = own(**(base | more))
        (drawn,) = draw(1, seed, world.catalog)
        return peers(server_graph(drawn, server), drawn, gpus).ring_Bps

    free = rate()
    assert rate(acs=True) <= free * (1 + 1e-9)
    assert rate(pcie_lanes=8) <= free * (1 + 1e-9)
