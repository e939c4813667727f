"""Schedules from MSCCL's XML. One idea: a message in flight lies in a place of its own at its
receiver, and each fused step becomes moves from and to such places.

A thread block does its steps in order; a step may wait for a step of another block of its GPU; the
k-th receive of a connection (sender, receiver, channel) takes the k-th send; a connection holds one
message, so a send waits until the one before was taken.

The reader trusts nothing: no document types and no entities, whole numbers in range, each element
with its line.
"""

from __future__ import annotations

import xml.parsers.expat as expat
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from eastwest.collective.program import MOST_CHUNK_MOVES
from eastwest.collective.schedule import MOVE, Buffer, Schedule
from eastwest.errors import UserError, unknown_name
from eastwest.files import read_text

OPERATIONS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
BUFFERS = {"i": Buffer.INPUT, "o": Buffer.OUTPUT, "s": Buffer.SCRATCH}
# What each type of step moves, and whether that adds: "in" is the place of the message that comes,
# "out" of the one that goes, "src" and "dst" are the step's own.
STEPS: dict[str, tuple[tuple[str, str, bool], ...]] = {
    "s": (("src", "out", False),),
    "r": (("in", "dst", False),),
    "rcs": (("in", "dst", False), ("in", "out", False)),
    "rrs": (("src", "in", True), ("in", "out", False)),
    "rrc": (("src", "in", True), ("in", "dst", False)),
    "rrcs": (("src", "in", True), ("in", "dst", False), ("in", "out", False)),
    "cpy": (("src", "dst", False),),
    "re": (("src", "dst", True),),
    "nop": (),
}
INSIDE = {"algo": "", "gpu": "algo", "tb": "gpu", "step": "tb"}
NUMBERS = {
    "algo": ("ngpus", "nchannels", "inplace"),
    "gpu": ("id", "i_chunks", "o_chunks", "s_chunks"),
    "tb": ("id", "send", "recv", "chan"),
    "step": ("s", "srcoff", "dstoff", "cnt", "depid", "deps"),
}
WORDS = {"algo": ("coll",), "gpu": (), "tb": (), "step": ("type", "srcbuf", "dstbuf")}


@dataclass(frozen=True, slots=True)
class Element:
    """An element of the file: its attributes, its line, and what stands in it."""

    name: str
    line: int
    numbers: dict[str, int]
    words: dict[str, str]
    inside: list[Element] = field(default_factory=list)


