"""How long a step is, and where it goes. One idea: computing, plus every second of communication
that nothing hides.

The pipeline runs 1F1B (Narayanan et al. 2021), interleaved or not. With m microbatches, p stages, v
chunks a stage:

    step = m t + (m - 1) (slowest - t) + (p - 1) t / v + exposed pipeline + exposed data parallel +
    optimizer + rest

where t is the time of one microbatch on the average stage, forward and backward, with what it waits
for tensor, context and expert parallel peers. Its second and third terms are the *pipeline bubble*;
for equal stages it is (p-1) / (m v) of the rest.

What hides what:

- tensor and expert parallel exchanges: nothing hides them.
- context parallel: attention's scores on the blocks already here, a share (c-1)/c of them.
- pipeline: without interleaving each send waits; with it, the computing of one chunk hides a send,
  except while the pipeline fills and drains.
- gradients (overlap on): the backward pass of the last microbatch on this stage, and with
  interleaving the last ones of p microbatches on the other v - 1 chunks; the last bucket is never
  hidden. Weights that ZeRO 1 and 2 gather hide behind the first forward pass likewise. ZeRO 2 and 3
  exchange with every microbatch: hidden behind that microbatch's passes, but for the first and the
  last piece of a step.
- what is hidden slows computing by a share of its own length (``overlap_cost``): it takes
  multiprocessors and memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from eastwest.errors import InternalError
from eastwest.training.operations import PART, PARTS, Communicate
from eastwest.training.plan import Message, StepInput, StepPlan, plan


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message of the step on one network."""

    message: Message
    seconds: float  # of one repetition
    exposed_s: float  # of all repetitions: what they add to the step


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """One optimizer step. ``parts`` add up to ``step_s``; ``exchanges`` to the parts named for
    their kinds."""

    step_s: float
    parts: tuple[tuple[str, float], ...]
    # of the step, in which a GPU does no model compute (forward, backward, recomputation)
    idle_share: float
    tokens_per_s: float
    model_FLOPs: float  # forward and backward, causal attention, nothing recomputed
    mfu: float  # of the GPUs' peak for the precision
    gradient_bytes: float  # that one GPU of the fullest stage exchanges
    microbatches: int
    exchanges: tuple[Exchange, ...]

    def part(self, name: str) -> float:
        """Return the seconds of one part, named as in PARTS. Raises KeyError."""
        return dict(self.parts)[name]

    def idle_parts(self) -> tuple[tuple[str, float], ...]:
        """Return the shares of the step that are neither compute nor recomputation, by part; they
        add up to ``idle_share``."""
        working = ("compute", "recomputation")
        return tuple((name, s / self.step_s) for name, s in self.parts if name not in working)


