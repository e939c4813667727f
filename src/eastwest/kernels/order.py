"""What can happen after what. One idea: take away, again and again, whatever waits for nothing."""

from __future__ import annotations

import numba
import numpy as np

from eastwest.kernels import Longs


@numba.njit(cache=True)
def levels(first_need: Longs, need: Longs, level: Longs) -> int:
    """Fill in the length of the longest chain of needs before each item; return how many items can
    ever happen.

    Item i needs ``need[first_need[i]:first_need[i + 1]]``. Its level is -1 if it can never happen,
    for it waits in a circle or for one that does.
    """
    items = len(first_need) - 1
    first_next, following = followers(first_need, need)
    missing = first_need[1:] - first_need[:-1]
    queue = np.empty(items, np.int64)
    tail = 0
    for item in range(items):
        level[item] = -1
        if missing[item] == 0:
            level[item] = 0
            queue[tail] = item
            tail += 1
    head = 0
    while head < tail:
        item = queue[head]
        head += 1
        for after in following[first_next[item] : first_next[item + 1]]:
            missing[after] -= 1
            if missing[after] == 0:
                # Items leave the queue in the order of their levels, so this is the longest chain.
                level[after] = level[item] + 1
                queue[tail] = after
                tail += 1
    return tail


@numba.njit(cache=True)
def followers(first_need: Longs, need: Longs) -> tuple[Longs, Longs]:
    """Return as CSR who needs each item, in the order of those items."""
    items = len(first_need) - 1
    first = np.zeros(items + 2, np.int64)
    for needed in need:
        first[needed + 2] += 1
    for item in range(items):
        first[item + 2] += first[item + 1]
    following = np.empty(len(need), np.int64)
    for item in range(items):
        for needed in need[first_need[item] : first_need[item + 1]]:
            following[first[needed + 1]] = item
            first[needed + 1] += 1
    return first[:-1], following


@numba.njit(cache=True)
def circle(first_need: Longs, need: Longs, level: Longs) -> Longs:
    """Return items that wait for each other in a circle, the first again at its end, for levels
    of which some are -1."""
    at = 0
    while level[at] >= 0:
        at += 1
    way, place = np.empty(len(level) + 1, np.int64), np.full(len(level), -1, np.int64)
    length = 0
    while place[at] < 0:
        place[at] = length
        way[length] = at
        length += 1
        for needed in need[first_need[at] : first_need[at + 1]]:
            if level[needed] < 0:
                at = needed
                break
    way[length] = at
    return way[place[at] : length + 1]
