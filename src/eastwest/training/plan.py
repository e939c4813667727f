"""What a step consists of, before anyone knows the network. One idea: all that does not depend on
it is worked out once.

A StepPlan is cached by its input, so that comparing networks or drawing worlds of network constants
costs only the collectives and a handful of sums.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from eastwest.errors import UserError
from eastwest.workload.compute import Machine, StageTimes, stage_times
from eastwest.workload.layout import Group, Groups, Layout, groups, microbatches
from eastwest.workload.memory import Shard, shard
from eastwest.workload.recipe import Recipe
from eastwest.workload.shapes import Model, forward_FLOPs_per_token


@dataclass(frozen=True, slots=True)
class StepInput:
    """All that a step depends on but the network. ``node_gpus`` are the GPUs of one NVLink
    domain."""

    model: Model
    layout: Layout
    recipe: Recipe
    machine: Machine
    node_gpus: int


@dataclass(frozen=True, slots=True)
class Message:
    """One kind of communication of a step: asked of the network once, repeated ``repeats``
    times."""

    name: str
    op: str
    size_bytes: float
    group: Group
    kind: str
    scope: str  # layer | microbatch | step
    repeats: float  # in a step
    phase: str  # forward | backward | recompute | gradients | weights


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A step without its network."""

    inputs: StepInput
    microbatches: int
    times: StageTimes
    messages: tuple[Message, ...]
    layers: float  # a stage, on average
    optimizer_s: float
    gradient_bytes: float
    model_FLOPs: float
    compute_s: float  # of the average GPU: forward and backward
    recompute_s: float


@functools.lru_cache(maxsize=4096)
def plan(inputs: StepInput) -> StepPlan:
    """Work out computing, messages and sizes of a step. Raises UserError if the batch does not
    divide.

    ``inputs`` is all that a step depends on but the network. All times in the result are seconds,
    sizes bytes, repeats a step.
    """
    model, layout, recipe, gpu = inputs.model, inputs.layout, inputs.recipe, inputs.machine
    if layout.pipeline * recipe.interleave > model.layers:
        what = (
            f"pipeline {layout.pipeline} x interleave {recipe.interleave} is more than "
            f"{model.layers} layers"
        )
        raise UserError(what)
    count = microbatches(layout, recipe.global_batch, recipe.micro_batch)
    times, held = stage_times(model, layout, recipe, gpu), shard(model, layout)
    layers = model.layers / layout.pipeline
    tokens = recipe.global_batch * recipe.sequence
    head = (times.head.forward_s + times.head.backward_s) / layout.pipeline
    compute = count * (layers * (times.layer.forward_s + times.layer.backward_s) + head)
    return StepPlan(
        inputs=inputs,
        microbatches=count,
        times=times,
        messages=_messages(inputs, groups(layout, inputs.node_gpus), held, count),
        layers=layers,
        optimizer_s=_optimizer_s(inputs, held),
        gradient_bytes=recipe.gradient_bytes * held.total,
        model_FLOPs=3.0 * tokens * forward_FLOPs_per_token(model, recipe.sequence),
        compute_s=compute,
        recompute_s=count * layers * times.again_s,
    )


