"""Packet formats: what a packet adds to its payload, and which MTUs a network may have. One idea:
a format is rows of the catalog, and knows its own legal values.

::

    | frame | headers | payload ……………… | frame |
            |<------- what an MTU counts ------>|
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from eastwest.catalog.world import World
from eastwest.errors import UserError


class LinkLayer(StrEnum):
    """What switches and cables speak."""

    INFINIBAND = "infiniband"
    ETHERNET = "ethernet"
    SLINGSHOT = "slingshot"


@dataclass(frozen=True, slots=True)
class PacketFormat:
    """One entry of ``packet.csv``.

    ``kernel`` tells that the host's kernel builds and checks each packet, where else the NIC does.
    A packet is ``frame_bytes`` around what the MTU counts, ``header_bytes`` within that beside the
    payload, and ``first_header_bytes`` more in a message's first packet. ``payloads_bytes`` are the
    payloads that a full packet may have, ascending (any if empty); ``mtu_least_bytes`` to
    ``mtu_most_bytes`` the MTUs of an Ethernet below (0 where there is none).
    """

    id: str
    name: str
    link_layer: LinkLayer
    kernel: bool
    frame_bytes: int
    header_bytes: int
    first_header_bytes: int
    payloads_bytes: tuple[int, ...] = ()
    mtu_least_bytes: int = 0
    mtu_most_bytes: int = 0

    def payload_bytes(self, mtu_bytes: int) -> int:
        """Return the payload of a full packet: a path MTU that is stated, or what fits an Ethernet
        MTU (for RDMA 1500 -> 1024, 4200 and 9000 -> 4096).

        Raises UserError, with the legal values, for an MTU that no device has.
        """
        if mtu_bytes in self.payloads_bytes:
            return mtu_bytes
        if not self.mtu_least_bytes <= mtu_bytes <= self.mtu_most_bytes:
            close = min(self.ends_bytes(), key=lambda legal: abs(legal - mtu_bytes))
            raise UserError(
                f"no {self.name} network has an MTU of {mtu_bytes:,} bytes; it is {self.legal()}",
                hint=f"the nearest is {close}",
            )
        room = mtu_bytes - self.header_bytes - self.first_header_bytes
        return max((p for p in self.payloads_bytes if p <= room), default=room)

    def ends_bytes(self) -> tuple[int, ...]:
        """Return the legal MTUs between which others lie, or all of them where none does."""
        span = (self.mtu_least_bytes, self.mtu_most_bytes) if self.mtu_most_bytes else ()
        return (*self.payloads_bytes, *span)

    def legal(self) -> str:
        """Say which MTUs are legal: ``256, 512, 1024, 2048 or 4096``."""
        least, most = self.mtu_least_bytes, self.mtu_most_bytes
        span = f"{most}" if least == most else f"from {least} to {most} of the Ethernet"
        each = [str(p) for p in self.payloads_bytes]
        if not each:
            return span
        listed = " or ".join(filter(None, (", ".join(each[:-1]), each[-1])))
        return f"{listed}, or {span}" if self.mtu_most_bytes else listed

    def efficiency(self, payload_bytes: int) -> float:
        """Return payload over bytes on the wire for packets with this payload."""
        return payload_bytes / (payload_bytes + self.frame_bytes + self.header_bytes)


def link_layer(world: World, switch: str) -> LinkLayer:
    """Return what a switch speaks; those for management and for scale-up speak Ethernet.

    Parameters
    ----------
    world : the constants.
    switch : an entry of the catalog.

    Raises UserError for an unknown switch.
    """
    said = world.text("switch", switch, "technology")
    return LinkLayer(said) if said in set(LinkLayer) else LinkLayer.ETHERNET


def packet_format(world: World, id: str) -> PacketFormat:
    """Return one format. Raises UserError with the nearest name.

    Parameters
    ----------
    world : the constants.
    id : an entry of the kind ``packet``.
    """
    world.catalog.require("packet", id)

    def number(attribute: str) -> int:
        return int(world.number("packet", id, attribute))

    def optional(attribute: str) -> int:
        return number(attribute) if world.has("packet", id, attribute) else 0

    payloads = (
        world.text("packet", id, "payloads_bytes")
        if world.has("packet", id, "payloads_bytes")
        else ""
    )
    return PacketFormat(
        id,
        world.text("packet", id, "name"),
        LinkLayer(world.text("packet", id, "link_layer")),
        number("kernel") == 1,
        number("frame_bytes"),
        number("header_bytes"),
        number("first_header_bytes"),
        tuple(int(float(p)) for p in payloads.split()),
        optional("mtu_least_bytes"),
        optional("mtu_most_bytes"),
    )
