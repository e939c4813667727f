"""What a step asks of the network, and what it is made of. One idea: one protocol and one list of
parts, which all who time steps share."""

from __future__ import annotations

from typing import Protocol

from eastwest.workload.layout import Group

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_receive")
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
    "waiting for stragglers",
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
    reduce-scatter: input; all-to-all: what one rank sends in all, itself included; send_receive:
    the message), ``kind`` one of KINDS.
    """

    def __call__(self, op: str, size_bytes: float, group: Group, kind: str) -> float:
        """Return seconds, finite and not negative."""
