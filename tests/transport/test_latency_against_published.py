"""One-way latencies of small messages against published measurements; one set of constants for all
rows.

- InfiniBand HDR100, ``ib_write_lat`` 2 B between host memories: per-link study of the Zaratan
  cluster (medians over nine leaves and six pairs of leaves).
- InfiniBand NDR and RoCE 400G, 64 B, and NVLink, CPU end to end on H800: DeepSeek-V3, ISCA 2025,
  Table 5.
"""

from __future__ import annotations

import pytest

from eastwest.catalog.packets import packet_format
from eastwest.fabric.server import server_graph
from eastwest.transport import nvlink, rdma
from eastwest.transport.endpoint import Endpoint, Way
from transport.worlds import WORLD

IB, ROCE = (packet_format(WORLD, id) for id in ("infiniband", "roce"))
HDR100 = Endpoint(server_graph(WORLD, "dgx-a100"), 128, 12.5e9, 8, 4096, in_gpu=False, inline=True)
NDR = Endpoint(server_graph(WORLD, "dgx-h100"), 112, 50e9, 8, 4096)


def way(switches: int, port_s: float, metres: tuple[float, ...], fec: str = "fec-kp4") -> Way:
    return Way(len(metres), sum(metres), switches, switches * port_s, fec)


@pytest.mark.parametrize(
    ("switches", "metres", "published_s"), [(1, (2, 2), 1.21e-6), (3, (2, 10, 10, 2), 1.70e-6)]
)
def test_hdr100_verbs_between_host_memories(
    switches: int, metres: tuple[float, ...], published_s: float
) -> None:
    port_s = WORLD.number("switch", "qm8700", "port_to_port_s")
    got = rdma.path("", IB, HDR100, way(switches, port_s, metres, "fec-rs272"), WORLD).latency_s(2)
    assert got == pytest.approx(published_s, rel=0.03)


def test_one_more_hdr_hop_costs_what_the_study_found() -> None:
    port_s = WORLD.number("switch", "qm8700", "port_to_port_s")
    one, three = (
        rdma.path(
            "",
            IB,
            HDR100,
            way(n, port_s, (2.0, *(10.0,) * (n - 1), 2.0), "fec-rs272"),
            WORLD,
        )
        for n in (1, 3)
    )
    assert 0.22e-6 <= (three.latency_s(2) - one.latency_s(2)) / 2 <= 0.30e-6


@pytest.mark.parametrize(
    ("switches", "metres", "published_s"), [(1, (5, 5), 2.8e-6), (3, (5, 20, 20, 5), 3.7e-6)]
)
def test_ndr_between_gpu_memories(
    switches: int, metres: tuple[float, ...], published_s: float
) -> None:
    port_s = WORLD.number("switch", "qm9700", "port_to_port_s")
    got = rdma.path("", IB, NDR, way(switches, port_s, metres), WORLD).latency_s(64)
    assert got == pytest.approx(published_s, rel=0.03)


@pytest.mark.parametrize(
    ("switches", "metres", "published_s"), [(1, (5, 5), 3.6e-6), (3, (5, 20, 20, 5), 5.6e-6)]
)
def test_roce_between_gpu_memories_with_their_switch(
    switches: int, metres: tuple[float, ...], published_s: float
) -> None:
    # The table's 1.0 us a hop means some 0.75 us in the switch, which is within the catalog's range
    # for its class.
    fact = WORLD.catalog.fact("switch", "th4-64", "port_to_port_s")
    assert fact.low <= 0.75e-6 <= fact.high
    got = rdma.path("", ROCE, NDR, way(switches, 0.75e-6, metres), WORLD).latency_s(64)
    assert got == pytest.approx(published_s, rel=0.03)


@pytest.mark.parametrize(
    ("switches", "metres", "published_s"), [(1, (5, 5), 3.6e-6), (3, (5, 20, 20, 5), 5.6e-6)]
)
def test_roce_with_the_catalogs_central_switch_is_within_a_tenth(
    switches: int, metres: tuple[float, ...], published_s: float
) -> None:
    port_s = WORLD.number("switch", "sn5600", "port_to_port_s")
    got = rdma.path("", ROCE, NDR, way(switches, port_s, metres), WORLD).latency_s(64)
    assert got == pytest.approx(published_s, rel=0.10)


def test_nvlink_seen_by_the_cpu() -> None:
    assert nvlink.path("", NDR, WORLD).latency_s(64) == pytest.approx(3.33e-6, rel=0.03)
