"""What one rank does in a step. One idea: a class of equal ranks has one list of operations, each
with its repeats.

This is the interface for a timeline of the step: operations stand in the order of one microbatch,
with streams and dependencies; ``repeats`` is how often each runs in a step (layers x microbatches;
a fraction where pipeline stages are uneven, because the list is of the average stage). The analytic
step is their sum: of each operation, the seconds that nothing hides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from eastwest.workload.layout import Group

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send")
KINDS = ("tensor", "context", "expert", "pipeline", "data")
PARTS = (
    "compute",
    "recomputation",
    "exposed tensor parallel",
    "exposed context parallel",
    "exposed expert parallel",
    "pipeline bubble",
    "exposed pipeline",
    "exposed data parallel",
    "optimizer",
    "rest of the step",
)
PART = {
    "tensor": "exposed tensor parallel",
    "context": "exposed context parallel",
    "expert": "exposed expert parallel",
    "pipeline": "exposed pipeline",
    "data": "exposed data parallel",
}


class Communicate(Protocol):
    """Whoever knows the network: returns the seconds of one collective or message.

    ``op`` is one of COLLECTIVES, ``size_bytes`` follows nccl-tests (all-gather: output;
    reduce-scatter: input; all-to-all: what one rank sends in all, itself included; send: the
    message), ``kind`` one of KINDS.
    """

    def __call__(self, op: str, size_bytes: float, group: Group, kind: str) -> float:
        """Return seconds, finite and not negative."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a rank. ``exposed_s`` is the part of ``seconds`` that no computing hides."""

    name: str
    kind: str  # compute | collective | send | memory
    seconds: float  # of one repetition
    exposed_s: float  # of one repetition
    repeats: float  # in a step
    scope: str  # repeated for each: layer (of each microbatch) | microbatch | step
    part: str  # of the step, to which exposed_s x repeats is added
    stream: str  # compute, or the kind of communication
    group: Group | None
    op: str  # the collective, empty for compute
    bytes: float  # of one collective or message, as Communicate takes it
    depends_on: tuple[str, ...]

    @property
    def exposed_total_s(self) -> float:
        """What it adds to a step."""
        return self.exposed_s * self.repeats
