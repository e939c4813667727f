"""eastwest.collective.prove again, with dictionaries and sets, in an order drawn at random."""

from __future__ import annotations

import random
from itertools import pairwise

from eastwest.collective.schedule import Buffer, Schedule, block_starts

Value = tuple[int, frozenset[int]]  # a chunk, and the ranks added up


def outcome(schedule: Schedule, seed: int) -> str:
    """What goes wrong in one order of moves that the needs allow, empty if nothing does."""
    slots = initial(schedule)
    draw, done = random.Random(seed), set[int]()
    first, need = schedule.first_need.tolist(), schedule.need.tolist()
    needs = [set(need[a:b]) for a, b in pairwise(first)]
    ready = [m for m, wanted in enumerate(needs) if not wanted]
    followers: dict[int, list[int]] = {}
    for move, wanted in enumerate(needs):
        for one in wanted:
            followers.setdefault(one, []).append(move)
    while ready:
        move = ready.pop(draw.randrange(len(ready)))
        wrong = carry_out(schedule, move, slots)
        if wrong:
            return wrong
        done.add(move)
        for after in followers.get(move, []):
            needs[after].discard(move)
            if not needs[after]:
                ready.append(after)
    if len(done) < len(needs):
        return "some never start"
    return "" if all(kept(schedule, r, slots) for r in range(schedule.ranks)) else "broken"


def initial(schedule: Schedule) -> dict[int, Value]:
    memory, slots = schedule.memory, {}
    starts = block_starts(schedule.chunks, schedule.ranks)
    for rank in range(schedule.ranks):
        for i in range(memory.size[rank, Buffer.INPUT]):
            chunk = i + (starts[rank] if schedule.operation == "all_gather" else 0)
            slots[int(memory.first[rank, Buffer.INPUT]) + i] = (int(chunk), frozenset([rank]))
    return slots


def carry_out(schedule: Schedule, move: int, slots: dict[int, Value]) -> str:
    m, memory = schedule.moves[move], schedule.memory
    for i in range(m["count"]):
        source, target = (
            int(memory.first[m[end], m[f"{end}_buffer"]] + m[f"{end}_chunk"] + i)
            for end in ("source", "target")
        )
        if source not in slots:
            return "reads nothing"
        chunk, ranks = slots[source]
        fresh = m["target"] >= schedule.ranks and target not in slots
        if m["reduce"] and not fresh:
            if target not in slots or slots[target][0] != chunk or slots[target][1] & ranks:
                return "adds wrongly"
            ranks |= slots[target][1]
        slots[target] = (chunk, ranks)
    return ""


def kept(schedule: Schedule, rank: int, slots: dict[int, Value]) -> bool:
    n, chunks = schedule.ranks, schedule.chunks
    starts = block_starts(chunks, n).tolist()
    owner = [next(r for r in range(n) if starts[r] <= c < starts[r + 1]) for c in range(chunks)]
    everyone, mine = frozenset(range(n)), range(starts[rank], starts[rank + 1])
    wanted: list[Value] = {
        "all_reduce": [(c, everyone) for c in range(chunks)],
        "all_gather": [(c, frozenset([owner[c]])) for c in range(chunks)],
        "reduce_scatter": [(c, everyone) for c in mine],
        "broadcast": [(c, frozenset([0])) for c in range(chunks)],
        "reduce": [(c, everyone) for c in range(chunks)] if rank == 0 else [],
        "all_to_all": [(c, frozenset([r])) for r in range(n) for c in mine],
        "send_receive": [(c, frozenset([(rank - 1) % n])) for c in range(chunks)],
    }[schedule.operation]
    first = int(schedule.memory.first[rank, Buffer.OUTPUT])
    return [slots.get(first + i) for i in range(len(wanted))] == wanted
