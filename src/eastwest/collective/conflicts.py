"""Which moves touch the same slot. One idea: the accesses of a slot form epochs, and each epoch
follows the one before.

::

    write | read read read | write | read | add add add | read     adds: into a switch, in any order

Reads that follow each other need no order, nor do a switch's additions; everything else does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eastwest.collective.schedule import Bools, Longs

_READ, _WRITE, _ADD = 0, 1, 2


def counted(counts: NDArray[np.integer]) -> Longs:
    """Return 0, 1, …, count - 1 for each count, one after another."""
    ends = np.cumsum(counts, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    within: Longs = np.arange(total, dtype=np.int64) - np.repeat(ends - counts, counts)
    return within


def conflicts(
    source: Longs, target: Longs, count: Longs, adds: Bools, position: Longs
) -> tuple[Longs, Longs]:
    """Return the pairs (earlier move, later move) that must be ordered, each once, sorted by the
    later.

    ``source`` and ``target`` are each move's first slots, ``count`` how many follow, ``adds``
    whether it adds in a switch, ``position`` its place in an order of execution. If each pair is
    ordered, so are all moves that conflict.
    """
    move = np.repeat(np.arange(len(count), dtype=np.int64), count)
    within = counted(count)
    slot = np.concatenate([source[move] + within, target[move] + within])
    kind = np.concatenate([np.full(len(move), _READ), np.where(adds[move], _ADD, _WRITE)])
    move = np.concatenate([move, move])
    order = np.lexsort((kind, position[move], slot))
    slot, kind, move = slot[order], kind[order], move[order]
    fresh = np.ones(len(slot), np.bool_)
    fresh[1:] = slot[1:] != slot[:-1]
    begins = fresh.copy()
    begins[1:] |= (kind[1:] == _WRITE) | (kind[1:] != kind[:-1])
    return _across_epochs(move, begins, fresh)


def _across_epochs(move: Longs, begins: Bools, fresh: Bools) -> tuple[Longs, Longs]:
    """Return pairs from each epoch's moves to all of the next, unless that is its slot's first."""
    epoch = np.cumsum(begins) - 1
    start = np.append(np.flatnonzero(begins), len(move))
    follows = ~fresh[start[epoch]]
    before = epoch[follows] - 1
    sizes = start[before + 1] - start[before]
    earlier = move[np.repeat(start[before], sizes) + counted(sizes)]
    return unique_pairs(earlier, np.repeat(move[follows], sizes))


def unique_pairs(earlier: Longs, later: Longs) -> tuple[Longs, Longs]:
    """Return each pair of different moves once, sorted by the later one."""
    apart = earlier != later
    pairs = np.unique((later[apart] << 32) | earlier[apart])
    return pairs & 0xFFFFFFFF, pairs >> 32
