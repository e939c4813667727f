"""Writing a schedule. One idea: an algorithm says which chunk goes where in which step; buffers and
needs follow.

A rank's value of a chunk is in its input until something arrives; then it is where the collective
works: in the output where that has room for the chunk, else in scratch. A local copy precedes what
is added to a value that is still in the input. What a move needs follows from the slots that it
touches, and from its connection: what one rank sends to another in one channel goes in the order of
the steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eastwest.collective.conflicts import conflicts, counted, unique_pairs
from eastwest.collective.schedule import (
    MOVE,
    ROOT,
    Bools,
    Buffer,
    Layout,
    Longs,
    Memory,
    Moves,
    Schedule,
    block_starts,
)
from eastwest.errors import UserError

MOST_CHUNK_MOVES = 2**22
_NEVER = 2**62


def cut(chunks: int, blocks: int, channels: int) -> tuple[Longs, Longs]:
    """Cut chunks into ragged blocks and each block among the channels.

    Returns the first chunk and the count of each piece, arrays of blocks x channels. Each block
    begins with another channel, so that short blocks load all of them.
    """
    starts = block_starts(chunks, blocks)
    size = np.diff(starts)[:, None]
    turn = (np.arange(channels)[None, :] + np.arange(blocks)[:, None]) % channels
    first = starts[:-1, None] + turn * size // channels
    return first, starts[:-1, None] + (turn + 1) * size // channels - first


@dataclass(slots=True)
class Program:
    """What an algorithm writes down, step by step.

    A move sees what earlier steps left, so nothing is read and written in one step; what several
    moves of one step add into one slot is added one after another. Switches have the numbers after
    the ranks.
    """

    operation: str
    layout: Layout
    chunks: int
    channels: int
    in_place: bool
    algorithm: str = ""
    switches: int = 0
    _moves: list[Moves] = field(default_factory=list)
    _direct: list[Moves] = field(default_factory=list)

    @property
    def network(self) -> int:
        """The number of the switch that stands for the network, after those of the nodes."""
        return self.layout.ranks + self.layout.nodes

    def __post_init__(self) -> None:
        n = self.layout.ranks
        if self.chunks < 1 or self.channels < 1:
            raise UserError(
                f"a collective needs at least one chunk and one channel, not {self.chunks} and "
                f"{self.channels}"
            )
        if n * max(self.chunks, n * self.channels) > MOST_CHUNK_MOVES:
            raise UserError(
                f"{n} ranks with {self.chunks} chunks in {self.channels} channels are too many to "
                "write out",
                hint="fewer ranks, chunks or channels",
            )

    def cut(self, blocks: int) -> tuple[Longs, Longs]:
        """Return the pieces of all chunks (see :func:`cut`)."""
        return cut(self.chunks, blocks, self.channels)

    def add(
        self,
        step: ArrayLike,
        source: ArrayLike,
        target: ArrayLike,
        chunk: ArrayLike,
        count: ArrayLike,
        channel: ArrayLike,
        reduce: bool,
    ) -> None:
        """Let chunks go from source to target in a step: arrays that broadcast; nothing where the
        count is 0."""
        self._moves.append(_rows(step, source, target, chunk, chunk, count, channel, reduce))

    def put(
        self,
        step: ArrayLike,
        source: ArrayLike,
        target: ArrayLike,
        source_chunk: ArrayLike,
        target_chunk: ArrayLike,
        count: ArrayLike,
        channel: ArrayLike,
    ) -> None:
        """Let chunks go from the input of a rank straight to another place in an output."""
        rows = _rows(step, source, target, source_chunk, target_chunk, count, channel, False)
        rows["target_buffer"] = Buffer.OUTPUT
        self._direct.append(rows)

    def finish(self) -> Schedule:
        """Return the schedule: buffers chosen, chunks that travel together joined, needs worked
        out."""
        moves = _joined(np.concatenate([*self._direct, *self._placed()]))
        n, actors = self.layout.ranks, self.layout.ranks + self.switches
        buffers = (moves["source_buffer"], moves["target_buffer"])
        scratch = self.chunks if any((b == Buffer.SCRATCH).any() for b in buffers) else 0
        memory = Memory.of(self.operation, n, actors, self.chunks, scratch, self.in_place)
        return Schedule(
            self.operation,
            self.algorithm,
            n,
            actors,
            self.chunks,
            scratch,
            self.in_place,
            moves,
            *_needs(moves, memory, n),
        )

    def _placed(self) -> list[Moves]:
        """Return the moves chunk by chunk with their buffers, and the local copies that they
        want."""
        moves = _by_chunk(np.concatenate([np.zeros(0, MOVE), *self._moves]))
        n, actors = self.layout.ranks, self.layout.ranks + self.switches
        source = moves["source"] * self.chunks + moves["source_chunk"]
        target = moves["target"] * self.chunks + moves["target_chunk"]
        arrival = np.full(actors * self.chunks, _NEVER, np.int64)
        np.minimum.at(arrival, target, moves["step"])
        fresh = (arrival[source] >= moves["step"]) & (moves["source"] < n)
        first = (moves["reduce"] == 1) & (arrival[target] == moves["step"]) & (moves["target"] < n)
        adds = np.flatnonzero(first)
        seeds = moves[adds[np.unique(target[adds], return_index=True)[1]]]
        return [
            self._in_buffers(moves, fresh),
            self._copies(seeds["step"], seeds["target"], seeds["target_chunk"]),
            self._copies(0, *self._kept(arrival)),
        ]

    def _copies(self, step: ArrayLike, rank: Longs, chunk: Longs) -> Moves:
        """Return local copies from where a rank's input lies to where the collective works, if
        that is elsewhere."""
        rows = _rows(step, rank, rank, chunk, chunk, 1, 0, False)
        rows = self._in_buffers(rows, np.ones(len(rows), np.bool_))
        return rows[rows["target_buffer"] == Buffer.SCRATCH] if self.in_place else rows

    def _kept(self, arrival: Longs) -> tuple[Longs, Longs]:
        """Return ranks and chunks of an output to which nothing comes: it is the rank's own
        input."""
        rank, chunk = np.nonzero(arrival.reshape(-1, self.chunks)[: self.layout.ranks] == _NEVER)
        if self.operation in ("all_to_all", "send_receive"):
            return rank[:0], chunk[:0]
        blocks = self.operation in ("all_gather", "reduce_scatter")
        mine = (self._owner()[chunk] if blocks else ROOT) == rank
        return rank[mine], chunk[mine]

    def _owner(self) -> Longs:
        sizes = np.diff(block_starts(self.chunks, self.layout.ranks))
        return np.repeat(np.arange(self.layout.ranks), sizes)

    def _in_buffers(self, moves: Moves, fresh: Bools) -> Moves:
        """Fill in both buffers of each move, and count chunks from where those begin."""
        starts, n = block_starts(self.chunks, self.layout.ranks), self.layout.ranks
        part = {"all_gather": Buffer.INPUT, "reduce_scatter": Buffer.OUTPUT}.get(self.operation)
        moves = moves.copy()
        for end, untouched in (("source", fresh), ("target", np.zeros_like(fresh))):
            actor, chunk = moves[end], moves[f"{end}_chunk"]
            buffer = np.where(untouched, Buffer.INPUT, self._work(actor, chunk))
            moves[f"{end}_buffer"] = buffer
            moves[f"{end}_chunk"] -= np.where(buffer == part, starts[np.minimum(actor, n - 1)], 0)
        return moves

    def _work(self, actor: Longs, chunk: Longs) -> Longs:
        """Return the buffer in which an actor works on a chunk."""
        if self.operation in ("reduce_scatter", "reduce"):
            scatter = self.operation == "reduce_scatter"
            has = (self._owner()[chunk] if scatter else ROOT) == actor
        else:
            has = np.ones(len(actor), np.bool_)
        return np.where(has & (actor < self.layout.ranks), Buffer.OUTPUT, Buffer.SCRATCH)


def _rows(
    step: ArrayLike,
    source: ArrayLike,
    target: ArrayLike,
    source_chunk: ArrayLike,
    target_chunk: ArrayLike,
    count: ArrayLike,
    channel: ArrayLike,
    reduce: bool,
) -> Moves:
    columns = np.broadcast_arrays(step, source, target, source_chunk, target_chunk, count, channel)
    used = columns[5] > 0
    rows = np.zeros(int(np.count_nonzero(used)), MOVE)
    names = ("step", "source", "target", "source_chunk", "target_chunk", "count", "channel")
    for name, column in zip(names, columns, strict=True):
        rows[name] = column[used]
    rows["reduce"] = reduce
    return rows


def _by_chunk(moves: Moves) -> Moves:
    """Return one row a chunk instead of one a move, in the order of the steps."""
    rows = np.repeat(moves, moves["count"])
    within = counted(moves["count"])
    rows["source_chunk"] += within
    rows["target_chunk"] += within
    rows["count"] = 1
    return rows[np.argsort(rows["step"], kind="stable")]


def _joined(moves: Moves) -> Moves:
    """Sort by step and join moves that continue each other in source and target.

    In a step, local copies come first, for the additions of the step need them.
    """
    away = moves["source"] != moves["target"]
    keys = ("target_chunk", "source_chunk", "target", "source", "channel")
    moves = moves[np.lexsort((*(moves[key] for key in keys), away, moves["step"]))]
    same = np.ones(max(0, len(moves) - 1), np.bool_)
    for name in MOVE.names or ():
        ahead = moves["count"][:-1] if name.endswith("_chunk") else 0
        if name != "count":
            same &= moves[name][1:] == moves[name][:-1] + ahead
    first = np.flatnonzero(np.append(True, ~same)[: len(moves)])
    counts = np.add.reduceat(moves["count"], first) if len(first) else moves["count"]
    joined = moves[first].copy()
    joined["count"] = counts
    return joined


def _needs(moves: Moves, memory: Memory, ranks: int) -> tuple[Longs, Longs]:
    """Return the needs of each move as CSR: of its slots and of its connection."""
    position = np.arange(len(moves), dtype=np.int64)
    adds = (moves["reduce"] == 1) & (moves["target"] >= ranks)
    read = memory.slot(moves["source"], moves["source_buffer"], moves["source_chunk"])
    write = memory.slot(moves["target"], moves["target_buffer"], moves["target_chunk"])
    pairs = [conflicts(read, write, moves["count"], adds, position), _after_the_last(moves)]
    earlier, later = unique_pairs(*(np.concatenate([p[i] for p in pairs]) for i in range(2)))
    return np.searchsorted(later, np.arange(len(moves) + 1)).astype(np.int64), earlier


def _after_the_last(moves: Moves) -> tuple[Longs, Longs]:
    """Return pairs: each move after the last of its connection's step before, for a connection
    keeps its order."""
    keys = [moves[name] for name in ("step", "channel", "target", "source")]
    order = np.lexsort(keys)
    order = order[moves["source"][order] != moves["target"][order]]
    sorted_: list[NDArray[np.int64]] = [key[order] for key in keys]
    first = np.ones(len(order), np.bool_)
    first[1:] = np.any([key[1:] != key[:-1] for key in sorted_[1:]], axis=0)
    begins = first.copy()
    begins[1:] |= sorted_[0][1:] != sorted_[0][:-1]
    # The row just before a group of one step is the last of the connection's step before.
    start = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    has = ~first[start]
    return order[start[has] - 1], order[has]


def written(
    algorithm: str,
    operation: str,
    layout: Layout,
    chunks: int,
    channels: int = 1,
    in_place: bool = False,
) -> Schedule:
    """Return an algorithm's schedule. Raises UserError for what the algorithm does not do."""
    from eastwest.collective import ALGORITHMS

    module = ALGORITHMS[algorithm]
    if operation not in module.OPERATIONS:
        does = ", ".join(module.OPERATIONS)
        raise UserError(f"{algorithm} does not do {operation}", hint=f"it does {does}")
    if not hasattr(module, "schedule"):
        raise UserError(f"{algorithm} has no schedule", hint="its module lacks schedule(program)")
    program = Program(operation, layout, chunks, channels, in_place, algorithm)
    module.schedule(program)
    return program.finish()
