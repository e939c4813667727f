"""Who sends which chunk to whom, and after what. One idea: a collective is a list of moves and what
each waits for.

::

    rank 0  input  [ a0 | a1 ]    a move: rank 0, input chunk 1 -- adds --> rank 1, output chunk 1
    rank 1  output [ b0 | b1 ]    a need: the move that put b1 there must have ended before

A rank has an input, an output and scratch, all in chunks of one size; a switch that adds or
multicasts is an actor with scratch only. Blocks are ragged: of C chunks over n ranks, block b is
the chunks from b C // n to (b + 1) C // n.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from eastwest.collective.communicator import OPERATIONS
from eastwest.errors import InternalError, UserError, unknown_name

Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]

WITHOUT_IN_PLACE = ("all_to_all", "send_receive")  # as in NCCL
ROOT = 0


class Buffer(IntEnum):
    """Which of an actor's buffers."""

    INPUT = 0
    OUTPUT = 1
    SCRATCH = 2


def block_starts(chunks: int, blocks: int) -> Longs:
    """Return where each of the ragged blocks begins, and the end: ``blocks`` + 1 numbers."""
    return np.arange(blocks + 1, dtype=np.int64) * chunks // blocks


@dataclass(frozen=True, slots=True)
class Layout:
    """The node of each rank; ranks of a node follow each other, nodes are numbered from 0."""

    node: Longs

    def __post_init__(self) -> None:
        if not len(self.node) or self.node[0] != 0 or not np.isin(np.diff(self.node), (0, 1)).all():
            raise UserError("ranks of a node follow each other, and nodes have numbers from 0 on")

    @classmethod
    def spread(cls, ranks: int, nodes: int = 1) -> Layout:
        """Return ``ranks`` over ``nodes`` as evenly as they divide. Raises UserError for empty
        nodes."""
        if not 1 <= nodes <= ranks:
            raise UserError(f"{ranks} ranks on {nodes} nodes; expected at least one rank a node")
        return cls(np.arange(ranks, dtype=np.int64) * nodes // ranks)

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.node)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.node[-1]) + 1

    @property
    def sizes(self) -> Longs:
        """Ranks of each node."""
        return np.bincount(self.node).astype(np.int64)

    @property
    def first(self) -> Longs:
        """First rank of each node."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def local(self) -> Longs:
        """Number of each rank inside its node."""
        return np.arange(self.ranks) - self.first[self.node]


@dataclass(frozen=True, slots=True)
class Memory:
    """Where buffers lie: slots are numbered through all actors; in place, one buffer lies inside
    the other.

    ``first`` and ``size`` have one row an actor and one column a :class:`Buffer`.
    """

    first: Longs
    size: Longs
    slots: int

    @classmethod
    def of(
        cls, operation: str, ranks: int, actors: int, chunks: int, scratch: int, in_place: bool
    ) -> Memory:
        """Lay out the buffers of a collective as NCCL sizes them."""
        starts = block_starts(chunks, ranks)
        own, root = np.diff(starts), np.where(np.arange(ranks) == ROOT, chunks, 0)
        inputs = {"all_gather": own, "broadcast": root}
        outputs = {"reduce_scatter": own, "reduce": root, "all_to_all": ranks * own}
        size = np.zeros((actors, 3), np.int64)
        size[:ranks, Buffer.INPUT] = inputs.get(operation, chunks)
        size[:ranks, Buffer.OUTPUT] = outputs.get(operation, chunks)
        size[:, Buffer.SCRATCH] = scratch
        alone = size.copy()
        outer = Buffer.INPUT if operation in outputs else Buffer.OUTPUT
        inner = Buffer.OUTPUT if outer == Buffer.INPUT else Buffer.INPUT
        if in_place:
            alone[:, inner] = 0
        first = (np.cumsum(alone) - alone.ravel()).reshape(size.shape)
        if in_place:
            part = operation in ("all_gather", "reduce_scatter")
            first[:ranks, inner] = first[:ranks, outer] + (starts[:-1] if part else 0)
        return cls(first, size, int(alone.sum()))

    def slot(self, actor: Longs, buffer: Longs, chunk: Longs) -> Longs:
        """Return the slot of a chunk of an actor's buffer (arrays of one shape)."""
        return self.first[actor, buffer] + chunk


