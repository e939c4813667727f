"""Payload over bytes on the wire, and MTUs, against values computed from the packet formats by
hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastwest.catalog.packets import packet_format
from eastwest.errors import UserError
from transport.worlds import WORLD

FORMATS = {id: packet_format(WORLD, id) for id in WORLD.catalog.ids("packet")}


@pytest.mark.parametrize(
    ("payload", "roce", "infiniband"),
    [(256, "75.7", "90.8"), (1024, "92.6", "97.5"), (2048, "96.2", "98.7"), (4096, "98.0", "99.4")],
)
def test_rdma_packets_are_as_efficient_as_computed(
    payload: int, roce: str, infiniband: str
) -> None:
    got = [f"{100 * FORMATS[id].efficiency(payload):.1f}" for id in ("roce", "infiniband")]
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
    plain = replace(FORMATS["tcp"], header_bytes=FORMATS["tcp"].header_bytes - 12)
    for packet, payload, expected in (
        (plain, segment, efficiency),
        (FORMATS["tcp"], stamped_segment, stamped),
    ):
        assert packet.payload_bytes(mtu) == payload
        assert f"{100 * packet.efficiency(payload):.1f}" == expected


@pytest.mark.parametrize(
    ("ethernet", "rdma"), [(1500, 1024), (4200, 4096), (9000, 4096), (8896, 4096), (2107, 1024)]
)
def test_the_rdma_mtu_is_the_largest_that_fits_the_ethernet_mtu(ethernet: int, rdma: int) -> None:
    assert FORMATS["roce"].payload_bytes(ethernet) == rdma


@pytest.mark.parametrize(
    ("id", "mtu", "message"),
    [
        (
            "infiniband",
            9000,
            "no InfiniBand network has an MTU of 9,000 bytes; it is 256, 512, 1024, 2048 or 4096 "
            "(the nearest is 4096)",
        ),
        (
            "infiniband",
            1500,
            "no InfiniBand network has an MTU of 1,500 bytes; it is 256, 512, 1024, 2048 or 4096 "
            "(the nearest is 1024)",
        ),
        (
            "roce",
            300,
            "no RoCEv2 network has an MTU of 300 bytes; it is 256, 512, 1024, 2048 or 4096, or "
            "from 576 to 9978 of the Ethernet (the nearest is 256)",
        ),
        (
            "tcp",
            65_520,
            "no TCP network has an MTU of 65,520 bytes; it is from 576 to 9978 of the Ethernet "
            "(the nearest is 9978)",
        ),
    ],
)
def test_an_mtu_that_no_device_has_is_refused_with_the_legal_ones(
    id: str, mtu: int, message: str
) -> None:
    with pytest.raises(UserError) as error:
        FORMATS[id].payload_bytes(mtu)
    assert str(error.value) == message


@given(st.sampled_from(list(FORMATS.values())), st.integers(1, 70_000), st.integers(1, 70_000))
def test_a_larger_mtu_never_carries_less(packet, a: int, b: int) -> None:  # type: ignore[no-untyped-def]
    got = []
    for mtu in sorted((a, b)):
        if packet.mtu_least_bytes <= mtu <= packet.mtu_most_bytes:
            if mtu in packet.payloads_bytes:
                continue  # a path MTU by its own name, not an Ethernet's
            got.append(packet.payload_bytes(mtu))
            assert 0 < got[-1] < mtu
    assert got == sorted(got)


def test_every_format_takes_its_own_payloads_as_mtus() -> None:
    for packet in FORMATS.values():
        assert [packet.payload_bytes(p) for p in packet.payloads_bytes] == [*packet.payloads_bytes]
        assert 0 < packet.efficiency(1) < packet.efficiency(4096) < 1
