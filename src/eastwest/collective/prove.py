"""Whether a schedule does what its collective promises. One idea: carry it out with symbols, and
show that no other order could end otherwise.

A schedule is proven if

- no wait is circular, so that it ends;
- carried out in one order that its needs allow, nothing is read before it is there, and no rank's
  part is added twice or to another chunk;
- moves that touch the same slot are ordered by their needs, so that every order ends alike;
- each rank ends with exactly what the collective promises.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eastwest.collective.conflicts import conflicts
from eastwest.collective.schedule import (
    ROOT,
    Buffer,
    Longs,
    Memory,
    Schedule,
    block_starts,
    span,
)
from eastwest.kernels import chunks as kernel
from eastwest.kernels import order as ordering

Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a proof found: ``fault`` is the first thing wrong, empty if the schedule is proven.

    ``depth`` is the longest chain of moves that wait for each other, ``most_sent`` the most that a
    rank sends, over the bytes of the collective as nccl-tests counts them.
    """

    schedule: Schedule
    fault: str
    depth: int
    most_sent: float

    @property
    def proven(self) -> bool:
        """Whether nothing is wrong."""
        return not self.fault


def prove(schedule: Schedule) -> Verdict:
    """Return the verdict on a schedule. Raises UserError for one that is not even well formed (see
    :meth:`Schedule.check`)."""
    schedule.check()
    level = np.empty(len(schedule.moves), np.int64)
    done = ordering.levels(schedule.first_need, schedule.need, level)
    fault = _circle(schedule, level) if done < len(level) else _followed(schedule, level)
    return Verdict(schedule, fault, int(level.max(initial=-1)) + 1, _most_sent(schedule))


def _most_sent(schedule: Schedule) -> float:
    m = schedule.moves
    away = (m["source"] != m["target"]) & (m["source"] < schedule.ranks)
    sent = np.bincount(m["source"][away], m["count"][away], minlength=schedule.ranks)
    return float(sent.max()) / schedule.chunks


def _circle(schedule: Schedule, level: Longs) -> str:
    circle = ordering.circle(schedule.first_need, schedule.need, level).tolist()
    return f"{schedule.where(circle[0])} waits in a circle: move " + " for move ".join(
        map(str, circle)
    )


def _followed(schedule: Schedule, level: Longs) -> str:
    """Return what is wrong with a schedule that ends, or an empty string."""
    memory, m = schedule.memory, schedule.moves
    moves = kernel.Moves(
        memory.slot(m["source"], m["source_buffer"], m["source_chunk"]),
        memory.slot(m["target"], m["target_buffer"], m["target_chunk"]),
        m["count"].copy(),
        m["reduce"] == 1,
        m["target"] >= schedule.ranks,
    )
    order, held = np.argsort(level, kind="stable"), _initial(schedule, memory)
    fault, move, chunk = kernel.execute(moves, order, held)
    if fault != kernel.FINE:
        return _what_went_wrong(schedule, fault, move, chunk)
    position = np.argsort(order, kind="stable")
    adds = moves.reduce & moves.switch
    earlier, later = conflicts(moves.source, moves.target, moves.chunks, adds, position)
    pair = kernel.first_unordered(schedule.first_need, schedule.need, level, earlier, later)
    if pair >= 0:
        return (
            f"{schedule.where(int(later[pair]))} does not wait for move {earlier[pair]}, which "
            "touches the same chunk"
        )
    return _broken_promise(schedule, memory, held)


def _what_went_wrong(schedule: Schedule, fault: int, move: int, chunk: int) -> str:
    m = schedule.moves[move]
    source, target = (
        f"{schedule.actor(m[end])} {span(m[f'{end}_buffer'], m[f'{end}_chunk'] + chunk, 1)}"
        for end in ("source", "target")
    )
    what = {
        kernel.EMPTY_SOURCE: f"reads {source} before anything is there",
        kernel.EMPTY_TARGET: f"adds to {target} before anything is there",
        kernel.OTHER_CHUNK: f"adds {source} to {target}, which holds another chunk",
        kernel.COUNTED_TWICE: f"adds a rank's part twice to {target}",
    }[fault]
    return f"{schedule.where(move)} {what}"


def _initial(schedule: Schedule, memory: Memory) -> kernel.Held:
    """Return what the slots hold before the first move: each rank's input, its own part alone."""
    held = kernel.Held(
        np.full(memory.slots, -1, np.int64),
        np.zeros((memory.slots, -(-schedule.ranks // 64)), np.uint64),
    )
    starts = block_starts(schedule.chunks, schedule.ranks)
    for rank in range(schedule.ranks):
        first, size = memory.first[rank, Buffer.INPUT], memory.size[rank, Buffer.INPUT]
        begin = starts[rank] if schedule.operation == "all_gather" else 0
        held.chunk[first : first + size] = begin + np.arange(size)
        held.ranks[first : first + size] = _ranks(schedule.ranks, [rank])
    return held


def _ranks(ranks: int, members: list[int]) -> Words:
    words = np.zeros(-(-ranks // 64), np.uint64)
    for rank in members:
        words[rank // 64] |= np.uint64(1 << rank % 64)
    return words


def promised(schedule: Schedule, rank: int) -> tuple[Longs, Words]:
    """Return what a rank's output must hold: the number of each chunk, and the ranks added up."""
    n, chunks = schedule.ranks, np.arange(schedule.chunks, dtype=np.int64)
    starts = block_starts(schedule.chunks, n)
    alone = np.array([_ranks(n, [r]) for r in range(n)])
    everyone = np.bitwise_or.reduce(alone)
    owner = np.repeat(np.arange(n), np.diff(starts))
    match schedule.operation:
        case "all_gather":
            return chunks, alone[owner]
        case "broadcast":
            return chunks, alone[np.full(len(chunks), ROOT)]
        case "send_receive":
            return chunks, alone[np.full(len(chunks), (rank - 1) % n)]
        case "all_to_all":
            mine = chunks[owner == rank]
            return np.tile(mine, n), np.repeat(alone, len(mine), axis=0)
        case "reduce":
            chunks = chunks if rank == ROOT else chunks[:0]
        case "reduce_scatter":
            chunks = chunks[owner == rank]
    return chunks, np.tile(everyone, (len(chunks), 1))


def _broken_promise(schedule: Schedule, memory: Memory, held: kernel.Held) -> str:
    for rank in range(schedule.ranks):
        chunk, ranks = promised(schedule, rank)
        slots = memory.first[rank, Buffer.OUTPUT] + np.arange(len(chunk))
        wrong = (held.chunk[slots] != chunk) | (held.ranks[slots] != ranks).any(axis=1)
        if wrong.any():
            at = int(np.argmax(wrong))
            found = _in_words(schedule.ranks, held.chunk[slots[at]], held.ranks[slots[at]])
            wanted = _in_words(schedule.ranks, chunk[at], ranks[at])
            return f"rank {rank} ends with {found} in output chunk {at}; promised was {wanted}"
    return ""


def _in_words(ranks: int, chunk: int, words: Words) -> str:
    if chunk < 0:
        return "nothing"
    members = [r for r in range(ranks) if int(words[r // 64]) >> r % 64 & 1]
    if len(members) == 1:
        return f"chunk {chunk} of rank {members[0]}"
    who = "all ranks" if len(members) == ranks else f"ranks {', '.join(map(str, members))}"
    return f"chunk {chunk} of {who}, added up"