# One move: what goes where, and the place where it was written, if any.
MOVE = np.dtype(
    [
        ("step", np.int64),
        ("source", np.int64),  # actor
        ("target", np.int64),
        ("source_buffer", np.int64),
        ("source_chunk", np.int64),
        ("target_buffer", np.int64),
        ("target_chunk", np.int64),
        ("channel", np.int64),
        ("reduce", np.int64),  # 1: adds to what is there, 0: replaces it
        ("count", np.int64),  # chunks
        ("line", np.int64),  # of the file that it was read from, 0 for none
    ],
    align=True,
)
Moves = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Moves, and for each the moves that must have ended before it starts.

    Properties, checked by :meth:`check` in this order:

    - the operation is one of NCCL's; there are ranks and chunks, at least as many actors as ranks;
    - all_to_all and send_receive are not in place;
    - every move goes between actors and their buffers, and carries at least one chunk;
    - every chunk that it reads or writes lies inside its buffer;
    - there is one list of needs for each move, and every need is another move.

    A move whose ``source`` is its ``target`` is local. Actors from ``ranks`` on are switches: they
    have scratch only, which is empty at first, and they add in any order what comes into one slot.
    ``chunks`` are those of the whole buffer as nccl-tests counts it: all-gather's output,
    reduce-scatter's input, else a rank's.
    """

    operation: str
    algorithm: str
    ranks: int
    actors: int
    chunks: int
    scratch: int  # chunks of scratch of each actor
    in_place: bool
    moves: Moves  # of dtype MOVE
    first_need: Longs
    need: Longs
    file: str = ""

    @property
    def memory(self) -> Memory:
        """Where the buffers lie."""
        return Memory.of(
            self.operation, self.ranks, self.actors, self.chunks, self.scratch, self.in_place
        )

    def actor(self, number: int) -> str:
        """Return an actor's name, such as ``rank 3`` or ``switch 0``."""
        return f"rank {number}" if number < self.ranks else f"switch {number - self.ranks}"

    def where(self, move: int) -> str:
        """Return a move in words: ``move 17 (step 3, channel 0: rank 2 input chunk 5 -> rank 3
        output chunk 5, added)``."""
        m = self.moves[move]
        ends = (
            f"{self.actor(m[end])} {span(m[f'{end}_buffer'], m[f'{end}_chunk'], m['count'])}"
            for end in ("source", "target")
        )
        added = ", added" if m["reduce"] else ""
        when = f"step {m['step']}, channel {m['channel']}"
        return f"{self._place(move)}move {move} ({when}: {' -> '.join(ends)}{added})"

    def _place(self, move: int) -> str:
        return f"{self.file}:{self.moves['line'][move]}: " if self.file else ""

    def check(self) -> None:
        """Raise UserError, naming the first bad move, if a property of the class docstring does
        not hold."""
        # Property: the operation is one of NCCL's; ranks, chunks, actors.
        if self.operation not in OPERATIONS:
            raise unknown_name("collective", self.operation, OPERATIONS)
        if min(self.ranks, self.chunks) < 1 or self.actors < self.ranks:
            raise UserError("a schedule needs ranks and chunks, and an actor for each rank")
        # Property: all_to_all and send_receive are not in place.
        if self.in_place and self.operation in WITHOUT_IN_PLACE:
            raise UserError(f"{self.operation} cannot work in place", hint="nor does NCCL")
        # Property: every move goes between actors and their buffers, and carries something.
        for name, least, limit in (
            ("source", 0, self.actors),
            ("target", 0, self.actors),
            ("source_buffer", 0, len(Buffer)),
            ("target_buffer", 0, len(Buffer)),
            ("count", 1, self.memory.slots + 1),
        ):
            values = self.moves[name]
            self._refuse((values < least) | (values >= limit), f"its {name} is out of range")
        # Property: every chunk that it reads or writes lies inside its buffer.
        for end in ("source", "target"):
            room = self.memory.size[self.moves[end], self.moves[f"{end}_buffer"]]
            chunk, count = self.moves[f"{end}_chunk"], self.moves["count"]
            bad = (chunk < 0) | (chunk + count > room)
            self._refuse(bad, f"it is outside of its {end}'s buffer")
        # Property: there is one list of needs for each move, and every need is another move.
        self._check_needs()

    def _check_needs(self) -> None:
        first, moves = self.first_need, len(self.moves)
        whole = len(first) == moves + 1 and first[0] == 0 and first[-1] == len(self.need)
        if not whole or (np.diff(first) < 0).any():
            raise InternalError("the needs of a schedule are not one list for each move")
        waiting = np.repeat(np.arange(moves), np.diff(first))
        bad = (self.need < 0) | (self.need >= moves) | (self.need == waiting)
        if bad.any():
            at = self.where(int(waiting[np.argmax(bad)]))
            raise UserError("waits for itself or for no move", where=at)

    def _refuse(self, bad: Bools, what: str) -> None:
        if bad.any():
            move = int(np.argmax(bad))
            raise UserError(f"{self._place(move)}move {move}: {what}")


def span(buffer: int, first: int, count: int) -> str:
    """Return chunks of a buffer in words: ``input chunk 5``, ``output chunks 5 to 7``."""
    chunks = f"chunk {first}" if count == 1 else f"chunks {first} to {first + count - 1}"
    return f"{Buffer(buffer).name.lower()} {chunks}"
