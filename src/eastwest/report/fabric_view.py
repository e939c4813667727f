"""What of a fabric is drawn. One idea: choose whole representatives and count the rest, so that no
drawing is a hairball.

A view has rows (servers, leaf, spine, core) of boxes and gaps. A gap says how many boxes are not
drawn at that place; drawn and counted boxes of a row always add up to the row's number of switches.

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
from eastwest.fabric.topology import Plan

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
    """One tier: its drawn boxes by column (a pod or plane; one column where the tier spans all)."""

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
    """Parallel cables between two drawn boxes; ``tier`` is the lower row's number, servers 0."""

    tier: int
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
    - a bundle joins drawn boxes of neighbouring rows.
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
        # Property: a bundle joins drawn boxes of neighbouring rows.
        if any(
            b.lower not in drawn[b.tier] or b.upper not in drawn[b.tier + 1] for b in self.bundles
        ):
            raise InternalError("drawing: a bundle ends at a box that is not drawn")


def _ends(items: Sequence[int], most: int) -> list[int]:
    """Return the first ones and the last one, ``most`` in all."""
    return list(items) if len(items) <= most else [*items[: most - 1], items[-1]]


def _units(plan: Plan) -> tuple[Ints, list[list[int]]]:
    """Return each server's unit and each unit's leaves: servers on the very same leaves are one
    unit."""
    demand, links = plan.demand, np.asarray(plan.links[0], np.int64)
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
    """Leaves and spines by pod: the block of each leaf and spine (-1: a spine that serves
    several)."""

    names: list[str]
    noun: str  # what they are called: pods, rails, planes
    leaf: list[int]
    spine: list[int]

    def leaves(self, block: int) -> list[int]:
        """Return the leaves of a block."""
        return [i for i, b in enumerate(self.leaf) if b == block]

    def spines(self, block: int) -> list[int]:
        """Return the spines of a block."""
        return [i for i, b in enumerate(self.spine) if b == block]


def _pods(plan: Plan, rails: list[int]) -> _Pods:
    """Group the leaves into the parts that are connected apart from the others, and the pods in
    them."""
    island, group = (
        np.asarray(a, np.int64).reshape(-1) for a in (plan.leaf_island, plan.leaf_group)
    )
    keys = sorted(set(zip(island.tolist(), group.tolist(), strict=True)))
    number = {key: i for i, key in enumerate(keys)}
    leaf = [number[key] for key in zip(island.tolist(), group.tolist(), strict=True)]
    spine: list[int] = []
    if len(plan.links) > 1 and len(plan.links[1]):
        links = np.asarray(plan.links[1], np.int64)
        spine = _single(links[:, 1], np.array(leaf)[links[:, 0]], plan.tiers[1].switches)
    names, noun = _pod_names(keys, leaf, rails, plan.demand.rails)
    return _Pods(names, noun, leaf, spine)


def _pod_names(
    keys: list[tuple[int, int]], leaf: list[int], rails: list[int], all_rails: int
) -> tuple[list[str], str]:
    """Return what each block is called, and what they are called together."""
    islands = len({island for island, _ in keys})
    if len(keys) == 1:
        return [""], ""
    if islands == 1:
        return [f"pod {i + 1} of {len(keys)}" for i in range(len(keys))], "pods"
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
            else f"{part}, pod {i + 1}"
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
        leaves = sorted(pods.leaves(block), key=lambda i: (first_unit[i], i))
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


