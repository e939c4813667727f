"""Who holds which part of the model. One idea: a layout is five numbers, and every group of ranks
follows from them.

Rank order as Megatron-LM lays it by default (tp-cp-ep-dp-pp): tensor innermost, then context, data,
pipeline::

    rank = tensor + T (context + C (data + D pipeline))

so tensor groups stay within a server and pipeline neighbours are far apart. Expert groups are
consecutive ranks of context x data. A *node* here is an NVLink domain: a server, or a rack of
GB200.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from eastwest.errors import UserError
from eastwest.workload.shapes import Model


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees of parallelism. Tensor x context x pipeline x data is the number of GPUs; expert
    divides data x context."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: int = 1
    context: int = 1

    @property
    def gpus(self) -> int:
        """The number of GPUs."""
        return self.tensor * self.pipeline * self.data * self.context

    def __str__(self) -> str:
        parts = [("tensor", self.tensor), ("pipeline", self.pipeline), ("data", self.data)]
        parts += [(n, v) for n, v in (("context", self.context), ("expert", self.expert)) if v > 1]
        return " x ".join(f"{name} {value}" for name, value in parts)


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks that communicate: how many, on how many nodes, at most how many on one, and how many
    such groups a node has.

    All groups of a kind communicate at the same time, so ``concurrent_per_node`` of them share one
    node's NICs.
    """

    ranks: int
    nodes: int
    ranks_per_node: int
    concurrent_per_node: int


ALONE = Group(1, 1, 1, 1)


@dataclass(frozen=True, slots=True)
class Groups:
    """The group of each kind of communication. ``expert_data`` are the replicas of an expert's
    weights."""

    tensor: Group
    context: Group
    data: Group
    expert: Group
    expert_data: Group
    pipeline: Group