def step_time(inputs: StepInput, communicate: Communicate) -> TrainingStep:
    """Return the time of one step and its parts.

    Raises UserError if the batch does not divide, InternalError if the network answers with what is
    no time.

    ``inputs`` is the job without its network, ``communicate`` the network: it is asked once for
    each message of the plan and answers in seconds.
    """
    p = plan(inputs)
    seconds = tuple([_asked(communicate, m) for m in p.messages])
    exposed = _exposures(p, seconds)
    sums = dict.fromkeys(PARTS, 0.0)
    for message, value in zip(p.messages, exposed, strict=True):
        sums[PART[message.kind]] += value
    sums["compute"], sums["recomputation"] = p.compute_s, p.recompute_s
    sums["optimizer"], sums["rest of the step"] = p.optimizer_s, inputs.machine.step_s
    sums["pipeline bubble"] = _bubble_s(p, sums)
    nodes = -(-inputs.layout.gpus // inputs.node_gpus)
    sums["waiting for stragglers"] = (
        inputs.machine.straggler * math.log2(nodes) * sum(sums.values())
    )
    parts = tuple(sums.items())
    step_s = sum(sums.values())
    recipe = inputs.recipe
    return TrainingStep(
        step_s=step_s,
        parts=parts,
        idle_share=1.0 - (p.compute_s + p.recompute_s) / step_s,
        tokens_per_s=recipe.global_batch * recipe.sequence / step_s,
        model_FLOPs=p.model_FLOPs,
        mfu=p.model_FLOPs / (inputs.layout.gpus * inputs.machine.peak(recipe.precision) * step_s),
        gradient_bytes=p.gradient_bytes,
        microbatches=p.microbatches,
        exchanges=tuple(map(Exchange, p.messages, seconds, exposed)),
    )


def _asked(communicate: Communicate, m: Message) -> float:
    seconds = communicate(m.op, m.size_bytes, m.group, m.kind)
    if not 0.0 <= seconds < math.inf:
        raise InternalError(f"{m.op} of {m.size_bytes:.0f} B takes {seconds} s")
    return seconds


def _bubble_s(p: StepPlan, sums: dict[str, float]) -> float:
    """Return what GPUs wait for each other: filling, draining, and the slowest stage."""
    layout, model, times = p.inputs.layout, p.inputs.model, p.times
    stages, count = layout.pipeline, p.microbatches
    if stages == 1:
        return 0.0
    waited = (
        sums["exposed tensor parallel"]
        + sums["exposed context parallel"]
        + sums["exposed expert parallel"]
    )
    mean = (p.compute_s + p.recompute_s + waited) / count
    head = times.head.forward_s + times.head.backward_s
    layer = (mean - head / stages) / p.layers
    least, most = model.layers // stages, -(-model.layers // stages)
    slowest = max(most * layer, least * layer + head)
    return (count - 1) * max(0.0, slowest - mean) + (stages - 1) / p.inputs.recipe.interleave * mean


def _pass_s(p: StepPlan, phase: str) -> float:
    """Return the computing of one microbatch's pass on the average stage."""
    head, stages = p.times.head, p.inputs.layout.pipeline
    if phase == "forward":
        return p.layers * p.times.layer.forward_s + head.forward_s / stages
    return p.layers * (p.times.layer.backward_s + p.times.again_s) + head.backward_s / stages


def _exposures(p: StepPlan, seconds: tuple[float, ...]) -> tuple[float, ...]:
    """Return for each message what all its repetitions in a step add to the step."""
    exposed = [m.repeats * s for m, s in zip(p.messages, seconds, strict=True)]
    for index, message in enumerate(p.messages):
        if message.kind == "context":
            hidden = _core_s(p, message.phase) * (message.group.ranks - 1) / message.group.ranks
            exposed[index] = message.repeats * max(0.0, seconds[index] - hidden)
        elif message.kind == "pipeline" and message.scope == "microbatch":
            exposed[index] = _send_exposed_s(p, message, seconds[index])
        elif message.kind in ("tensor", "expert"):
            exposed[index] *= 1.0 - _hidden_share(p, message.kind)
    if p.inputs.recipe.overlap:
        _hide_data(p, seconds, exposed)
    return tuple(exposed)


def _hidden_share(p: StepPlan, kind: str) -> float:
    """Return the share of a layer's exchanges that runs beside its computing."""
    return p.inputs.machine.tensor_hidden if kind == "tensor" else p.inputs.machine.expert_hidden


def _core_s(p: StepPlan, phase: str) -> float:
    """Return the scores' time that hides one exchange of keys and values; backward has 2.5 times,
    for two of them."""
    return p.times.core_s * (1.25 if phase == "backward" else 1.0)


def _send_exposed_s(p: StepPlan, message: Message, send_s: float) -> float:
    """Return the exposed time of all sends one way: all of them, or with interleaving what exceeds
    a chunk."""
    recipe, ends = p.inputs.recipe, (p.inputs.layout.pipeline - 1) * send_s
    if recipe.interleave == 1:
        return message.repeats * send_s + ends
    chunk = _pass_s(p, message.phase) / recipe.interleave
    return message.repeats * max(0.0, send_s - chunk) + ends


def _hide_data(p: StepPlan, seconds: tuple[float, ...], exposed: list[float]) -> None:
    """Lower the exposed time of gradients and weights by what their windows hide, shared in
    proportion."""
    zero, count = p.inputs.recipe.zero, p.microbatches
    forward, backward = _pass_s(p, "forward"), _pass_s(p, "backward")
    phases = {m.phase for m in p.messages if m.kind == "data"}
    for phase in phases:
        own = [i for i, m in enumerate(p.messages) if m.kind == "data" and m.phase == phase]
        pieces = sum(p.messages[i].repeats for i in own)
        total = sum(p.messages[i].repeats * seconds[i] for i in own)
        longest = max(seconds[i] for i in own)
        if zero <= 1 or phase == "weights":
            window = (
                _tail(p) * (forward if phase == "weights" else backward) * (1.0 - len(own) / pieces)
            )
        elif (
            zero == 2
            # each microbatch's gradients behind the next microbatch's passes, the last behind its
            # own
        ):
            window = (count - 1) * (forward + backward) + backward * (
                1.0 - len(own) * count / pieces
            )
        elif phase == "forward":
            window = count * forward
        else:  # ZeRO-3: weights and gradients share the backward pass
            window = count * backward * 0.5
        left = max(total - window, longest)
        left += p.inputs.machine.overlap_cost * (total - left)
        for i in own:
            exposed[i] = left * p.messages[i].repeats * seconds[i] / total if total else 0.0


def _tail(p: StepPlan) -> float:
    """Return how many passes of a microbatch remain when the first chunk's gradients are
    complete."""
    v = p.inputs.recipe.interleave
    return ((v - 1) * p.inputs.layout.pipeline + 1) / v
