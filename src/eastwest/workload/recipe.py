"""How a model is trained, apart from what it is and where. One idea: one frozen value that all
formulas read."""

from __future__ import annotations

from dataclasses import dataclass

from eastwest.errors import UserError

ELEMENT_bytes = {
    "bf16": 2,
    "fp16": 2,
    "fp8": 2,
    "fp32": 4,
}  # of weights and activations kept; FP8 is cast on the way


@dataclass(frozen=True, slots=True)
class Recipe:
    """Batch, precision and memory choices of a training job; names as in the cluster file."""

    global_batch: int  # sequences an optimizer step
    micro_batch: int  # sequences a replica computes at once
    sequence: int  # tokens
    precision: str = "bf16"  # bf16 | fp16 | fp8 | fp32
    recompute: str = "none"  # none | selective | full
    # what data parallel replicas share: 0 nothing, 1 optimizer, 2 and gradients, 3 and weights
    zero: int = 1
    overlap: bool = True  # gradients travel while the backward pass still computes
    gradient_precision: str = "fp32"
    sequence_parallel: bool = (
        True  # norms and residuals cut by tensor parallelism too (Korthikanti et al. 2022)
    )
    attention: str = "flash"  # flash | unfused: whether the square of scores goes to memory
    interleave: int = 1  # model chunks a pipeline stage

    def __post_init__(self) -> None:
        if min(self.global_batch, self.micro_batch, self.sequence, self.interleave) < 1:
            raise UserError("global_batch, micro_batch, sequence and interleave must be 1 or more")
        if self.precision not in ELEMENT_bytes or self.gradient_precision not in (
            "fp32",
            "bf16",
            "fp16",
        ):
            raise UserError(f"unknown precision '{self.precision}' or '{self.gradient_precision}'")
        if self.recompute not in ("none", "selective", "full") or self.zero not in (0, 1, 2, 3):
            raise UserError(f"unknown recompute '{self.recompute}' or zero '{self.zero}'")

    @property
    def element_bytes(self) -> int:
        """Bytes of a weight or an activation."""
        return ELEMENT_bytes[self.precision]

    @property
    def gradient_bytes(self) -> int:
        """Bytes of one gradient element, kept and exchanged."""
        return ELEMENT_bytes[self.gradient_precision]
