"""The bill of materials of one network. One idea: count from the plan's links, buy from the
catalog.

Counts follow NVIDIA's SuperPOD reference architecture (RA-11333-001 V11, Table 8): a switch end
needs one transceiver a cage in use, counted switch by switch; a server end one a cage, which may
serve two NICs; one fibre a link; the fabric manager's links come on top, two on a splitter fibre.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eastwest.catalog.world import World
from eastwest.design.cables import Joint, Need, Part, choose, parts
from eastwest.errors import InternalError, UserError
from eastwest.fabric.topology import Plan
from eastwest.table import Column, Table
from eastwest.units import format_money

Counts = NDArray[np.int64]
LENGTHS = ("server_leaf_m", "leaf_spine_m", "spine_core_m")


@dataclass(frozen=True, slots=True)
class Line:
    """One line: a part of the catalog, what it is for, how many, a piece's price, the sum, the
    power of all."""

    kind: str  # switch, nic, cable: where the catalog has the part
    part: str
    what: str
    count: int
    unit_USD: float
    sum_USD: float
    power_W: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bill:
    """All that one network is built of."""

    network: str
    technology: str
    lines: tuple[Line, ...]

    @property
    def total_USD(self) -> float:
        """Price of the whole network."""
        return math.fsum(line.sum_USD for line in self.lines)

    @property
    def total_W(self) -> float:
        """Power of the whole network: switches typical, cables and transceivers, NICs."""
        return math.fsum(line.power_W for line in self.lines)

    def count(self, what: str) -> int:
        """Return how many pieces the lines count whose ``what`` contains the words, such as
        ``fibres``."""
        return sum(line.count for line in self.lines if what in line.what)

    def repriced(self, world: World) -> Bill:
        """Return the same pieces at another world's prices and powers: pieces do not depend on the
        draw."""
        lines = tuple(
            _line(world, li.kind, li.part, li.what, li.count, li.note) for li in self.lines
        )
        return Bill(self.network, self.technology, lines)

    def per_gpu(self, gpus: int) -> tuple[float, float]:
        """Return dollars and watts a GPU."""
        return self.total_USD / gpus, self.total_W / gpus

    def table(self) -> Table:
        """Return the bill as a table, the total in its last row."""
        columns = (
            Column("part", "part", right=False),
            Column("what", "what", right=False),
            Column("count", "count", lambda v: f"{v:,}"),
            Column("unit_USD", "$ each", format_money),
            Column("sum_USD", "$", format_money),
            Column("power_W", "W", lambda v: f"{v:,.0f}"),
            Column("note", "note", right=False),
        )
        rows = [
            (li.part, li.what, li.count, li.unit_USD, li.sum_USD, li.power_W, li.note)
            for li in self.lines
        ]
        total = ("total", "", None, None, self.total_USD, self.total_W, "")
        return Table(
            f"Bill of the {self.network} network ({self.technology})", columns, (*rows, total)
        )


@dataclass(frozen=True, slots=True)
class Class:
    """Links of one class: its name, what stands at its upper (near) and lower (far) ends, and what
    it needs."""

    name: str
    near: str
    far: str
    ends: Counts  # shape (links, 2): far box, near switch
    near_ports: Counts  # used ports of each near switch, with those of the fabric manager
    need: Need


def bill(
    plan: Plan,
    world: World,
    *,
    network: str,
    technology: str,
    rate_Bps: float,
    nic_id: str | None,
    nics_per_server: int,
    server_id: str | None = None,
) -> Bill:
    """Count and price what a planned network is built of.

    Parameters
    ----------
    plan : the structure, with every link at one rate.
    network : its name for people (compute, storage, management).
    technology : ``infiniband`` or ``ethernet``; the switch must speak it.
    rate_Bps : rate of one link, one way.
    nic_id : the network card to buy, or None where the servers bring it.
    nics_per_server : cards a server.
    server_id : the server, if its cages are to be counted as it has them (a DGX H100 leads eight
        NICs to four twin-port cages); without it each card has one cage.

    Raises UserError if the switch speaks another technology, no cable fits, or a price is unknown.
    """
    for switch in {plan.switch.id, *(t.switch.id for t in plan.tiers if t.switch and not t.shared)}:
        _same_technology(world, switch, technology)
    lines = list(_switches(plan, world))
    if nic_id is not None:
        cards = plan.demand.servers * nics_per_server
        lines.append(_line(world, "nic", nic_id, "NICs", cards))
    server_links = _server_links(plan, world, nic_id, nics_per_server, server_id)
    for links in _classes(plan, world, rate_Bps, server_links):
        lines += _joined(world, links)
    lines += _manager(plan, world, rate_Bps)
    return Bill(network, technology, tuple(line for line in lines if line.count))


def _switches(plan: Plan, world: World) -> Iterator[Line]:
    """Yield a line for each model of switch; a shared tier is bought with another network."""
    count: dict[str, int] = {}
    for tier in plan.tiers:
        if not tier.shared:
            model = (tier.switch or plan.switch).id
            count[model] = count.get(model, 0) + tier.switches
    for model, switches in count.items():
        yield _line(world, "switch", model, "switches", switches)


def _classes(plan: Plan, world: World, rate_Bps: float, server_links: int) -> Iterator[Class]:
    """Yield each class of links with its ends: servers, targets of the network, then switches tier
    by tier."""
    ports = plan.demand.rails * plan.demand.planes
    leaves, leaf_links = plan.tiers[0].switches, _cage_links(plan, world, 0)
    if len(plan.links[0]):
        servers = plan.links[0].astype(np.int64) // np.array([ports, 1])
        near = _with_reserved(_ports(servers[:, 1], leaves), plan.reserved_links)
        need = Need(rate_Bps, leaf_links, server_links, _length_m(plan, world, 0))
        yield Class("server-leaf", "leaf", "server", servers, near, need)
    if len(plan.target_links):
        targets = plan.target_links.astype(np.int64)
        need = Need(rate_Bps, leaf_links, 1, _length_m(plan, world, 0))
        yield Class("target-leaf", "leaf", "target", targets, _ports(targets[:, 1], leaves), need)
    for tier in range(1, len(plan.links)):
        links, upper, lower = (
            plan.links[tier].astype(np.int64),
            plan.tiers[tier],
            plan.tiers[tier - 1],
        )
        near_links = _cage_links(plan, world, tier)
        # Between models the lower one has uplink cages of their own, one link each.
        far_links = (
            near_links if (upper.switch or plan.switch) == (lower.switch or plan.switch) else 1
        )
        need = Need(
            _rate_Bps(plan, world, tier, rate_Bps),
            near_links,
            far_links,
            _length_m(plan, world, tier),
        )
        near = _ports(links[:, 1], upper.switches)
        yield Class(f"{lower.name}-{upper.name}", upper.name, lower.name, links, near, need)


def _cage_links(plan: Plan, world: World, tier: int) -> int:
    """Return the links in one cage of a tier's switch."""
    switch = plan.tiers[tier].switch or plan.switch
    return math.ceil(switch.radix / max(1.0, world.number("switch", switch.id, "cages")))


