"""Payload over bytes on the wire, and MTUs, against values computed from the packet formats by
hand."""

from __future__ import annotations

import pytest

from eastwest.errors import UserError
from eastwest.transport.endpoint import header_efficiency, packet_bytes, path_mtu_bytes
from transport.worlds import WORLD


@pytest.mark.parametrize(
    ("payload", "roce", "infiniband"),
    [(256, "75.7", "90.8"), (1024, "92.6", "97.5"), (2048, "96.2", "98.7"), (4096, "98.0", "99.4")],
)
def test_rdma_packets_are_as_efficient_as_computed(
    payload: int, roce: str, infiniband: str
) -> None:
    got = [
        f"{100 * header_efficiency(kind, payload, WORLD):.1f}" for kind in ("roce", "infiniband")
    ]
    assert got == [roce, infiniband]


@pytest.mark.parametrize(
    ("mtu", "segment", "efficiency", "stamped_segment", "stamped"),
    [
        (1500, 1460, "94.9", 1448, "94.1"),
        (4096, 4056, "98.1", 4044, "97.8"),
        (9000, 8960, "99.1", 8948, "99.0"),
    ],
)
def test_tcp_segments_are_as_efficient_as_computed(
    mtu: int, segment: int, efficiency: str, stamped_segment: int, stamped: str
) -> None:
    for stamps, payload, expected in (
        (False, segment, efficiency),
        (True, stamped_segment, stamped),
    ):
        assert packet_bytes("tcp", mtu, WORLD, stamps) == payload
        assert f"{100 * header_efficiency('tcp', payload, WORLD, stamps):.1f}" == expected


@pytest.mark.parametrize(
    ("ethernet", "rdma"), [(1500, 1024), (4096, 2048), (4200, 4096), (9000, 4096), (8896, 4096)]
)
def test_the_rdma_mtu_is_the_largest_that_fits_the_ethernet_mtu(ethernet: int, rdma: int) -> None:
    assert path_mtu_bytes(ethernet, WORLD) == rdma


def test_an_mtu_without_room_is_refused() -> None:
    with pytest.raises(UserError, match="no room"):
        path_mtu_bytes(300, WORLD)
    with pytest.raises(UserError, match="no room"):
        packet_bytes("tcp", 50, WORLD)