def _switch_boxes(plan: Plan, tier: int, rails: Sequence[int]) -> dict[int, Box]:
    about = plan.tiers[tier]
    ports = (
        f"up to {about.down} ports down, {about.up} up"
        if about.up
        else f"up to {about.down} ports down"
    )
    titles = [
        f"{about.name} switch {i + 1}" + (f", rail {r + 1}" if r >= 0 else "")
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


def _bundles(tier: int, pairs: Ints, rails: Ints) -> list[Bundle]:
    """Return parallel cables as one bundle; its rail if all are of one."""
    if not len(pairs):
        return []
    unique, which, count = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    rail = _single(which.reshape(-1), rails, len(unique))
    return [
        Bundle(tier, int(a), int(b), int(n), r)
        for (a, b), n, r in zip(unique, count, rail, strict=True)
    ]


def _server_bundles(plan: Plan, unit: Ints, units: set[int], leaves: set[int]) -> list[Bundle]:
    """Return the cables of the drawn servers, one bundle a unit, leaf and rail."""
    links = np.asarray(plan.links[0], np.int64)
    per_server = plan.demand.rails * plan.demand.planes
    owner, rail = (
        unit[links[:, 0] // per_server],
        links[:, 0] // plan.demand.planes % plan.demand.rails,
    )
    keep = np.isin(owner, sorted(units)) & np.isin(links[:, 1], sorted(leaves))
    triples = np.stack([owner[keep], links[keep, 1], rail[keep]], axis=1)
    unique, count = np.unique(triples, axis=0, return_counts=True)
    return [
        Bundle(0, int(u), int(leaf), int(n), int(r))
        for (u, leaf, r), n in zip(unique, count, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Choice:
    """What of the plan is drawn: blocks (pods), leaves, units of servers; and what is known of them
    all."""

    pods: _Pods
    leaf_rail: list[int]
    unit: Ints
    first_unit: list[int]  # of each leaf; beyond the last where no server is on it
    small: bool
    blocks: list[int]
    leaves: set[int]
    units: set[int]


def _choose(plan: Plan) -> _Choice:
    links, demand = np.asarray(plan.links[0], np.int64), plan.demand
    rail_of_port = links[:, 0] % (demand.rails * demand.planes) // demand.planes
    leaf_rail = _single(links[:, 1], rail_of_port, plan.tiers[0].switches)
    unit, unit_leaves = _units(plan)
    first_unit = [len(unit_leaves)] * plan.tiers[0].switches
    for u in reversed(range(len(unit_leaves))):
        for leaf in unit_leaves[u]:
            first_unit[leaf] = u
    pods = _pods(plan, leaf_rail)
    small = all(t.switches <= MOST_SWITCHES for t in plan.tiers)
    count = len(pods.names)
    if small:
        blocks, leaves = list(range(count)), set(range(plan.tiers[0].switches))
        units = set(_ends(range(len(unit_leaves)), MOST_UNITS))
    else:
        blocks = list(range(count)) if count <= MOST_BLOCKS else [0, count - 1]
        leaves = set(_chosen_leaves(pods, blocks, first_unit))
        units = set(_ends(sorted({first_unit[i] for i in leaves} - {len(unit_leaves)}), MOST_UNITS))
    return _Choice(pods, leaf_rail, unit, first_unit, small, blocks, leaves, units)


def _leaf_row(plan: Plan, c: _Choice) -> Row:
    boxes = _switch_boxes(plan, 0, c.leaf_rail)
    order = {b: sorted(c.pods.leaves(b), key=lambda i: (c.first_unit[i], i)) for b in c.blocks}
    by_block = {b: _items(order[b], c.leaves, boxes) for b in c.blocks}
    return _row(plan, 0, _columns(c.blocks, by_block, Counter(c.pods.leaf)))


def _spine_row(plan: Plan, c: _Choice, spines: set[int], rails: list[int]) -> Row:
    boxes = _switch_boxes(plan, 1, rails)
    if any(b < 0 for b in c.pods.spine):
        return _row(plan, 1, [_items(range(plan.tiers[1].switches), spines, boxes)])
    by_block = {b: _items(c.pods.spines(b), spines, boxes) for b in c.blocks}
    return _row(plan, 1, _columns(c.blocks, by_block, Counter(c.pods.spine)))


def _column_names(c: _Choice) -> tuple[str, ...]:
    """Return the names of the columns; the one that counts the left-out blocks has none."""
    names = [c.pods.names[b] for b in c.blocks]
    for at in range(len(c.blocks) - 1, 0, -1):
        if c.blocks[at] > c.blocks[at - 1] + 1:
            names.insert(at, "")
    return tuple(names)


def _upper(
    plan: Plan, tier: int, lower_rails: list[int], lower: set[int], upper: set[int]
) -> tuple[list[int], list[Bundle]]:
    """Return the rail of each switch of a tier above the leaves, and the drawn bundles below it."""
    links = np.asarray(plan.links[tier], np.int64).reshape(-1, 2)
    rails = np.array(lower_rails)[links[:, 0]]
    keep = np.isin(links[:, 0], sorted(lower)) & np.isin(links[:, 1], sorted(upper))
    return _single(links[:, 1], rails, plan.tiers[tier].switches), _bundles(
        tier, links[keep], rails[keep]
    )


def view(plan: Plan) -> View:
    """Return what to draw of a plan: everything where it is small, representatives and counts where
    it is large."""
    c = _choose(plan)
    rows = [_server_row(plan, c.unit, c.units), _leaf_row(plan, c)]
    bundles = _server_bundles(plan, c.unit, c.units, c.leaves)
    if len(plan.tiers) > 1:
        spines = _chosen_spines(plan, c)
        spine_rails, cables = _upper(plan, 1, c.leaf_rail, c.leaves, spines)
        rows.append(_spine_row(plan, c, spines, spine_rails))
        bundles += cables
    if len(plan.tiers) > 2:
        cores = _chosen_cores(plan, spines, c.small)
        core_rails, cables = _upper(plan, 2, spine_rails, spines, cores)
        rows.append(
            _row(
                plan,
                2,
                [_items(range(plan.tiers[2].switches), cores, _switch_boxes(plan, 2, core_rails))],
            )
        )
        bundles += cables
    complete = not any(isinstance(i, Gap) for row in rows for column in row.columns for i in column)
    seen = View(
        tuple(rows), tuple(bundles), _column_names(c), c.pods.noun, plan.demand.rails, complete
    )
    seen.check()
    return seen


def _row(plan: Plan, tier: int, columns: Sequence[Sequence[Item]]) -> Row:
    about = plan.tiers[tier]
    note = f"{about.down} down, {about.up} up" if about.up else f"{about.down} ports down"
    note = "of another network" if about.shared else note
    return Row(about.name, about.switches, note, tuple(tuple(c) for c in columns))


def _chosen_spines(plan: Plan, c: _Choice) -> set[int]:
    """Return the spines to draw: all of a small fabric, else some of those that the drawn leaves
    are cabled to."""
    if c.small:
        return set(range(plan.tiers[1].switches))
    chosen: set[int] = set()
    near = _neighbours(np.asarray(plan.links[1], np.int64), c.leaves)
    most = max(3, 12 // len(c.blocks))
    for block in c.blocks:
        reach = sorted({s for leaf in c.leaves if c.pods.leaf[leaf] == block for s in near[leaf]})
        chosen |= set(_ends(reach, most))
    return chosen


def _chosen_cores(plan: Plan, spines: set[int], small: bool) -> set[int]:
    """Return the cores to draw: all of a small fabric, else the first and last of some drawn
    spines."""
    if small:
        return set(range(plan.tiers[2].switches))
    near = _neighbours(np.asarray(plan.links[2], np.int64), spines)
    return set(_ends(sorted({c for s in spines for c in near[s][:1] + near[s][-1:]}), 6))
