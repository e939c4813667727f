"""Symbolic execution of collective schedules. One idea: a slot holds one chunk's number and the set
of ranks added up.

Sets of ranks are rows of 64-bit words. Nothing here knows what a collective promises; it only
follows the moves.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from eastwest.kernels import Bools, Longs

FINE, EMPTY_SOURCE, EMPTY_TARGET, OTHER_CHUNK, COUNTED_TWICE = 0, 1, 2, 3, 4


class Moves(NamedTuple):
    """Each move's first slots, its chunks, whether it adds, and whether its target is a switch."""

    source: Longs
    target: Longs
    chunks: Longs
    reduce: Bools
    switch: Bools


class Held(NamedTuple):
    """What each slot holds: a chunk's number (-1 for nothing), and words with the ranks added
    up."""

    chunk: Longs
    ranks: NDArray[np.uint64]


@numba.njit(cache=True)
def execute(moves: Moves, order: Longs, held: Held) -> tuple[int, int, int]:
    """Carry out moves in an order, changing ``held``; return what went wrong, with which move and
    which of its chunks."""
    for move in order:
        for chunk in range(moves.chunks[move]):
            source, target = moves.source[move] + chunk, moves.target[move] + chunk
            if held.chunk[source] < 0:
                return EMPTY_SOURCE, move, chunk
            if not moves.reduce[move] or (moves.switch[move] and held.chunk[target] < 0):
                held.chunk[target] = held.chunk[source]
                held.ranks[target] = held.ranks[source]
                continue
            fault = _add(held, source, target)
            if fault != FINE:
                return fault, move, chunk
    return FINE, -1, -1


@numba.njit(cache=True)
def _add(held: Held, source: int, target: int) -> int:
    """Add one slot's sum to another's; return what is wrong with that."""
    if held.chunk[target] < 0:
        return EMPTY_TARGET
    if held.chunk[target] != held.chunk[source]:
        return OTHER_CHUNK
    for word in range(held.ranks.shape[1]):
        if held.ranks[target, word] & held.ranks[source, word]:
            return COUNTED_TWICE
        held.ranks[target, word] |= held.ranks[source, word]
    return FINE


@numba.njit(cache=True)
def first_unordered(
    first_need: Longs, need: Longs, level: Longs, earlier: Longs, later: Longs
) -> int:
    """Return the first pair of which the later does not wait for the earlier, -1 if all do.

    A chain of needs leads only to lower levels, so the search ends at the earlier one's level.
    """
    seen = np.full(len(level), -1, np.int64)
    stack = np.empty(len(level), np.int64)
    for pair in range(len(earlier)):
        wanted, top, found = earlier[pair], 1, False
        stack[0] = later[pair]
        while top and not found:
            top -= 1
            at = stack[top]
            for needed in need[first_need[at] : first_need[at + 1]]:
                if needed == wanted:
                    found = True
                    break
                if seen[needed] != pair and level[needed] > level[wanted]:
                    seen[needed] = pair
                    stack[top] = needed
                    top += 1
        if not found:
            return pair
    return -1
