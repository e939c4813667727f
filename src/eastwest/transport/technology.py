"""Technologies: what a network can be built of. One idea: a row of ``compare`` is an entry of the
catalog, not code."""

from __future__ import annotations

from dataclasses import dataclass

from eastwest.catalog.world import World


@dataclass(frozen=True, slots=True)
class Technology:
    """One entry of ``technology.csv``.

    ``transport`` names the module that knows its stages; ``header`` its packet format; ``switches``
    the catalog's switches in order of preference; ``nics`` is 0 for as many as the server has.
    """

    id: str
    label: str
    use: str
    transport: str
    fabric: str  # infiniband, ethernet, management
    header: str  # infiniband, roce, tcp
    switches: tuple[str, ...]
    nic: str
    nic_Bps: float
    nics: int
    gpudirect: bool
    mtu_bytes: int
    sockets: int
    fec: str


def technology_ids(world: World) -> tuple[str, ...]:
    """Return all technologies, in the order of the catalog."""
    return world.catalog.ids("technology")


def technology(world: World, id: str) -> Technology:
    """Return one technology. Raises UserError with the nearest name."""
    world.catalog.require("technology", id)

    def text(attribute: str) -> str:
        return world.text("technology", id, attribute)

    def number(attribute: str) -> float:
        return world.number("technology", id, attribute)

    return Technology(
        id,
        text("label"),
        text("use"),
        text("transport"),
        text("fabric"),
        text("header"),
        tuple(text("switches").split()),
        text("nic"),
        number("nic_Bps"),
        int(number("nics")),
        number("gpudirect") == 1.0,
        int(number("mtu_bytes")),
        int(number("sockets")),
        text("fec"),
    )