def parse(text: str, file: str) -> Element:
    """Return the ``algo`` element of a file's text. Raises UserError with the line of what is
    wrong."""
    parser, stack, root = expat.ParserCreate(), list[Element](), list[Element]()

    def start(name: str, attributes: dict[str, str]) -> None:
        element = _element(name, attributes, f"{file}:{parser.CurrentLineNumber}", stack)
        (stack[-1].inside if stack else root).append(element)
        stack.append(element)

    def refuse(*_: object) -> None:
        raise UserError(
            "a document type is not allowed here", where=f"{file}:{parser.CurrentLineNumber}"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        message = expat.errors.messages[error.code]
        raise UserError(f"not XML: {message}", where=f"{file}:{error.lineno}") from None
    return root[0]


def _element(name: str, attributes: dict[str, str], where: str, stack: list[Element]) -> Element:
    if name not in INSIDE:
        raise unknown_name("element", name, INSIDE).at(where)
    if INSIDE[name] != (stack[-1].name if stack else ""):
        place = f"inside of <{INSIDE[name]}>" if INSIDE[name] else "at the top"
        raise UserError(f"<{name[:80]}> stands {place} only", where=where)
    for key in (*NUMBERS[name], *WORDS[name]):
        if key not in attributes:
            raise UserError(f"<{name}> has no {key}", where=where)
    numbers = {key: _number(key, attributes[key], where) for key in NUMBERS[name]}
    words = {key: attributes[key] for key in WORDS[name]}
    for key, valid in (("type", STEPS), ("srcbuf", BUFFERS), ("dstbuf", BUFFERS)):
        if key in words and words[key] not in valid:
            raise unknown_name(key, words[key], valid).at(where)
    return Element(name, int(where.rsplit(":", 1)[1]), numbers, words)


def _number(key: str, text: str, where: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
        raise UserError(f"{key} is '{text[:40]}'; expected a whole number", where=where)
    return int(text)


@dataclass(slots=True)
class _Wire:
    """A message in flight: its place at the receiver, and the moves that send and last read it."""

    place: tuple[int, int, int]  # actor, buffer, chunk
    before: _Wire | None  # on the same connection
    sent: int = -1
    taken: int = -1


@dataclass(slots=True)
class _Step:
    """A step of a thread block, the wires that it meets, and the moves that it becomes."""

    gpu: Element
    block: Element
    element: Element
    before: _Step | None  # in the same block
    wire: dict[str, _Wire] = field(default_factory=dict)
    moves: range = range(0)

    @property
    def count(self) -> int:
        """Chunks that it moves."""
        return self.element.numbers["cnt"]

    def has(self, end: str) -> bool:
        """Return whether it meets one of the ends of :data:`STEPS`."""
        return any(end in transfer for transfer in STEPS[self.element.words["type"]])

    def place(self, end: str) -> tuple[int, int, int]:
        """Return actor, buffer and chunk of one of the ends of :data:`STEPS`."""
        if end in self.wire:
            return self.wire[end].place
        buffer = BUFFERS[self.element.words[f"{end}buf"]]
        return self.gpu.numbers["id"], int(buffer), self.element.numbers[f"{end}off"]


def read(path: str | Path) -> Schedule:
    """Return the schedule of an MSCCL XML file. Raises UserError with the line of what is wrong."""
    file = str(path)
    algo = parse(read_text(path, "MSCCL file"), file)
    operation, chunks = _collective(algo, file)
    steps = _steps(algo, file)
    scratch = _wires(algo, steps, file)
    moves = _moves(steps)
    needs = np.array(sorted(_needs(steps, file)), np.int64).reshape(-1, 2)
    first = np.searchsorted(needs[:, 0], np.arange(len(moves) + 1)).astype(np.int64)
    ranks, in_place = algo.numbers["ngpus"], algo.numbers["inplace"] == 1
    head = (operation, "msccl", ranks, ranks, chunks, scratch, in_place)
    return Schedule(*head, np.array(moves, MOVE), first, needs[:, 1].copy(), file)


def _at(element: Element, file: str) -> str:
    return f"{file}:{element.line}"


def _collective(algo: Element, file: str) -> tuple[str, int]:
    """Return the operation, and the chunks of the whole buffer, on which all GPUs must agree."""
    name, n = algo.words["coll"], algo.numbers["ngpus"]
    if name not in OPERATIONS:
        raise unknown_name("coll", name, OPERATIONS).at(_at(algo, file))
    if n < 1 or len(algo.inside) != n:
        raise UserError(f"{len(algo.inside)} <gpu> stand here, not {n}", where=_at(algo, file))
    operation, chunks = OPERATIONS[name], 0
    parts = {"all_gather": (n, 1), "reduce_scatter": (1, n)}.get(operation, (1, 1))
    for gpu in algo.inside:
        inputs, outputs = gpu.numbers["i_chunks"], gpu.numbers["o_chunks"]
        found = max(inputs * parts[0], outputs * parts[1])
        chunks = chunks or found
        if min(inputs, outputs, gpu.numbers["s_chunks"]) < 0 or found != chunks or not chunks:
            raise UserError("its chunks do not fit the collective", where=_at(gpu, file))
    if operation == "all_to_all" and chunks % n:
        raise UserError(f"{chunks} chunks do not divide among {n} GPUs", where=_at(algo, file))
    return operation, chunks


def _numbered(element: Element, key: str, file: str) -> list[Element]:
    """Return what stands inside an element, which must be numbered from 0 on, in order."""
    for number, inner in enumerate(element.inside):
        if inner.numbers[key] != number:
            what = f"{key} is {inner.numbers[key]}; expected {number}, in order"
            raise UserError(what, where=_at(inner, file))
    return element.inside


def _steps(algo: Element, file: str) -> list[_Step]:
    steps: list[_Step] = []
    for gpu in _numbered(algo, "id", file):
        for block in _numbered(gpu, "id", file):
            before = None
            for element in _numbered(block, "s", file):
                before = _Step(gpu, block, element, before)
                steps.append(before)
    if sum(max(0, step.count) for step in steps) > MOST_CHUNK_MOVES:
        raise UserError("too many chunks to follow", where=_at(algo, file))
    return steps


def _wires(algo: Element, steps: list[_Step], file: str) -> int:
    """Give each message a place at its receiver, after that one's own scratch; return the most
    scratch of all."""
    sends, receives = (_connections(algo, steps, end, file) for end in ("out", "in"))
    free = [gpu.numbers["s_chunks"] for gpu in algo.inside]
    for key in sorted(sends.keys() | receives.keys()):
        out, into = sends.get(key, []), receives.get(key, [])
        _meet(key, out, into, file)
        wire = None
        for send, receive in zip(out, into, strict=True):
            wire = _Wire((key[1], int(Buffer.SCRATCH), free[key[1]]), wire)
            send.wire["out"] = receive.wire["in"] = wire
            free[key[1]] += send.count
    return max(free)


Connection = tuple[int, int, int]  # sender, receiver, channel


def _connections(
    algo: Element, steps: list[_Step], end: str, file: str
) -> dict[Connection, list[_Step]]:
    """Return the steps that send ("out") or receive ("in") on each connection, in order."""
    peer, found = ("send" if end == "out" else "recv"), dict[Connection, list[_Step]]()
    for step in steps:
        if not step.has(end):
            continue
        mine, other = step.gpu.numbers["id"], step.block.numbers[peer]
        if not 0 <= other < len(algo.inside) or other == mine:
            raise UserError(f"{peer} is {other}, no other GPU", where=_at(step.block, file))
        ends = (mine, other) if end == "out" else (other, mine)
        of_connection = found.setdefault((*ends, step.block.numbers["chan"]), [])
        if of_connection and of_connection[0].block is not step.block:
            what = f"another block of its GPU has the same {peer} and chan"
            raise UserError(what, where=_at(step.block, file))
        of_connection.append(step)
    return found


def _meet(key: Connection, out: list[_Step], into: list[_Step], file: str) -> None:
    """Raise UserError unless all that is sent on a connection is received there."""
    for send, receive in zip(out, into, strict=False):
        if send.count != receive.count:
            what = f"receives {receive.count} chunks of the {send.count} sent in line "
            where = _at(receive.element, file)
            raise UserError(f"{what}{send.element.line}", where=where)
    if len(out) != len(into):
        left = (out if len(out) > len(into) else into)[min(len(out), len(into))]
        raise UserError(
            f"GPU {key[0]} sends {len(out)} times to GPU {key[1]} on channel {key[2]}, which "
            f"receives {len(into)} times",
            where=_at(left.element, file),
        )


def _moves(steps: list[_Step]) -> list[tuple[int, ...]]:
    """Write down each step's moves, one after another, and who sends and takes each message."""
    moves: list[tuple[int, ...]] = []
    for step in steps:
        begin, element = len(moves), step.element
        for source, target, adds in STEPS[element.words["type"]]:
            if source == "in":
                step.wire["in"].taken = len(moves)
            if target == "out":
                step.wire["out"].sent = len(moves)
            a, b = step.place(source), step.place(target)
            ends = (a[0], b[0], *a[1:], *b[1:])
            tail = (step.block.numbers["chan"], int(adds), step.count, element.line)
            moves.append((element.numbers["s"], *ends, *tail))
        step.moves = range(begin, len(moves))
    return moves


def _needs(steps: list[_Step], file: str) -> set[tuple[int, int]]:
    """Return pairs: a move, and one that must have ended before."""
    of = {_key(step): step for step in steps}
    waits = {id(step): _waits(step, of, file) for step in steps}
    needs = set[tuple[int, int]]()
    for step in steps:
        behind = _ends_behind(step, waits, file)
        if not step.moves:
            continue
        needs |= {(step.moves[0], move) for move in behind}
        needs |= {(move, move - 1) for move in step.moves[1:]}
        if "in" in step.wire:
            needs.add((step.moves[0], step.wire["in"].sent))
        if "out" in step.wire and step.wire["out"].before:
            needs.add((step.wire["out"].sent, step.wire["out"].before.taken))
    return needs


def _key(step: _Step) -> tuple[int, int, int]:
    return step.gpu.numbers["id"], step.block.numbers["id"], step.element.numbers["s"]


def _waits(step: _Step, of: dict[tuple[int, int, int], _Step], file: str) -> list[_Step]:
    """Return the steps after which a step comes: the one before, and the one that it names."""
    waits = [step.before] if step.before else []
    block, number = step.element.numbers["depid"], step.element.numbers["deps"]
    if block < 0:
        return waits
    other = of.get((step.gpu.numbers["id"], block, number))
    if other is None or other is step:
        what = f"waits for step {number} of block {block}, which is no other step of its GPU"
        raise UserError(what, where=_at(step.element, file))
    return [*waits, other]


def _ends_behind(step: _Step, waits: dict[int, list[_Step]], file: str) -> set[int]:
    """Return the last moves of the steps that one comes after, through those that move nothing."""
    ends, seen, behind = set[int](), set[int](), list(waits[id(step)])
    while behind:
        at = behind.pop()
        if at is step:
            raise UserError("waits for itself in a circle", where=_at(step.element, file))
        if at.moves:
            ends.add(at.moves[-1])
        elif id(at) not in seen:
            seen.add(id(at))
            behind += waits[id(at)]
    return ends
