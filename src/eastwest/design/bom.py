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
from eastwest.fabric.cabling import central_length_m
from eastwest.fabric.plan import SERVER, TARGET, Plan, Role
from eastwest.table import Column, Table
from eastwest.units import format_money

Counts = NDArray[np.int64]


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
    nic_id: str | None,
    nics_per_server: int,
    server_id: str | None = None,
) -> Bill:
    """Count and price what a planned network is built of.

    Parameters
    ----------
    plan : the structure, every class of links at its rate.
    network : its name for people (compute, storage, management).
    technology : ``infiniband`` or ``ethernet``; the switch must speak it.
    nic_id : the network card to buy, or None where the servers bring it.
    nics_per_server : cards a server.
    server_id : the server, if its cages are to be counted as it has them (a DGX H100 leads eight
        NICs to four twin-port cages); without it each card has one cage.

    Raises UserError if the switch speaks another technology, no cable fits, or a price is unknown.
    """
    for switch in {role.switch.id for role in plan.roles if not role.shared}:
        _same_technology(world, switch, technology)
    lines = list(_switches(plan, world))
    if nic_id is not None:
        cards = plan.demand.servers * nics_per_server
        lines.append(_line(world, "nic", nic_id, "NICs", cards))
    server_links = _server_links(plan, world, nic_id, nics_per_server, server_id)
    for links in _classes(plan, world, server_links):
        lines += _joined(world, links)
    lines += _manager(plan, world)
    return Bill(network, technology, tuple(line for line in lines if line.count))


def _switches(plan: Plan, world: World) -> Iterator[Line]:
    """Yield a line for each model of switch; a shared role is bought with another network."""
    count: dict[str, int] = {}
    for role in plan.roles:
        if not role.shared:
            count[role.switch.id] = count.get(role.switch.id, 0) + role.count
    for model, switches in count.items():
        yield _line(world, "switch", model, "switches", switches)


def _classes(plan: Plan, world: World, server_links: int) -> Iterator[Class]:
    """Yield each class of links with its ends, first those of servers and targets."""
    for links in sorted(plan.links, key=lambda li: (li.lower not in (SERVER, TARGET),)):
        if not links.count:
            continue
        ends, upper = links.ends.astype(np.int64), plan.roles[plan.role(links.upper)]
        near = _ports(ends[:, 1], upper.count)
        near_links, far_links = _cage_links(upper, world), 1
        if links.lower == SERVER:
            ends = ends // np.array([plan.demand.rails * plan.demand.planes, 1])
            near, far_links = _with_reserved(near, plan.reserved_links), server_links
        elif links.lower != TARGET and plan.roles[plan.role(links.lower)].switch == upper.switch:
            # Between models the lower one has uplink cages of their own, one link each.
            far_links = near_links
        length = central_length_m(world, plan, links)
        need = Need(links.rate_Bps, near_links, far_links, length, links.medium)
        yield Class(links.name, links.upper, links.lower, ends, near, need)


def _cage_links(role: Role, world: World) -> int:
    """Return the links in one cage of a role's switch; one where another network has it."""
    if role.shared:
        return 1
    cages = world.number("switch", role.switch.id, "cages")
    return math.ceil(role.switch.radix / max(1.0, cages))


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


def _manager(plan: Plan, world: World) -> Iterator[Line]:
    """Yield the lines of the fabric manager's links: a transceiver each, two links on a splitter
    fibre."""
    if not plan.reserved_links:
        return
    length_m = float(world.catalog.fact("cabling", "other", plan.attach.length).value)
    leaf = plan.roles[plan.role(plan.attach.upper)]
    need = Need(plan.attach.rate_Bps, _cage_links(leaf, world), 1, length_m)
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