def _rate_Bps(plan: Plan, world: World, tier: int, rate_Bps: float) -> float:
    """Return the rate of the links up to a tier: the plan's, or that of a port of the tier's own
    model."""
    switch = plan.tiers[tier].switch
    if switch is None:
        return rate_Bps
    split = max(1.0, switch.radix / world.number("switch", switch.id, "radix"))
    return world.number("switch", switch.id, "port_Bps") / split


def _same_technology(world: World, switch: str, technology: str) -> None:
    spoken = world.text("switch", switch, "technology")
    spoken = "ethernet" if spoken in ("management", "scaleup", "slingshot") else spoken
    if technology != spoken:
        raise UserError(
            f"switch '{switch}' speaks {spoken}, not {technology}",
            hint="choose a switch that speaks it",
        )


def _server_links(
    plan: Plan, world: World, nic_id: str | None, nics_per_server: int, server_id: str | None
) -> int:
    """Return the links in one cage of a server."""
    ports = plan.demand.rails * plan.demand.planes
    cages = nics_per_server
    own = server_id is not None and nic_id == world.text("server", server_id, "nic")
    if (
        server_id is not None
        and own
        and nics_per_server == world.number("server", server_id, "nics")
    ):
        cages = int(world.number("server", server_id, "nic_cages"))
    return math.ceil(ports / max(1, cages))