def _optimizer_s(inputs: StepInput, held: Shard) -> float:
    """Return Adam's time: it reads gradient (twice, once for its norm), weight and two moments, and
    writes all but it."""
    recipe, layout = inputs.recipe, inputs.layout
    replicas = layout.data * layout.context
    own = held.total
    if recipe.zero:
        own = held.common / replicas + held.experts / max(1, replicas // layout.expert)
    copied = 0 if recipe.precision == "fp32" else recipe.element_bytes
    return own * (24.0 + 2.0 * recipe.gradient_bytes + copied) / inputs.machine.memory_Bps


def _messages(inputs: StepInput, of: Groups, held: Shard, count: int) -> tuple[Message, ...]:
    """Return all messages of a step; kinds whose group is one rank alone have none."""
    passes = ["forward", "backward"] + (["recompute"] if inputs.recipe.recompute == "full" else [])
    found: list[Message] = []
    for phase in passes:
        found += _tensor(inputs, of.tensor, phase, count)
        found += _context(inputs, of.context, phase, count)
        found += _expert(inputs, of.expert, phase, count)
    return (*found, *_pipeline(inputs, of, count), *_data(inputs, of, held, count))


def _tokens(inputs: StepInput) -> float:
    return inputs.recipe.micro_batch * inputs.recipe.sequence / inputs.layout.context


def _layer_repeats(inputs: StepInput, count: int, layers: int) -> float:
    return count * layers / inputs.layout.pipeline


def _tensor(inputs: StepInput, group: Group, phase: str, count: int) -> list[Message]:
    """Return the two all-reduces of a layer's pass, each cut into its halves where sequences are
    cut too.

    Shoeybi et al. 2019: two all-reduces of s b h forward and two backward; Korthikanti et al. 2022:
    an all-gather and a reduce-scatter of the same volume instead of each.
    """
    if group.ranks == 1:
        return []
    size = _tokens(inputs) * inputs.model.hidden * inputs.recipe.element_bytes
    repeats = _layer_repeats(inputs, count, inputs.model.layers)
    found = []
    for block in ("attention", "feed-forward"):
        own = f"{phase} {block}"
        if inputs.recipe.sequence_parallel:
            gather, scatter = f"{own} gather", f"{own} scatter"
            found.append(
                Message(gather, "all_gather", size, group, "tensor", "layer", repeats, phase)
            )
            found.append(
                Message(scatter, "reduce_scatter", size, group, "tensor", "layer", repeats, phase)
            )
        else:
            name = f"{own} all-reduce"
            found.append(
                Message(name, "all_reduce", size, group, "tensor", "layer", repeats, phase)
            )
    return found


def _context(inputs: StepInput, group: Group, phase: str, count: int) -> list[Message]:
    """Return the exchange of keys and values: gathered in each pass, their gradients scattered
    backward."""
    if group.ranks == 1:
        return []
    model = inputs.model
    width = (
        model.kv_heads * (model.head_dim + model.values) / min(inputs.layout.tensor, model.kv_heads)
    )
    size = inputs.recipe.micro_batch * inputs.recipe.sequence * width * inputs.recipe.element_bytes
    repeats = _layer_repeats(inputs, count, model.layers)
    name = f"{phase} keys and values"
    found = [
        Message(f"{name} gather", "all_gather", size, group, "context", "layer", repeats, phase)
    ]
    if phase == "backward":
        scatter = Message(
            f"{name} scatter", "reduce_scatter", size, group, "context", "layer", repeats, phase
        )
        found.append(scatter)
    return found


def _expert(inputs: StepInput, group: Group, phase: str, count: int) -> list[Message]:
    """Return dispatch and combine of a layer with experts; tokens are spread evenly."""
    if group.ranks == 1 or not inputs.model.moe_layers:
        return []
    share = inputs.layout.tensor if inputs.recipe.sequence_parallel else 1
    copies = expert_copies(inputs.model.active_experts, group)
    size = _tokens(inputs) * copies * inputs.model.hidden * inputs.recipe.element_bytes / share
    repeats = _layer_repeats(inputs, count, inputs.model.moe_layers)
    return [
        Message(f"{phase} dispatch", "all_to_all", size, group, "expert", "layer", repeats, phase),
        Message(f"{phase} combine", "all_to_all", size, group, "expert", "layer", repeats, phase),
    ]


def expert_copies(experts: int, group: Group) -> float:
    """Return how often one token travels, on average, to ``experts`` experts chosen at random.

    Once for each of them within a node. Between nodes once for each node that holds any of them:
    of N nodes, N (1 - (1 - 1/N)^k) for k experts; there NVLink hands it on.

    ``group`` is the expert group: its nodes are NVLink domains.
    """
    if group.nodes == 1:
        return float(experts)
    return group.nodes * (1.0 - (1.0 - 1.0 / group.nodes) ** experts)


def _pipeline(inputs: StepInput, of: Groups, count: int) -> list[Message]:
    """Return what goes to the next stage and back: one activation a microbatch and model chunk.

    Where sequences are cut it is a slice already; else, with sliced sends, each rank of a tensor
    group sends its slice and the group gathers them again (Narayanan et al. 2021, section 4.1).
    Embeddings that the first and last stage share have their gradients summed once a step.
    """
    recipe, model, tensor = inputs.recipe, inputs.model, inputs.layout.tensor
    if of.pipeline.ranks == 1:
        return []
    sliced = recipe.sequence_parallel or recipe.sliced_sends
    whole = _tokens(inputs) * model.hidden * recipe.element_bytes
    size = whole / tensor if sliced else whole
    repeats = float(count * recipe.interleave)
    found = []
    for phase in ("forward", "backward"):
        name = f"{phase} send"
        found.append(
            Message(
                name, "send_receive", size, of.pipeline, "pipeline", "microbatch", repeats, phase
            )
        )
        if sliced and tensor > 1 and not recipe.sequence_parallel:
            name = f"{phase} sent gather"
            found.append(
                Message(
                    name, "all_gather", whole, of.tensor, "pipeline", "microbatch", repeats, phase
                )
            )
    if model.tied:
        ends = Group(2, min(2, of.pipeline.nodes), 1, of.pipeline.concurrent_per_node)
        size = model.vocab * model.hidden / tensor * recipe.gradient_bytes
        found.append(
            Message(
                "shared embedding", "all_reduce", size, ends, "pipeline", "step", 1.0, "gradients"
            )
        )
    return found


def _data(inputs: StepInput, of: Groups, held: Shard, count: int) -> list[Message]:
    """Return the exchange of gradients and weights (Rajbhandari et al. 2020), in buckets or, for
    ZeRO-3, layers.

    ZeRO 0: one all-reduce; 1: reduce-scatter of gradients, all-gather of weights; 2: the
    reduce-scatter after each microbatch, for only a shard of the gradients is kept; 3: weights
    gathered for each pass of each microbatch.
    """
    found: list[Message] = []
    for name, group, held_parameters in (
        ("", of.data, held.common),
        ("expert ", of.expert_data, held.experts),
    ):
        if group.ranks > 1 and held_parameters:
            found += _exchange(inputs, name, group, held_parameters, count)
    return found


def _exchange(inputs: StepInput, name: str, group: Group, held: float, count: int) -> list[Message]:
    recipe = inputs.recipe
    gradients, weights = held * recipe.gradient_bytes, held * recipe.element_bytes
    each = count if recipe.zero >= 2 else 1
    scope = "microbatch" if recipe.zero >= 2 else "step"
    pieces = max(1, math.ceil(gradients / inputs.machine.bucket_bytes))
    if recipe.zero == 3:
        pieces = max(1, math.ceil(inputs.model.layers / inputs.layout.pipeline))

    def message(what: str, op: str, size: float, times: int, scope: str, phase: str) -> Message:
        return Message(
            f"{name}{what}", op, size / pieces, group, "data", scope, float(times * pieces), phase
        )

    op = "reduce_scatter" if recipe.zero else "all_reduce"
    found = [message("gradients", op, gradients, each, scope, "gradients")]
    if recipe.zero == 3:
        found.append(message("weights forward", "all_gather", weights, count, scope, "forward"))
        found.append(message("weights backward", "all_gather", weights, count, scope, "backward"))
    elif recipe.zero:
        found.append(message("weights", "all_gather", weights, 1, "step", "weights"))
    return found
