"""What of a fabric is drawn. One idea: choose whole representatives and count the rest, so that no
drawing is a hairball.

A view has rows (servers, then each role of the plan) of boxes and gaps. A gap says how many boxes
are not drawn at that place; drawn and counted boxes of a row always add up to the row's number of
switches. Links within a role are drawn as arcs over its row.

    core            [1] · 30 more ·   [32]
    spine      [1] · 30 more · [32]   126 pods more   [1] · … · [32]
    leaf       [1] … [8] · 24 more                    · 24 more · [25] … [32]
    servers    [servers 1–32]  ·      16,320 more     ·  [servers 16,353–16,384]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eastwest.errors import InternalError
from eastwest.fabric.laws import components
from eastwest.fabric.plan import CableClass, Plan

MOST_SWITCHES = 64  # of one tier that are drawn one by one
MOST_UNITS = 8  # groups of servers that are drawn one by one
MOST_SERVERS = 12  # servers that are drawn one by one
MOST_BLOCKS = 3  # pods or planes of a large fabric that are drawn one by one
SERVERS = "servers"

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Box:
    """A switch, or servers that hang on the same leaves (``members`` of them)."""

    index: int  # in its tier, or the unit's number
    label: str
    title: str
    rail: int  # -1 where it serves several
    members: int = 1


@dataclass(frozen=True, slots=True)
class Gap:
    """So many boxes (or ``members`` in them) are not drawn here; ``blocks`` whole pods among
    them."""

    count: int
    blocks: int = 0


Item = Box | Gap


@dataclass(frozen=True, slots=True)
class Row:
    """One role: its drawn boxes by column (a pod or plane; one column where it spans all)."""

    name: str
    total: int
    note: str
    columns: tuple[tuple[Item, ...], ...]

    @property
    def boxes(self) -> list[Box]:
        """All boxes that are drawn."""
        return [item for column in self.columns for item in column if isinstance(item, Box)]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Parallel cables of one class between two drawn boxes; rows are numbered from the servers'."""

    rows: tuple[int, int]  # of the lower and of the upper end; the same for links within a row
    lower: int
    upper: int
    cables: int
    rail: int


@dataclass(frozen=True, slots=True)
class View:
    """What is drawn: rows from the servers up, bundles between them, column names (of pods or
    planes), rails.

    Properties, checked by :meth:`check`:

    - boxes and gaps of a row add up to its total;
    - a bundle joins drawn boxes of its rows.
    """

    rows: tuple[Row, ...]
    bundles: tuple[Bundle, ...]
    columns: tuple[str, ...]
    noun: str
    rails: int
    complete: bool

    def check(self) -> None:
        """Raise InternalError if a property of the class docstring does not hold."""
        for row in self.rows:
            seen = sum(
                (i.members if row.name == SERVERS else 1) if isinstance(i, Box) else i.count
                for column in row.columns
                for i in column
            )
            # Property: boxes and gaps of a row add up to its total.
            if seen != row.total:
                raise InternalError(
                    f"drawing: {row.name}: {seen} of {row.total} are drawn or counted"
                )
        drawn = [{b.index for b in row.boxes} for row in self.rows]
        # Property: a bundle joins drawn boxes of its rows.
        if any(
            b.lower not in drawn[b.rows[0]] or b.upper not in drawn[b.rows[1]] for b in self.bundles
        ):
            raise InternalError("drawing: a bundle ends at a box that is not drawn")


def _ends(items: Sequence[int], most: int) -> list[int]:
    """Return the first ones and the last one, ``most`` in all."""
    return list(items) if len(items) <= most else [*items[: most - 1], items[-1]]


