"""What a plan's links and switches take. One idea: one table has the metres, by topology.

The catalog's ``cabling`` tells the metres of a class of links by the topology's name, or by
``other`` where it does not know the topology. Seconds follow: FEC, the modules at both ends, and
the light in the cable; a switch takes its catalog's time from port to port.
"""

from __future__ import annotations

from dataclasses import dataclass

from eastwest.catalog.load import Catalog
from eastwest.catalog.world import World
from eastwest.fabric.plan import CableClass, Crossing, Plan

NO_FEC = "fec-none"


def entry(catalog: Catalog, topology: str) -> str:
    """Return the catalog's entry for the cables of a topology."""
    return topology if topology in catalog.ids("cabling") else "other"


def length_m(world: World, plan: Plan, links: CableClass) -> float:
    """Return the metres of a cable of a class in this world."""
    return world.number("cabling", entry(world.catalog, plan.topology), links.length)


def central_length_m(world: World, plan: Plan, links: CableClass) -> float:
    """Return the central metres of a cable of a class, so that every drawn world is built of the
    same pieces."""
    id = entry(world.catalog, plan.topology)
    return float(world.catalog.fact("cabling", id, links.length).value)


def end_s(world: World, fec: str) -> float:
    """Return what a link takes beside its cable: FEC and, with it, the modules at both ends."""
    module_s = world.number("wire", "module", "link_s") if fec != NO_FEC else 0.0
    return world.number("wire", fec, "link_s") + module_s


def metre_s(world: World) -> float:
    """Return the seconds that a metre of cable takes."""
    return world.number("wire", "cable", "s_per_m")


@dataclass(frozen=True, slots=True)
class Delays:
    """What a plan's parts take: metres and seconds of a link by class, seconds of a switch by
    role."""

    link_m: tuple[float, ...]
    link_s: tuple[float, ...]
    switch_s: tuple[float, ...]

    def metres(self, crossing: Crossing) -> float:
        """Return the cable on a way."""
        return _dot(crossing.links, self.link_m)

    def switching_s(self, crossing: Crossing) -> float:
        """Return the time in switches on a way."""
        return _dot(crossing.switches, self.switch_s)

    def way_s(self, crossing: Crossing) -> float:
        """Return the time in links and switches on a way."""
        return _dot(crossing.links, self.link_s) + self.switching_s(crossing)


def _dot(counts: tuple[float, ...], values: tuple[float, ...]) -> float:
    return sum(n * value for n, value in zip(counts, values, strict=True))


def delays(world: World, plan: Plan, fec: str) -> Delays:
    """Return the delays of a plan whose links use an FEC (an entry of the catalog's ``wire``)."""
    metres = tuple(length_m(world, plan, links) for links in plan.links)
    link_s, per_metre = end_s(world, fec), metre_s(world)
    return Delays(
        metres,
        tuple(link_s + per_metre * m for m in metres),
        tuple(world.number("switch", r.switch.id, "port_to_port_s") for r in plan.roles),
    )