def strided_group(ranks: int, stride: int, world: int, node_gpus: int) -> Group:
    """Return the worst placed of the groups ``start + stride * (0 … ranks-1)`` that fill ``world``
    ranks.

    Groups start at every multiple of ranks x stride plus 0 … stride-1; the one that starts latest
    within a node crosses most nodes.

    ``ranks`` and ``stride`` are counts of ranks, ``node_gpus`` the GPUs of an NVLink domain.
    """
    node = min(node_gpus, world)
    if ranks <= 1:
        return Group(1, 1, 1, node)
    if stride >= node:
        return Group(ranks, min(ranks, -(-world // node)), 1, node)
    aligned = math.gcd(ranks * stride, node)
    latest = min(node - 1, node - aligned + stride - 1)
    nodes = min((latest + (ranks - 1) * stride) // node + 1, ranks, -(-world // node))
    on_one = min(ranks, -(-node // stride))
    return Group(ranks, nodes, on_one, max(1, node // on_one))


@functools.lru_cache(maxsize=4096)
def groups(layout: Layout, node_gpus: int) -> Groups:
    """Return the groups of a layout on nodes (NVLink domains) of ``node_gpus`` GPUs.

    ``layout`` gives the degrees.
    """
    world, t, replicas = layout.gpus, layout.tensor, layout.data * layout.context
    return Groups(
        tensor=strided_group(t, 1, world, node_gpus),
        context=strided_group(layout.context, t, world, node_gpus),
        data=strided_group(replicas, t, world, node_gpus),
        expert=strided_group(layout.expert, t, world, node_gpus),
        expert_data=strided_group(replicas // layout.expert, t * layout.expert, world, node_gpus),
        pipeline=strided_group(layout.pipeline, t * replicas, world, node_gpus),
    )


def microbatches(layout: Layout, global_batch: int, micro_batch: int) -> int:
    """Return the microbatches of a replica in a step. Raises UserError if they do not come out
    whole.

    ``layout`` counts by its data parallel degree; ``global_batch`` and ``micro_batch`` are
    sequences.
    """
    size = layout.data * micro_batch
    if global_batch % size:
        below, above = global_batch // size * size, -(-global_batch // size) * size
        near = f"{below} or {above}" if below else f"{above}"
        raise UserError(
            f"global_batch {global_batch} is not a multiple of data {layout.data} x "
            f"micro_batch {micro_batch} = {size}",
            hint=f"nearest that fits: {near}{_data_hint(layout.data, global_batch, micro_batch)}",
        )
    return global_batch // size


def _data_hint(data: int, global_batch: int, micro_batch: int) -> str:
    whole = global_batch // micro_batch
    if global_batch % micro_batch or not whole:
        return ""
    return f", or data {near_text(nearest_of(data, divisors(whole)))}"


def divisors(number: int) -> list[int]:
    """Return the divisors of a positive number, ascending.

    ``number`` is 1 or more.
    """
    small = [i for i in range(1, math.isqrt(number) + 1) if number % i == 0]
    return sorted({*small, *(number // i for i in small)})


def nearest_of(value: int, valid: Iterable[int]) -> list[int]:
    """Return the nearest valid values below and above.

    ``value`` need not be one of ``valid``, which ascends; one or two values are returned.
    """
    below = [v for v in valid if v <= value]
    above = [v for v in valid if v >= value]
    return sorted({*below[-1:], *above[:1]})


def near_text(values: list[int]) -> str:
    """Write the nearest values: ``4 or 8``.

    ``values`` are one or two.
    """
    return " or ".join(str(v) for v in values)


def complete_layout(
    gpus: int,
    tensor: int | None = None,
    pipeline: int | None = None,
    data: int | None = None,
    expert: int | None = None,
    context: int | None = None,
    where: str = "",
) -> Layout:
    """Return a layout in which what is not given is 1, and data parallel what remains of the GPUs.

    Raises UserError if the given degrees do not divide the number of GPUs.

    ``gpus`` is the number of all GPUs; ``tensor``, ``pipeline``, ``data``, ``expert`` and
    ``context`` are degrees, None where not given; ``where`` is the place that errors name.
    """
    t, p, c = tensor or 1, pipeline or 1, context or 1
    size = t * p * c
    shown = f"tensor {t} x pipeline {p}" + (f" x context {c}" if c > 1 else "")
    if data is None and gpus % size:
        fits = near_text(nearest_of(p, [d for d in divisors(gpus) if gpus % (d * t * c) == 0]))
        hint = f"pipeline {fits} fits" if fits else f"divisors of {gpus}: {_some(divisors(gpus))}"
        raise UserError(f"{shown} = {size} does not divide {gpus:,} GPUs", where, hint)
    layout = Layout(t, p, data or gpus // size, expert or 1, c)
    if layout.gpus != gpus:
        hint = (
            f"data {gpus // size} fits"
            if gpus % size == 0
            else f"{gpus:,} is not a multiple of {size}"
        )
        raise UserError(
            f"{shown} x data {data} = {layout.gpus:,}, but there are {gpus:,} GPUs", where, hint
        )
    return layout


def _some(values: list[int]) -> str:
    return ", ".join(map(str, values[:12])) + (", …" if len(values) > 12 else "")


def check_layout(
    model: Model,
    layout: Layout,
    gpus: int,
    global_batch: int,
    micro_batch: int,
    sequence: int,
    where: str = "",
) -> int:
    """Return the microbatches of a step, or raise UserError with the numbers and the nearest that
    fit.

    Properties, checked in this order: the degrees fill the GPUs; tensor divides heads and widths;
    no pipeline stage is empty; context divides the sequence; expert divides the experts and the
    replicas; the batch divides.

    ``model`` and ``layout`` must suit each other and ``gpus``, the number of all GPUs;
    ``global_batch`` and ``micro_batch`` are sequences, ``sequence`` is tokens, ``where`` the place
    that errors name.
    """
    # Property: the degrees fill the GPUs.
    complete_layout(
        gpus, layout.tensor, layout.pipeline, layout.data, layout.expert, layout.context, where
    )
    # Property: tensor divides heads and widths.
    for what, number in (
        ("attention heads", model.heads),
        ("the feed-forward width", model.ffn),
        ("an expert's width", model.expert_ffn),
    ):
        if number and number % layout.tensor:
            fits = near_text(nearest_of(layout.tensor, divisors(number)))
            raise UserError(
                f"tensor {layout.tensor} does not divide {what} ({number:,})",
                where,
                f"nearest: {fits}",
            )
    # Property: no pipeline stage is empty.
    if layout.pipeline > model.layers:
        raise UserError(
            f"pipeline {layout.pipeline} is more than the model's {model.layers} layers", where
        )
    # Property: context divides the sequence.
    if sequence % layout.context:
        fits = near_text(nearest_of(layout.context, divisors(sequence)))
        raise UserError(
            f"context {layout.context} does not divide sequence {sequence}",
            where,
            f"nearest: {fits}",
        )
    # Property: expert divides the experts and the replicas.
    _check_experts(model, layout, where)
    try:
        return microbatches(layout, global_batch, micro_batch)
    except UserError as error:
        raise error.at(where) from None


def _check_experts(model: Model, layout: Layout, where: str) -> None:
    if layout.expert == 1:
        return
    if not model.experts:
        raise UserError(
            f"expert {layout.expert}, but {model.name} has no experts", where, "leave expert out"
        )
    replicas = layout.data * layout.context
    common = math.gcd(model.experts, replicas)
    if common % layout.expert:
        what = (
            f"expert {layout.expert} must divide {model.experts} experts and data x context "
            f"= {replicas}"
        )
        raise UserError(
            what, where, f"nearest: {near_text(nearest_of(layout.expert, divisors(common)))}"
        )


def candidates(
    model: Model, gpus: int, node_gpus: int, global_batch: int, micro_batch: int, sequence: int
) -> Iterator[Layout]:
    """Yield the layouts worth trying: tensor within a node, degrees powers of two or divisors of
    layers and experts.

    ``model`` gives heads, widths, layers and experts; ``gpus`` is the number of all GPUs,
    ``node_gpus`` of an NVLink domain; ``global_batch`` and ``micro_batch`` are sequences,
    ``sequence`` is tokens.
    """
    if global_batch % micro_batch:
        return
    whole = global_batch // micro_batch
    for t in divisors(math.gcd(gpus, model.heads)):
        if t > node_gpus or model.ffn % t or model.expert_ffn % t:
            continue
        for p in divisors(gpus // t):
            if p > model.layers or (model.layers % p and p & (p - 1)):
                continue
            for c in _contexts(gpus // (t * p), sequence):
                d = gpus // (t * p * c)
                if whole % d == 0:
                    yield from (Layout(t, p, d, e, c) for e in _experts(model, d * c))


def _contexts(replicas: int, sequence: int) -> list[int]:
    """Context degrees: powers of two that leave each GPU some 8,192 tokens or more."""
    return [
        c
        for c in (1, 2, 4, 8, 16, 32)
        if c == 1 or (replicas % c == 0 and sequence % c == 0 and sequence >= 8192 * c)
    ]


def _experts(model: Model, replicas: int) -> list[int]:
    if not model.experts:
        return [1]
    return [e for e in divisors(math.gcd(model.experts, replicas)) if e & (e - 1) == 0]


def choose_layout(
    model: Model,
    gpus: int,
    node_gpus: int,
    global_batch: int,
    micro_batch: int,
    sequence: int,
    spare_bytes: Callable[[Layout], float],
    step_s: Callable[[Layout], float],
    where: str = "",
) -> Layout:
    """Return the fastest layout that fits the GPUs' memory.

    ``spare_bytes`` tells how much of a GPU's memory a layout leaves (negative: does not fit),
    ``step_s`` how long its step takes. Ties go to less tensor, then less pipeline parallelism.
    Raises UserError if none fits.

    ``model``, ``gpus``, ``node_gpus``, ``global_batch``, ``micro_batch`` and ``sequence`` are as
    for candidates; ``where`` is the place that errors name.
    """
    tried = list(candidates(model, gpus, node_gpus, global_batch, micro_batch, sequence))
    if not tried:
        what = (
            f"no layout of {gpus:,} GPUs suits global_batch {global_batch} and micro_batch "
            f"{micro_batch}"
        )
        raise UserError(
            what,
            where,
            "data parallel must divide global_batch / micro_batch and the number of GPUs",
        )
    fitting = [(layout, spare) for layout in tried if (spare := spare_bytes(layout)) >= 0]
    if not fitting:
        best = max(tried, key=spare_bytes)
        short = -spare_bytes(best) / 2**30
        what = (
            f"{model.name} fits no layout of {gpus:,} GPUs: the leanest ({best}) lacks "
            f"{short:,.1f} GiB a GPU"
        )
        raise UserError(what, where, "use more GPUs, recompute: full, or zero: 3")
    times = [
        (step_s(layout), layout.tensor, layout.pipeline, i) for i, (layout, _) in enumerate(fitting)
    ]
    return fitting[min(times)[3]][0]
