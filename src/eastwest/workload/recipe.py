"""How a model is trained, apart from what it is and where. One idea: one frozen value that all
formulas read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eastwest.errors import UserError

ELEMENT_bytes = {
    "bf16": 2,
    "fp16": 2,
    "fp8": 2,
    "fp32": 4,
}  # of weights and activations kept; FP8 is cast on the way


RECOMPUTE = ("none", "selective", "operations", "full")
SCALINGS = ("tensor", "block", "mx")
SOFTWARE = ("2021", "2023", "2025", "2026")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Batch, precision and memory choices of a training job; names as in the cluster file.

    ``recompute`` says what the backward pass computes again: nothing, unfused attention's scores
    (Korthikanti et al. 2022), all operations but attention and every second matrix product, or
    all. ``software`` is the generation of the frameworks: of 2021 (before flash attention), 2023,
    2025 (grouped experts), 2026 (fused routing, graphs of launches). ``fused`` tells whether a
    norm, an activation or a residual sum is one kernel; each is several in plain PyTorch. Raises
    UserError for values that are none of these.
    """

    global_batch: int  # sequences an optimizer step
    micro_batch: int  # sequences a replica computes at once
    sequence: int  # tokens
    precision: str = "bf16"  # bf16 | fp16 | fp8 | fp32
    recompute: str = "none"  # none | selective | operations | full
    # what data parallel replicas share: 0 nothing, 1 optimizer, 2 and gradients, 3 and weights
    zero: int = 1
    overlap: bool = True  # gradients travel while the backward pass still computes
    gradient_precision: str = "fp32"
    # norms and residuals cut by tensor parallelism too (Korthikanti et al. 2022)
    sequence_parallel: bool = True
    attention: str = "flash"  # flash | unfused: whether the square of scores goes to memory
    interleave: int = 1  # model chunks a pipeline stage
    scaling: str = "tensor"  # one FP8 scale for each tensor | block | mx (32 elements)
    software: str = "2025"  # 2021 | 2023 | 2025 | 2026
    fused: bool = True
    # each rank of a tensor group sends its slice to the next stage, which gathers it again
    sliced_sends: bool = True

    def __post_init__(self) -> None:
        if min(self.global_batch, self.micro_batch, self.sequence, self.interleave) < 1:
            raise UserError("global_batch, micro_batch, sequence and interleave must be 1 or more")
        for what, value, known in (
            ("precision", self.precision, tuple(ELEMENT_bytes)),
            ("gradient_precision", self.gradient_precision, ("fp32", "bf16", "fp16")),
            ("recompute", self.recompute, RECOMPUTE),
            ("zero", self.zero, (0, 1, 2, 3)),
            ("attention", self.attention, ("flash", "unfused")),
            ("scaling", self.scaling, SCALINGS),
            ("software", self.software, SOFTWARE),
        ):
            if value not in known:
                raise UserError(f"unknown {what} '{value}'", hint=f"known: {_listed(known)}")

    @property
    def element_bytes(self) -> int:
        """Bytes of a weight or an activation."""
        return ELEMENT_bytes[self.precision]

    @property
    def gradient_bytes(self) -> int:
        """Bytes of one gradient element, kept and exchanged."""
        return ELEMENT_bytes[self.gradient_precision]


def _listed(known: Iterable[object]) -> str:
    return ", ".join(map(str, known))
