"""When would the cheaper network do? One idea: run both again with fewer GPUs and with slower
compute until they meet.

"Enough" is a step no more than a twentieth longer than the winner's.
"""

from __future__ import annotations

from dataclasses import replace

from eastwest.study.run import Job
from eastwest.study.situation import Situation
from eastwest.training.plan import StepInput
from eastwest.units import format_time
from eastwest.workload.compute import Machine

ENOUGH = 1.05
_SEARCH_ROUNDS = 40
_WIDEST = 1e4


def break_even(job: Job, best: Situation, other: Situation) -> list[str]:
    """Return sentences: below how many GPUs, and above how much compute a step, the other would
    do."""
    ratio = _ratio(job, best, other, job.inputs)
    if ratio <= ENOUGH:
        return [
            f"{other.label} would do here: its step is {ratio - 1:.1%} longer. "
            + _faster(job, best, other)
        ]
    return [f"{other.label} {_fewer(job, best, other)}, {_slower(job, best, other)}."]


def _ratio(job: Job, best: Situation, other: Situation, inputs: StepInput) -> float:
    return job.step(other, inputs=inputs).step_s / job.step(best, inputs=inputs).step_s


def fewer_replicas(inputs: StepInput, data: int) -> StepInput:
    """Return the job on fewer data parallel replicas, each with the batch that it has now."""
    layout, recipe = inputs.layout, inputs.recipe
    batch = recipe.global_batch // layout.data * data
    expert = layout.expert if data * layout.context % layout.expert == 0 else 1
    return replace(
        inputs,
        layout=replace(layout, data=data, expert=expert),
        recipe=replace(recipe, global_batch=batch),
    )


def _fewer(job: Job, best: Situation, other: Situation) -> str:
    def enough(data: int) -> bool:
        return _ratio(job, best, other, fewer_replicas(job.inputs, data)) <= ENOUGH

    high = low = job.inputs.layout.data
    while low > 1:
        high, low = low, low // 2
        if enough(low):
            break
    else:
        return "would not do at fewer GPUs either"
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    gpus = fewer_replicas(job.inputs, low).layout.gpus
    return f"would do up to {gpus:,} GPUs (the same batch a replica)"


def _scaled(machine: Machine, slower: float) -> Machine:
    names = ("gemm_FLOPs", "gemm_fp8_FLOPs", "gemm_fp32_FLOPs", "attention_FLOPs", "memory_Bps")
    return replace(machine, **{name: getattr(machine, name) / slower for name in names})


def _meeting(job: Job, best: Situation, other: Situation, low: float, high: float) -> float:
    """Return the slow-down of compute at which the other is just enough, by bisection on its
    logarithm."""
    for _ in range(_SEARCH_ROUNDS):
        middle = (low * high) ** 0.5
        inputs = replace(job.inputs, machine=_scaled(job.inputs.machine, middle))
        low, high = (low, middle) if _ratio(job, best, other, inputs) <= ENOUGH else (middle, high)
    return high


def _compute_s(job: Job, best: Situation, slower: float) -> float:
    inputs = replace(job.inputs, machine=_scaled(job.inputs.machine, slower))
    step = job.step(best, inputs=inputs)
    return step.part("compute") + step.part("recomputation")


def _slower(job: Job, best: Situation, other: Situation) -> str:
    factor = _meeting(job, best, other, 1.0, _WIDEST)
    now, then = _compute_s(job, best, 1.0), _compute_s(job, best, factor)
    if factor >= _WIDEST * 0.99:
        return "nor with compute of any length"
    return (
        f"or with {format_time(then)} of compute a step ({factor:.3g} times as much as now, "
        f"{format_time(now)})"
    )


def _faster(job: Job, best: Situation, other: Situation) -> str:
    factor = _meeting(job, best, other, 1.0 / _WIDEST, 1.0)
    now, then = _compute_s(job, best, 1.0), _compute_s(job, best, factor)
    if factor <= 1.01 / _WIDEST:
        return "That would not change with faster GPUs."
    return (
        f"It would no longer do with less than {format_time(then)} of compute a step "
        f"({1 / factor:.3g} times faster "
        f"than now, {format_time(now)})."
    )
