"""Technologies: what a network can be built of. One idea: a row of ``compare``, and the word that a
cluster file says for it, are an entry of the catalog, not code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from eastwest.catalog.packets import LinkLayer, PacketFormat, packet_format
from eastwest.catalog.world import World
from eastwest.errors import UserError

ON_BOARD = "none"  # stands where a NIC of the catalog would
ANY_NIC = "any"  # stands where those that can carry a technology would


class Network(StrEnum):
    """Which of a cluster's networks is built of it."""

    COMPUTE = "compute"
    STORAGE = "storage"
    MANAGEMENT = "management"


@dataclass(frozen=True, slots=True)
class Technology:
    """One entry of ``technology.csv``.

    ``names`` are the words with which a cluster file means it, the usual one first; of entries with
    the same word the file's ``gpudirect`` decides, and then its rate: the entry with the largest
    ``least_Bps`` that is not above it. ``transport`` names the module that knows its stages;
    ``packets`` are the formats that it can have, the usual one first, and ``packet`` the one that
    it has; ``switches`` the catalog's switches in order of preference; ``nic`` is empty for the
    port of the server's board; ``nics`` is 0 for as many as the server has; ``only_nics`` are the
    NICs that alone can carry it, none if any can.
    """

    id: str
    label: str
    use: str
    transport: str
    names: tuple[str, ...]
    network: Network
    packets: tuple[PacketFormat, ...]
    packet: PacketFormat
    switches: tuple[str, ...]
    nic: str
    nic_Bps: float
    least_Bps: float
    nics: int
    gpudirect: bool
    mtu_bytes: int
    sockets: int
    fec: str
    only_nics: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The usual word for it in a cluster file."""
        return self.names[0]

    def carried_by(self, nic: str) -> bool:
        """Whether a NIC of the catalog can carry it."""
        return not self.only_nics or nic in self.only_nics

    def over(self, link_layer: LinkLayer) -> PacketFormat:
        """Return its packet format on switches that speak this; its own where it has none there."""
        fitting = [p for p in self.packets if p.link_layer is link_layer]
        return self.packet if self.packet in fitting or not fitting else fitting[0]


def technology_ids(world: World) -> tuple[str, ...]:
    """Return all technologies, in the order of the catalog."""
    return world.catalog.ids("technology")


def technology(world: World, id: str) -> Technology:
    """Return one technology. Raises UserError with the nearest name.

    Parameters
    ----------
    world : the constants.
    id : an entry of the kind ``technology``.
    """
    world.catalog.require("technology", id)

    def text(attribute: str) -> str:
        return world.text("technology", id, attribute)

    def number(attribute: str) -> float:
        return world.number("technology", id, attribute)

    packets = tuple(packet_format(world, packet) for packet in text("packets").split())
    return Technology(
        id,
        text("label"),
        text("use"),
        text("transport"),
        tuple(text("names").split()),
        Network(text("network")),
        packets,
        packets[0],
        tuple(text("switches").split()),
        "" if text("nic") == ON_BOARD else text("nic"),
        number("nic_Bps"),
        number("least_Bps"),
        int(number("nics")),
        number("gpudirect") == 1.0,
        int(number("mtu_bytes")),
        int(number("sockets")),
        text("fec"),
        () if text("only_nics") == ANY_NIC else tuple(text("only_nics").split()),
    )


def words(world: World, network: Network) -> tuple[str, ...]:
    """Return the words that a cluster file may say for one of its networks, each once.

    Parameters
    ----------
    world : the constants.
    network : which of a cluster's networks.
    """
    return tuple(
        dict.fromkeys(
            word
            for id in technology_ids(world)
            if world.text("technology", id, "network") == network
            for word in world.text("technology", id, "names").split()
        )
    )


def named(world: World, word: str) -> tuple[Technology, ...]:
    """Return the technologies that a cluster file can mean by a word; none if it is unknown.

    Parameters
    ----------
    world : the constants.
    word : as a cluster file says it, such as ``roce``.
    """
    return tuple(
        technology(world, id)
        for id in technology_ids(world)
        if word in world.text("technology", id, "names").split()
    )


def meant(world: World, word: str, gpudirect: bool, rate_Bps: float) -> Technology:
    """Return the technology that a cluster file means by a word, with GPUDirect or without, at the
    rate of a NIC's port.

    Raises UserError if the catalog has none.

    Parameters
    ----------
    world : the constants.
    word : as a cluster file says it.
    gpudirect : whether NICs reach GPU memory themselves.
    rate_Bps : of a NIC's port, one way.
    """
    fitting = [t for t in named(world, word) if t.gpudirect == gpudirect]
    if not fitting:
        how = "with" if gpudirect else "without"
        raise UserError(f"the catalog has no {word} {how} GPUDirect")
    slowest = min(fitting, key=lambda t: t.least_Bps)
    return max(
        (t for t in fitting if t.least_Bps <= rate_Bps), key=lambda t: t.least_Bps, default=slowest
    )
