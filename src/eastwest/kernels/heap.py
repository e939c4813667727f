"""An indexed binary heap. One idea: every item has at most one time, which can be changed where it
stands.

A heap of n items is a structured array of n + 1 rows: ``time`` and ``place`` by item (place -1: not
in the heap), ``who`` by place, and in the last row's ``who`` how many are in it. Equal times are
ordered by item, so that runs repeat to the bit.
"""

from __future__ import annotations

import numba
import numpy as np

from eastwest.kernels import Records

HEAP = np.dtype([("time", np.float64), ("place", np.int64), ("who", np.int64)], align=True)


def empty_heap(items: int) -> Records:
    """Return a heap for so many items, with none in it."""
    heap = np.zeros(items + 1, HEAP)
    heap["place"] = -1
    return heap


@numba.njit(cache=True)
def earliest(h: Records) -> float:
    """Return the earliest time, inf if there is no item."""
    return h.time[h.who[0]] if h.who[-1] else np.inf


@numba.njit(cache=True)
def set_time(h: Records, item: int, time: float) -> None:
    """Put an item in, or move it to another time."""
    earlier = h.place[item] < 0 or time < h.time[item]
    if h.place[item] < 0:
        h.place[item] = h.who[-1]
        h.who[h.who[-1]] = item
        h.who[-1] += 1
    h.time[item] = time
    if earlier:
        _rise(h, h.place[item])
    else:
        _sink(h, h.place[item])


@numba.njit(cache=True)
def pop(h: Records) -> int:
    """Take the earliest item out and return it."""
    item = h.who[0]
    h.who[-1] -= 1
    h.place[item] = -1
    if h.who[-1]:
        h.who[0] = h.who[h.who[-1]]
        _sink(h, 0)
    return item


@numba.njit(cache=True)
def clear(h: Records) -> None:
    """Take all items out."""
    for item in h.who[: h.who[-1]]:
        h.place[item] = -1
    h.who[-1] = 0


@numba.njit(cache=True)
def _before(h: Records, a: int, b: int) -> bool:
    return h.time[a] < h.time[b] or (h.time[a] == h.time[b] and a < b)


@numba.njit(cache=True)
def _rise(h: Records, at: int) -> None:
    item = h.who[at]
    while at > 0:
        above = (at - 1) >> 1
        if not _before(h, item, h.who[above]):
            break
        h.who[at] = h.who[above]
        h.place[h.who[at]] = at
        at = above
    h.who[at] = item
    h.place[item] = at


@numba.njit(cache=True)
def _sink(h: Records, at: int) -> None:
    item, count = h.who[at], h.who[-1]
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        if below + 1 < count and _before(h, h.who[below + 1], h.who[below]):
            below += 1
        if not _before(h, h.who[below], item):
            break
        h.who[at] = h.who[below]
        h.place[h.who[at]] = at
        at = below
    h.who[at] = item
    h.place[item] = at