def _units(plan: Plan) -> tuple[Ints, list[list[int]]]:
    """Return each server's unit and each unit's leaves: servers on the very same leaves are one
    unit."""
    demand, links = plan.demand, plan.attach.ends.astype(np.int64)
    per_server = demand.rails * demand.planes
    leaves = np.full((demand.servers, per_server), -1, np.int64)
    leaves[links[:, 0] // per_server, links[:, 0] % per_server] = links[:, 1]
    _, first, unit = np.unique(
        np.sort(leaves, axis=1), axis=0, return_index=True, return_inverse=True
    )
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    unit = rank[unit.reshape(-1)]
    if demand.servers <= MOST_SERVERS:
        unit, first = np.arange(demand.servers), np.arange(demand.servers)
    representative = np.sort(first)
    return unit, [sorted({int(x) for x in leaves[s] if x >= 0}) for s in representative]


def _single(owner: Ints, values: Ints, count: int) -> list[int]:
    """Return, for each owner, its value if all of its values are the same, else -1; -1 for an owner
    without any."""
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    np.minimum.at(low, owner, values)
    np.maximum.at(high, owner, values)
    return [int(a) if a == b else -1 for a, b in zip(low, high, strict=True)]


def _neighbours(links: Ints, chosen: Iterable[int]) -> dict[int, list[int]]:
    """Return the upper ends of each chosen lower end."""
    wanted = np.array(sorted(chosen), np.int64)
    part = np.unique(links[np.isin(links[:, 0], wanted)], axis=0)
    found: dict[int, list[int]] = {int(w): [] for w in wanted}
    for low, up in part.tolist():
        found[low].append(up)
    return found


@dataclass(frozen=True, slots=True)
class _Pods:
    """Switches with servers by block: parts that are connected apart, and pods in them."""

    names: list[str]
    noun: str  # what they are called: pods, rails, planes
    block: list[int]

    def members(self, block: int) -> list[int]:
        """Return the switches of a block."""
        return [i for i, b in enumerate(self.block) if b == block]


def _ranked(values: Ints) -> Ints:
    """Return the values as numbers from 0, in the order in which they first appear."""
    _, first, which = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[which.reshape(-1)]


def _groups(plan: Plan) -> tuple[Ints, str]:
    """Return the group of each switch with servers, and what such a group is called.

    Switches that reach the same ones above are a pod. Where they are cabled to each other, it is
    their widest place instead.
    """
    role = plan.roles[plan.role(plan.attach.upper)]
    across = any(links.lower == links.upper == role.name for links in plan.trunks)
    if across and role.places:
        return role.places[0].number.astype(np.int64), role.places[0].word
    above = next((li for li in plan.trunks if li.lower == role.name), None)
    if above is None or across:
        return np.zeros(role.count, np.int64), "pod"
    lowest = np.full(role.count, np.iinfo(np.int64).max)
    np.minimum.at(lowest, above.ends[:, 0], above.ends[:, 1].astype(np.int64))
    return _ranked(lowest), "pod"


def _pods(plan: Plan, rails: list[int]) -> _Pods:
    """Group the switches with servers into the parts that are apart, and the pods in them."""
    role = plan.role(plan.attach.upper)
    start = plan.starts()[role]
    part = components(plan.starts()[-1], plan.trunk_ends())
    island = _ranked(part[start : start + plan.roles[role].count])
    group, word = _groups(plan)
    keys = list(zip(island.tolist(), group.tolist(), strict=True))
    number = {key: i for i, key in enumerate(sorted(set(keys)))}
    block = [number[key] for key in keys]
    names, noun = _pod_names(sorted(number), block, rails, plan.demand.rails, word)
    return _Pods(names, noun, block)


def _pod_names(
    keys: list[tuple[int, int]], leaf: list[int], rails: list[int], all_rails: int, word: str
) -> tuple[list[str], str]:
    """Return what each block is called, and what they are called together."""
    islands = len({island for island, _ in keys})
    if len(keys) == 1:
        return [""], ""
    if islands == 1:
        return [f"{word} {i + 1} of {len(keys)}" for i in range(len(keys))], f"{word}s"
    of = [{rails[j] for j, b in enumerate(leaf) if b == i} for i in range(len(keys))]
    by_rail = all(len(r) == 1 and min(r) >= 0 for r in of)
    names, seen = [], Counter[int]()
    for i, served in enumerate(of):
        rail = min(served, default=-1) if by_rail else -1
        seen[rail] += 1
        part = f"rail {rail + 1}" if by_rail else f"plane {keys[i][0] + 1}"
        again = len(keys) > all_rails and by_rail
        names.append(
            f"{part}, part {seen[rail]}"
            if again
            else part
            if len(keys) == islands
            else f"{part}, {word} {i + 1}"
        )
    return names, "rails" if by_rail and len(
        keys
    ) == all_rails else "planes" if not by_rail and len(keys) == islands else "parts"


def _chosen_leaves(pods: _Pods, blocks: list[int], first_unit: list[int]) -> list[int]:
    """Return representative leaves: the whole first unit of each drawn block, and the last of the
    last block."""
    most = max(4, 16 // len(blocks))
    chosen: list[int] = []
    for block in blocks:
        leaves = sorted(pods.members(block), key=lambda i: (first_unit[i], i))
        unit = first_unit[leaves[-1 if block == blocks[-1] and len(blocks) > 1 else 0]]
        whole = [i for i in leaves if first_unit[i] == unit]
        if len(whole) < 4:
            whole = _ends(leaves, most if len(blocks) == 1 else 4)
        elif len(blocks) == 1 and first_unit[leaves[-1]] != unit:
            whole += [i for i in leaves if first_unit[i] == first_unit[leaves[-1]]]
        chosen += _ends(whole, most)
    return chosen


def _items(
    order: Sequence[int], shown: set[int], box: dict[int, Box], weight: Sequence[int] | None = None
) -> list[Item]:
    """Return boxes for what is shown and gaps that count the runs of what is not."""
    items: list[Item] = []
    hidden = 0
    for index in order:
        if index in shown:
            if hidden:
                items.append(Gap(hidden))
            items.append(box[index])
            hidden = 0
        else:
            hidden += weight[index] if weight is not None else 1
    return [*items, Gap(hidden)] if hidden else items


def _columns(
    blocks: list[int], of_block: dict[int, list[Item]], sizes: Counter[int]
) -> list[list[Item]]:
    """Return one column a drawn block, and one that counts the blocks in between where some are
    left out."""
    columns: list[list[Item]] = []
    for at, block in enumerate(blocks):
        if at and block > blocks[at - 1] + 1:
            between = range(blocks[at - 1] + 1, block)
            columns.append([Gap(sum(sizes[b] for b in between), len(between))])
        columns.append(of_block[block])
    return columns


def _ports(plan: Plan, role: int, word: str) -> str:
    """Return the ports of a role in words, such as ``32 ports down, 32 up``."""
    ways = zip(plan.ports(role), ("down", "up", "across"), strict=True)
    said = [f"{n} {way}" for n, way in ways if n]
    return ", ".join([said[0].replace(" ", f" {word}", 1), *said[1:]]) if said else "no ports"


def _switch_boxes(plan: Plan, role: int, rails: Sequence[int]) -> dict[int, Box]:
    name, ports = plan.roles[role].name, f"up to {_ports(plan, role, 'ports ')}"
    titles = [
        f"{name} switch {i + 1}" + (f", rail {r + 1}" if r >= 0 else "")
        for i, r in enumerate(rails)
    ]
    return {i: Box(i, str(i + 1), f"{titles[i]}: {ports}", rail) for i, rail in enumerate(rails)}


def _server_row(plan: Plan, unit: Ints, shown: set[int]) -> Row:
    """Return the row of servers; units count as their members."""
    sizes = np.bincount(unit).tolist()
    boxes = {}
    for u in shown:
        members = np.flatnonzero(unit == u)
        low, high = int(members[0]) + 1, int(members[-1]) + 1
        run = high - low + 1 == len(members)
        label = f"server {low}" if len(members) == 1 else f"{len(members):,} servers"
        numbers = f"servers {low:,}–{high:,}" if run and len(members) > 1 else label
        boxes[u] = Box(u, label, f"{numbers}, {plan.demand.rails} NICs each", -1, len(members))
    items = _items(range(len(sizes)), shown, boxes, sizes)
    nics = plan.demand.rails
    note = f"{nics} NIC{'s' * (nics > 1)} each" + (
        f" with {plan.demand.planes} ports" if plan.demand.planes > 1 else ""
    )
    return Row(SERVERS, plan.demand.servers, note, (tuple(items),))


def _bundles(rows: tuple[int, int], pairs: Ints, rails: Ints) -> list[Bundle]:
    """Return parallel cables as one bundle; its rail if all are of one."""
    if not len(pairs):
        return []
    unique, which, count = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    rail = _single(which.reshape(-1), rails, len(unique))
    return [
        Bundle(rows, int(a), int(b), int(n), r)
        for (a, b), n, r in zip(unique, count, rail, strict=True)
    ]


def _server_bundles(
    plan: Plan, unit: Ints, units: set[int], leaves: set[int], row: int
) -> list[Bundle]:
    """Return the cables of the drawn servers, one bundle a unit, leaf and rail."""
    links = plan.attach.ends.astype(np.int64)
    per_server = plan.demand.rails * plan.demand.planes
    owner, rail = (
        unit[links[:, 0] // per_server],
        links[:, 0] // plan.demand.planes % plan.demand.rails,
    )
    keep = np.isin(owner, sorted(units)) & np.isin(links[:, 1], sorted(leaves))
    triples = np.stack([owner[keep], links[keep, 1], rail[keep]], axis=1)
    unique, count = np.unique(triples, axis=0, return_counts=True)
    return [
        Bundle((0, row), int(u), int(leaf), int(n), int(r))
        for (u, leaf, r), n in zip(unique, count, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Choice:
    """What of the plan is drawn: blocks, switches with servers, units of servers; and what is known
    of them all."""

    pods: _Pods
    rails: list[int]  # of each switch with servers
    unit: Ints
    first_unit: list[int]  # of each such switch; beyond the last where no server is on it
    small: bool
    blocks: list[int]
    switches: set[int]
    units: set[int]


def _choose(plan: Plan) -> _Choice:
    links, demand = plan.attach.ends.astype(np.int64), plan.demand
    count = plan.roles[plan.role(plan.attach.upper)].count
    rail_of_port = links[:, 0] % (demand.rails * demand.planes) // demand.planes
    rails = _single(links[:, 1], rail_of_port, count)
    unit, on = _units(plan)
    first_unit = [len(on)] * count
    for u in reversed(range(len(on))):
        for switch in on[u]:
            first_unit[switch] = u
    pods = _pods(plan, rails)
    small = all(role.count <= MOST_SWITCHES for role in plan.roles)
    names = len(pods.names)
    if small:
        blocks, chosen = list(range(names)), set(range(count))
        units = set(_ends(range(len(on)), MOST_UNITS))
    else:
        blocks = list(range(names)) if names <= MOST_BLOCKS else [0, names - 1]
        chosen = set(_chosen_leaves(pods, blocks, first_unit))
        units = set(_ends(sorted({first_unit[i] for i in chosen} - {len(on)}), MOST_UNITS))
    return _Choice(pods, rails, unit, first_unit, small, blocks, chosen, units)


@dataclass(frozen=True, slots=True)
class _Level:
    """What of one role is drawn, and what is known of all its switches."""

    shown: set[int]
    rails: list[int]
    block: list[int]  # -1: it serves several


def _attached(plan: Plan, c: _Choice) -> _Level:
    return _Level(c.switches, c.rails, c.pods.block)


def _above(plan: Plan, role: int, levels: dict[str, _Level], c: _Choice) -> _Level:
    """Return what is drawn of a role: all of a small network, else what drawn switches reach."""
    count, name = plan.roles[role].count, plan.roles[role].name
    below = [li for li in plan.trunks if li.upper == name and li.lower in levels]
    if not below:
        shown = set(range(count) if c.small else _ends(range(count), 6))
        return _Level(shown, [-1] * count, [-1] * count)
    links = below[0]
    lower, ends = levels[links.lower], links.ends.astype(np.int64)
    rails = _single(ends[:, 1], np.array(lower.rails)[ends[:, 0]], count)
    block = _single(ends[:, 1], np.array(lower.block)[ends[:, 0]], count)
    shown = set(range(count)) if c.small else _reached(links, lower, c, by_block=min(block) >= 0)
    return _Level(shown, rails, block)


def _reached(links: CableClass, lower: _Level, c: _Choice, by_block: bool) -> set[int]:
    """Return some of the upper ends that drawn switches are cabled to, of each block if wanted."""
    near = _neighbours(links.ends.astype(np.int64), lower.shown)
    if not by_block:
        return set(
            _ends(sorted({u for low in lower.shown for u in near[low][:1] + near[low][-1:]}), 6)
        )
    chosen: set[int] = set()
    for block in c.blocks:
        own = [low for low in lower.shown if lower.block[low] == block]
        chosen |= set(
            _ends(sorted({u for low in own for u in near[low]}), max(3, 12 // len(c.blocks)))
        )
    return chosen


def _role_row(plan: Plan, role: int, level: _Level, c: _Choice) -> Row:
    """Return the row of a role: a column a block where each switch serves one, else one column."""
    boxes, count = _switch_boxes(plan, role, level.rails), plan.roles[role].count
    attached = plan.roles[role].name == plan.attach.upper
    about = plan.roles[role]
    note = "of another network" if about.shared else _note(plan, role)
    if not attached and min(level.block, default=-1) < 0:
        columns = [_items(range(count), level.shown, boxes)]
        return Row(about.name, count, note, tuple(tuple(column) for column in columns))
    order = {b: [i for i, block in enumerate(level.block) if block == b] for b in c.blocks}
    if attached:
        order = {b: sorted(own, key=lambda i: (c.first_unit[i], i)) for b, own in order.items()}
    by_block = {b: _items(order[b], level.shown, boxes) for b in c.blocks}
    columns = _columns(c.blocks, by_block, Counter(level.block))
    return Row(about.name, count, note, tuple(tuple(column) for column in columns))


def _note(plan: Plan, role: int) -> str:
    _, up, across = plan.ports(role)
    return _ports(plan, role, "" if up or across else "ports ")


def _column_names(c: _Choice) -> tuple[str, ...]:
    """Return the names of the columns; the one that counts the left-out blocks has none."""
    names = [c.pods.names[b] for b in c.blocks]
    for at in range(len(c.blocks) - 1, 0, -1):
        if c.blocks[at] > c.blocks[at - 1] + 1:
            names.insert(at, "")
    return tuple(names)


def view(plan: Plan) -> View:
    """Return what to draw of a plan: everything where it is small, representatives and counts where
    it is large."""
    c = _choose(plan)
    attached = plan.role(plan.attach.upper)
    levels = {plan.attach.upper: _attached(plan, c)}
    for role, about in enumerate(plan.roles):
        if role != attached:
            levels[about.name] = _above(plan, role, levels, c)
    rows = [_server_row(plan, c.unit, c.units)]
    rows += [_role_row(plan, i, levels[about.name], c) for i, about in enumerate(plan.roles)]
    bundles = _server_bundles(plan, c.unit, c.units, c.switches, attached + 1)
    for links in plan.trunks:
        bundles += _trunk_bundles(plan, links, levels)
    complete = not any(isinstance(i, Gap) for row in rows for column in row.columns for i in column)
    names = _column_names(c)
    seen = View(tuple(rows), tuple(bundles), names, c.pods.noun, plan.demand.rails, complete)
    seen.check()
    return seen


def _trunk_bundles(plan: Plan, links: CableClass, levels: dict[str, _Level]) -> list[Bundle]:
    """Return the drawn bundles of a class of links between switches."""
    lower, upper = levels[links.lower], levels[links.upper]
    ends = links.ends.astype(np.int64)
    keep = np.isin(ends[:, 0], sorted(lower.shown)) & np.isin(ends[:, 1], sorted(upper.shown))
    rails = np.array(lower.rails)[ends[:, 0]]
    if links.lower == links.upper:
        rails = np.where(rails == np.array(upper.rails)[ends[:, 1]], rails, -1)
    rows = plan.role(links.lower) + 1, plan.role(links.upper) + 1
    return _bundles(rows, ends[keep], rails[keep])