def _length_m(plan: Plan, world: World, tier: int) -> float:
    known = world.catalog.ids("cabling")
    # The central length, so that a drawn world is built of the same pieces; the lines' notes tell
    # it.
    return float(
        world.catalog.fact(
            "cabling", plan.topology if plan.topology in known else "other", LENGTHS[tier]
        ).value
    )


def _joined(world: World, links: Class) -> Iterator[Line]:
    """Yield the lines of one class of links."""
    need, joint = links.need, choose(world.catalog, links.need)
    if joint.cable is not None:
        yield _cable_line(world, joint.cable, f"{links.name}: cables", _cables(links), need)
        return
    near, far, fibre = _pieces(joint)
    at_near = _cages(links.near_ports, need.near_links)
    at_far = _cages(_ports(links.ends[:, 0]), need.far_links)
    yield _cable_line(world, near, f"{links.name}: transceivers at the {links.near}", at_near, need)
    yield _cable_line(world, far, f"{links.name}: transceivers at the {links.far}", at_far, need)
    yield _cable_line(
        world, fibre, f"{links.name}: fibres", math.ceil(len(links.ends) / fibre.links), need
    )


def _manager(plan: Plan, world: World, rate_Bps: float) -> Iterator[Line]:
    """Yield the lines of the fabric manager's links: a transceiver each, two links on a splitter
    fibre."""
    if not plan.reserved_links:
        return
    length_m = float(world.catalog.fact("cabling", "other", "server_leaf_m").value)
    need = Need(rate_Bps, _cage_links(plan, world, 0), 1, length_m)
    joint = choose(world.catalog, need)
    if joint.cable is not None:
        yield _cable_line(world, joint.cable, "fabric manager: cables", plan.reserved_links, need)
        return
    _, far, fibre = _pieces(joint)
    splitters = [
        p
        for p in parts(world.catalog)
        if p.type == "fibre" and p.links == 2 and p.rate_Bps == fibre.rate_Bps
    ]
    fibre = min(splitters, key=lambda p: p.id, default=fibre)
    yield _cable_line(world, far, "fabric manager: transceivers", plan.reserved_links, need)
    count = math.ceil(plan.reserved_links / fibre.links)
    what = "splitters" if splitters else "straight"
    yield _cable_line(world, fibre, f"fabric manager: {what}", count, need)


def _pieces(joint: Joint) -> tuple[Part, Part, Part]:
    if joint.near is None or joint.far is None or joint.fibre is None:
        raise InternalError("a joint has neither a cable nor transceivers with fibre")
    return joint.near, joint.far, joint.fibre


def _ports(ends: Counts, switches: int = 0) -> Counts:
    """Return how many links end at each switch or server."""
    return np.bincount(ends, minlength=switches).astype(np.int64)


def _with_reserved(ports: Counts, reserved: int) -> Counts:
    """Give the fabric manager's links to the leaves with the most free ports, one each in turn."""
    if not reserved:
        return ports
    each, rest = divmod(reserved, len(ports))
    ports = ports + each
    ports[np.argsort(ports, kind="stable")[:rest]] += 1
    return ports


def _cages(ports: Counts, links_per_cage: int) -> int:
    return int((-(-ports // links_per_cage)).sum())


def _cables(links: Class) -> int:
    """Return the number of whole cables: one with several links at both ends joins one pair of
    boxes."""
    if links.need.far_links == 1:
        return _cages(_ports(links.ends[:, 1]), links.need.near_links)
    _, multiplicity = np.unique(links.ends, axis=0, return_counts=True)
    return _cages(multiplicity.astype(np.int64), links.need.near_links)


def _price_USD(world: World, id: str) -> float:
    if not world.has("price", id, "price_USD"):
        raise UserError(
            f"the catalog has no price of '{id}'", hint=f"set price.{id}.price_USD under overrides:"
        )
    return world.number("price", id, "price_USD")


def _line(world: World, kind: str, id: str, what: str, count: int, note: str = "") -> Line:
    unit_USD, unit_W = _price_USD(world, id), world.number(kind, id, "power_W")
    return Line(kind, id, what, count, unit_USD, unit_USD * count, unit_W * count, note)


def _cable_line(world: World, part: Part, what: str, count: int, need: Need) -> Line:
    links = f"{part.links} links each" if part.links > 1 else "a link each"
    return _line(world, "cable", part.id, what, count, f"{links}, {need.length_m:.3g} m")
