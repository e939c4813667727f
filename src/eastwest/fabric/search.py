"""Distances and bisection of any network. One idea: what no closed form tells, a search over the
switches does.

Ways are shortest by the number of links. The bisection is exact up to :data:`MOST_EXACT` switches
with ports; beyond, it is the best division found by sweeping the switches in their own order and in
the order of the graph's slowest vibration (Fiedler's vector), then moving single switches while
that helps: never less than the true one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eastwest.errors import InternalError
from eastwest.fabric.laws import components
from eastwest.fabric.plan import Crossing, Cut, Distance, Longs, Plan

Floats = NDArray[np.float64]

MOST_EXACT = 16
MOST_SPECTRAL = 2048  # switches whose dense Laplacian is still quick to diagonalise
MOST_SHIFTS = 64


@dataclass(frozen=True, slots=True)
class _Graph:
    """Switches as nodes: neighbours in CSR form, with the class of each link and each node's
    role."""

    start: Longs
    neighbour: Longs
    link_class: Longs
    role: Longs
    classes: int
    roles: int


def _graph(plan: Plan) -> _Graph:
    ends, starts = plan.trunk_ends(), plan.starts()
    number = {id(links): i for i, links in enumerate(plan.links)}
    classes = np.repeat(
        [number[id(links)] for links in plan.trunks], [links.count for links in plan.trunks]
    ).astype(np.int64)
    source = np.concatenate([ends[:, 0], ends[:, 1]])
    order = np.argsort(source, kind="stable")
    counts = np.bincount(source, minlength=starts[-1])
    return _Graph(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([ends[:, 1], ends[:, 0]])[order],
        np.concatenate([classes, classes])[order],
        np.repeat(np.arange(len(plan.roles)), [role.count for role in plan.roles]),
        len(plan.links),
        len(plan.roles),
    )


def _crossings(graph: _Graph, source: int) -> tuple[Longs, Longs]:
    """Return, for each switch, the hops from ``source`` (-1 where none leads) and what the way
    crosses: links by class, then switches by role."""
    nodes = len(graph.role)
    hops = np.full(nodes, -1, np.int64)
    crossed = np.zeros((nodes, graph.classes + graph.roles), np.int64)
    hops[source], crossed[source, graph.classes + graph.role[source]] = 0, 1
    front = np.array([source])
    while len(front):
        counts = graph.start[front + 1] - graph.start[front]
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        link = np.repeat(graph.start[front], counts) + offset
        before, after = np.repeat(front, counts), graph.neighbour[link]
        fresh = hops[after] < 0
        after, first = np.unique(after[fresh], return_index=True)
        before, link = before[fresh][first], link[fresh][first]
        hops[after] = hops[before] + 1
        crossed[after] = crossed[before]
        crossed[after, graph.link_class[link]] += 1
        crossed[after, graph.classes + graph.role[after]] += 1
        front = after
    return hops, crossed


def _as_crossing(graph: _Graph, crossed: Longs) -> Crossing:
    links, switches = crossed[: graph.classes].astype(float), crossed[graph.classes :].astype(float)
    links[0] = 2.0  # the cables of the two ports
    return Crossing(tuple(links.tolist()), tuple(switches.tolist()))


def between(plan: Plan, port_a: int, port_b: int) -> Crossing | None:
    """Return a shortest way between two distinct server ports; None where none joins them."""
    graph, switch = _graph(plan), plan.attach_switch()
    hops, crossed = _crossings(graph, int(switch[port_a]))
    there = int(switch[port_b])
    return _as_crossing(graph, crossed[there]) if hops[there] >= 0 else None


def distances(plan: Plan) -> tuple[Distance, ...]:
    """Return all classes of distances between server ports, nearest first.

    The work grows with the switches that have ports times all links between switches.
    """
    graph = _graph(plan)
    ports = np.bincount(plan.attach_switch(), minlength=len(graph.role))
    found: dict[Crossing, int] = {}
    for source in np.flatnonzero(ports).tolist():
        hops, crossed = _crossings(graph, source)
        pairs = int(ports[source]) * ports
        pairs[source] -= ports[source]  # a port is no pair with itself
        seen = np.flatnonzero((hops >= 0) & (pairs > 0))
        kinds, which = np.unique(crossed[seen], axis=0, return_inverse=True)
        sums = np.bincount(which.reshape(-1), pairs[seen], minlength=len(kinds))
        for kind, count in zip(kinds, sums.tolist(), strict=True):
            way = _as_crossing(graph, kind)
            found[way] = found.get(way, 0) + int(count)
    return tuple(Distance(w, n) for w, n in sorted(found.items(), key=lambda i: i[0].hops))


@dataclass(frozen=True, slots=True)
class _Part:
    """Switches that reach each other: ports on each, and the links between them."""

    ports: Longs
    ends: Longs
    link_Bps: Floats
    port_Bps: float

    def cost_Bps(self, sides: NDArray[np.bool_]) -> Floats:
        """Return the rate of each division; shape (divisions, switches), True for one side."""
        cut = (sides[:, self.ends[:, 0]] != sides[:, self.ends[:, 1]]) @ self.link_Bps
        one, half = sides @ self.ports, int(self.ports.sum()) // 2
        other = int(self.ports.sum()) - half
        cost: Floats = cut + np.minimum(np.abs(one - half), np.abs(one - other)) * self.port_Bps
        return cost


def bisection_Bps(plan: Plan) -> float:
    """Return the least rate between two halves of the server ports, one way, in bytes a second.

    Parts of the network that are not joined are halved each, and add up. A port on the wrong side
    of the halves costs its cable.
    """
    ends, nodes = plan.trunk_ends(), plan.starts()[-1]
    ports = np.bincount(plan.attach_switch(), minlength=nodes)
    rate = np.concatenate(
        [np.zeros(0), *(np.full(links.count, links.rate_Bps) for links in plan.trunks)]
    )
    part, total = components(nodes, ends), 0.0
    for number in np.unique(part[ports > 0]).tolist():
        own = np.flatnonzero(part == number)
        place = np.full(nodes, -1)
        place[own] = np.arange(len(own))
        here = part[ends[:, 0]] == number
        total += _halved_Bps(_Part(ports[own], place[ends[here]], rate[here], plan.attach.rate_Bps))
    return total


def _halved_Bps(part: _Part) -> float:
    switches = len(part.ports)
    if switches <= MOST_EXACT:
        numbers = np.arange(2 ** (switches - 1))
        sides = (numbers[:, None] >> np.arange(switches) & 1).astype(bool)
        return float(part.cost_Bps(sides).min())
    best = min((_swept(part, order) for order in _orders(part)), key=lambda found: found[0])
    return _improved(part, *best)


def _orders(part: _Part) -> list[Longs]:
    """Return orders of the switches whose prefixes are likely halves."""
    switches = len(part.ports)
    own = np.arange(switches)
    step = max(1, switches // MOST_SHIFTS)
    orders = [np.roll(own, -shift) for shift in range(0, switches, step)]
    if switches <= MOST_SPECTRAL:
        laplacian = np.zeros((switches, switches))
        np.subtract.at(laplacian, (part.ends[:, 0], part.ends[:, 1]), part.link_Bps)
        laplacian += laplacian.T
        np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
        _, vectors = np.linalg.eigh(laplacian)
        orders += [np.argsort(vectors[:, i], kind="stable") for i in range(1, min(4, switches))]
    return orders


def _swept(part: _Part, order: Longs) -> tuple[float, NDArray[np.bool_]]:
    """Return the cheapest division into a prefix of the order and the rest."""
    switches = len(order)
    at = np.empty(switches, np.int64)
    at[order] = np.arange(switches)
    low, high = np.sort(at[part.ends], axis=1).T
    change = np.bincount(low, part.link_Bps, switches) - np.bincount(high, part.link_Bps, switches)
    one, all_ports = np.cumsum(part.ports[order]), int(part.ports.sum())
    half, other = all_ports // 2, all_ports - all_ports // 2
    wrong = np.minimum(np.abs(one - half), np.abs(one - other))
    cost = np.cumsum(change) + wrong * part.port_Bps
    length = int(np.argmin(cost))
    return float(cost[length]), at <= length


def _improved(part: _Part, cost: float, side: NDArray[np.bool_]) -> float:
    """Move single switches to the other side while that makes the division cheaper."""
    switches = len(side)
    for _ in range(switches):
        weight = np.where(side[part.ends[:, 0]] != side[part.ends[:, 1]], 1.0, -1.0) * part.link_Bps
        gain = np.bincount(part.ends.reshape(-1), np.repeat(weight, 2), switches)
        moved = side.copy()
        candidates = np.argsort(-gain, kind="stable")[:8]
        tries = np.repeat(side[None], len(candidates), axis=0)
        tries[np.arange(len(candidates)), candidates] ^= True
        costs = part.cost_Bps(tries)
        least = int(np.argmin(costs))
        if costs[least] >= cost - 1e-9 * max(1.0, cost):
            return cost
        moved, cost = tries[least], float(costs[least])
        side = moved
    raise InternalError("a division of the network was improved without end")


def cuts(plan: Plan) -> tuple[Cut, ...]:
    """Return the division of the ports by their own switches: what each can send to the others."""
    ends, nodes = plan.trunk_ends(), plan.starts()[-1]
    rate = np.concatenate(
        [np.zeros(0), *(np.full(links.count, links.rate_Bps) for links in plan.trunks)]
    )
    out = np.bincount(ends.reshape(-1), np.repeat(rate, 2), nodes).astype(np.float64)
    return (Cut("links of a switch", plan.attach_switch().astype(np.int32), out),)
