"""Weighted max-min fair rates. One idea: raise all levels together, and freeze whom a full link or
an own limit stops.

A flow's rate is its weight times its level. It takes ``use`` times its rate of each link of its
row, and never more than its cap. An allocation is max-min fair exactly if every flow is at its cap
or crosses a full link on which no flow has a higher level, its *bottleneck* (Bertsekas and
Gallager, Data Networks, section 6.5.2).

When few flows come or go, only those are solved again whose bottleneck is disturbed; then the
condition is checked on the links that they use, and whoever breaks it joins them
(:func:`resolve`).

Rows are structured arrays: a flow's numbers stand together in memory, and the compiler, which takes
an argument apart into its arrays at every call, is done three times sooner.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from eastwest.kernels import Floats, Longs, Records
from eastwest.kernels.heap import clear, earliest, empty_heap, pop, set_time

SLACK = 1e-9  # relative; what rounding may leave of a full link, or of equal levels
AGAIN = 1e-12  # relative; a link whose level rose by more goes back into the heap

FLOW = np.dtype(
    [
        ("weight", np.float64),
        ("cap", np.float64),
        ("rate", np.float64),
        ("bottleneck", np.int64),  # a link, or -1 for the own cap
        ("was", np.float64),  # the rate when it was chosen to be solved again
        ("held", np.int64),  # and the bottleneck
        ("active", np.bool_),
        ("chosen", np.bool_),
        ("frozen", np.bool_),
    ],
    align=True,
)
LINK = np.dtype(
    [
        ("capacity", np.float64),
        ("used", np.int64),  # active entries
        ("left", np.float64),  # capacity left to flows not frozen yet
        ("demand", np.float64),  # use x weight of those
        ("level", np.float64),  # at which the link froze chosen flows, inf if it froze none
        ("highest", np.float64),  # level of any chosen flow
        ("touched", np.bool_),
    ],
    align=True,
)
ENTRY = np.dtype(
    [
        ("link", np.int64),
        ("use", np.float64),  # of the link, a unit of the flow's rate
        ("slot", np.int64),  # where this entry stands in its link's list
        ("listed", np.int64),  # by slot: the entry there, those of active flows first
        ("flow", np.int64),  # by slot: its flow
    ],
    align=True,
)


class Net(NamedTuple):
    """Flows on links, and room that the solver works in; make it with :func:`new_net`."""

    flow: Records
    link: Records
    entry: Records
    first: Longs  # (flows + 1,) of the entries of each flow
    slot_first: Longs  # (links + 1,) of the slots of each link
    chosen: Longs  # (flows + 1,) those that are solved again; the last counts them
    touched: Longs  # (links,) the links of those
    heap: Records  # links by level, then flows by the level of their cap


def new_net(
    first: Longs, link: Longs, use: Floats, weight: Floats, cap: Floats, capacity: Floats
) -> Net:
    """Return flows, none of them active: ``link`` and ``use`` are rows, ``first`` where each
    flow's begins (and the end)."""
    flows, entries = np.zeros(len(weight), FLOW), np.zeros(len(link), ENTRY)
    links = np.zeros(len(capacity), LINK)
    flows["weight"], flows["cap"], flows["bottleneck"] = weight, cap, -1
    entries["link"], entries["use"], links["capacity"] = link, use, capacity
    slot_first = np.zeros(len(links) + 1, np.int64)
    np.cumsum(np.bincount(link, minlength=len(links)), out=slot_first[1:])
    return Net(
        flows,
        links,
        entries,
        first,
        slot_first,
        np.zeros(len(flows) + 1, np.int64),
        np.zeros(len(links), np.int64),
        empty_heap(len(links) + len(flows)),
    )


@numba.njit(cache=True)
def enter(net: Net, flow: int) -> None:
    """Make a flow active, at rate 0, and choose it."""
    net.flow.active[flow] = True
    net.flow.rate[flow] = 0.0
    for e in range(net.first[flow], net.first[flow + 1]):
        link = net.entry.link[e]
        slot = net.slot_first[link] + net.link.used[link]
        net.entry.listed[slot], net.entry.flow[slot], net.entry.slot[e] = e, flow, slot
        net.link.used[link] += 1
    choose(net, flow)


@numba.njit(cache=True)
def leave(net: Net, flow: int) -> None:
    """Take a flow off its links, and choose those whom they held back."""
    net.flow.active[flow] = False
    net.flow.rate[flow] = 0.0
    for e in range(net.first[flow], net.first[flow + 1]):
        link, slot = net.entry.link[e], net.entry.slot[e]
        net.link.used[link] -= 1
        last = net.slot_first[link] + net.link.used[link]
        net.entry.listed[slot], net.entry.flow[slot] = net.entry.listed[last], net.entry.flow[last]
        net.entry.slot[net.entry.listed[slot]] = slot
        choose_on(net, link, True)


@numba.njit(cache=True)
def choose(net: Net, flow: int) -> None:
    """Add a flow to those that are solved again, remembering its rate."""
    if not net.flow.chosen[flow]:
        net.flow.chosen[flow] = True
        net.flow.was[flow], net.flow.held[flow] = net.flow.rate[flow], net.flow.bottleneck[flow]
        net.chosen[net.chosen[-1]] = flow
        net.chosen[-1] += 1


@numba.njit(cache=True)
def choose_on(net: Net, link: int, held_only: bool) -> None:
    """Choose the flows on a link, or only those that it holds back."""
    first = net.slot_first[link]
    for slot in range(first, first + net.link.used[link]):
        flow = net.entry.flow[slot]
        if not held_only or net.flow.bottleneck[flow] == link:
            choose(net, flow)


@numba.njit(cache=True)
def resolve(net: Net) -> None:
    """Give the chosen flows, and all whom that disturbs, their max-min rates."""
    _keep_active(net)
    while True:
        before = net.chosen[-1]
        links = _open(net)
        _fill(net, links)
        for link in net.touched[:links]:
            _check(net, link)
            net.link.touched[link] = False
        if net.chosen[-1] == before:
            break


@numba.njit(cache=True)
def release(net: Net) -> None:
    """Forget who was chosen."""
    for flow in net.chosen[: net.chosen[-1]]:
        net.flow.chosen[flow] = False
    net.chosen[-1] = 0


@numba.njit(cache=True)
def _keep_active(net: Net) -> None:
    """Drop the chosen that have left since."""
    kept = 0
    for flow in net.chosen[: net.chosen[-1]]:
        net.flow.chosen[flow] = net.flow.active[flow]
        if net.flow.active[flow]:
            net.chosen[kept] = flow
            kept += 1
    net.chosen[-1] = kept


@numba.njit(cache=True)
def _open(net: Net) -> int:
    """Find what the chosen flows ask of their links and what all others leave them there; return
    the number of links."""
    links = 0
    for flow in net.chosen[: net.chosen[-1]]:
        net.flow.frozen[flow] = False
        for e in range(net.first[flow], net.first[flow + 1]):
            link = net.entry.link[e]
            if not net.link.touched[link]:
                net.link.touched[link] = True
                net.touched[links] = link
                links += 1
                _open_link(net, link)
    return links


@numba.njit(cache=True)
def _open_link(net: Net, link: int) -> None:
    left, demand = net.link.capacity[link], 0.0
    first = net.slot_first[link]
    for slot in range(first, first + net.link.used[link]):
        flow, use = net.entry.flow[slot], net.entry.use[net.entry.listed[slot]]
        if net.flow.chosen[flow]:
            demand += use * net.flow.weight[flow]
        else:
            left -= use * net.flow.rate[flow]
    net.link.left[link], net.link.demand[link] = max(0.0, left), demand
    net.link.level[link], net.link.highest[link] = np.inf, 0.0


@numba.njit(cache=True)
def _fill(net: Net, links: int) -> None:
    """Raise the chosen flows together, until each is stopped by a link or by its cap."""
    base = len(net.link)
    for link in net.touched[:links]:
        set_time(net.heap, link, net.link.left[link] / net.link.demand[link])
    for flow in net.chosen[: net.chosen[-1]]:
        if net.flow.cap[flow] < np.inf:
            set_time(net.heap, base + flow, net.flow.cap[flow] / net.flow.weight[flow])
    rising = net.chosen[-1]
    while rising:
        level = earliest(net.heap)
        item = pop(net.heap)
        if item < base:
            rising -= _fill_link(net, item, level)
        elif not net.flow.frozen[item - base]:
            _freeze(net, item - base, level, -1)
            rising -= 1
    clear(net.heap)


@numba.njit(cache=True)
def _fill_link(net: Net, link: int, level: float) -> int:
    """Freeze all whom a link stops at a level, or put it off, if others left it room since; return
    how many are frozen."""
    if net.link.demand[link] <= 0.0:
        return 0
    now = max(0.0, net.link.left[link]) / net.link.demand[link]
    if now > level * (1.0 + AGAIN):
        set_time(net.heap, link, now)
        return 0
    frozen = 0
    net.link.level[link] = level
    first = net.slot_first[link]
    for slot in range(first, first + net.link.used[link]):
        flow = net.entry.flow[slot]
        if net.flow.chosen[flow] and not net.flow.frozen[flow]:
            _freeze(net, flow, level, link)
            frozen += 1
    return frozen


@numba.njit(cache=True)
def _freeze(net: Net, flow: int, level: float, link: int) -> None:
    weight = net.flow.weight[flow]
    net.flow.frozen[flow] = True
    net.flow.rate[flow], net.flow.bottleneck[flow] = level * weight, link
    for e in range(net.first[flow], net.first[flow + 1]):
        on, demand = net.entry.link[e], net.entry.use[e] * weight
        net.link.left[on] -= demand * level
        net.link.demand[on] -= demand
        # Rounding must not leave a demand where none is.
        if net.link.demand[on] < AGAIN * demand:
            net.link.demand[on] = 0.0
        net.link.highest[on] = max(net.link.highest[on], level)


@numba.njit(cache=True)
def _check(net: Net, link: int) -> None:
    """Choose all others on a touched link who break the bottleneck condition."""
    full = net.link.left[link] <= SLACK * net.link.capacity[link]
    first = net.slot_first[link]
    for slot in range(first, first + net.link.used[link]):
        flow = net.entry.flow[slot]
        if net.flow.chosen[flow]:
            continue
        level = net.flow.rate[flow] / net.flow.weight[flow]
        # Too much: the link stops a chosen flow at a lower level.
        too_much = level > net.link.level[link] * (1.0 + SLACK)
        # Too little: what held the flow back is full no more, or others have more of it.
        slack = not full or net.link.highest[link] > level * (1.0 + SLACK)
        if too_much or (slack and net.flow.bottleneck[flow] == link):
            choose(net, flow)
