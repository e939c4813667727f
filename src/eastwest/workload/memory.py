"""What a GPU must hold. One idea: the fullest pipeline stage decides, and the arithmetic is shown.

Weights, gradients and optimizer states follow Rajbhandari et al. 2020 (ZeRO): 16-bit weights,
gradients in their own precision, and 12 bytes a parameter for Adam in mixed precision (FP32 weight
and two moments; 8 if the weights are FP32 themselves). Activations follow Korthikanti et al. 2022,
generalised to the model's own shapes: for GPT shapes it is their 34 s b h a layer but for the two
dropout masks.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from eastwest.errors import UserError
from eastwest.table import Column, Table
from eastwest.units import format_size
from eastwest.workload.layout import Layout
from eastwest.workload.recipe import Recipe
from eastwest.workload.shapes import Model, counts


@dataclass(frozen=True, slots=True)
class Shard:
    """Parameters that one GPU of the fullest pipeline stage holds: those that all replicas share,
    and experts' ones."""

    common: float
    experts: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.common + self.experts


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on the fullest GPU."""

    weights_bytes: float
    gradients_bytes: float
    optimizer_bytes: float
    activations_bytes: float
    logits_bytes: float
    reserved_bytes: float

    @property
    def total_bytes(self) -> float:
        """The sum."""
        return (
            self.weights_bytes
            + self.gradients_bytes
            + self.optimizer_bytes
            + self.activations_bytes
            + self.logits_bytes
            + self.reserved_bytes
        )

    def parts(self) -> tuple[tuple[str, float], ...]:
        """Name and bytes of each part."""
        return (
            ("weights", self.weights_bytes),
            ("gradients", self.gradients_bytes),
            ("optimizer states", self.optimizer_bytes),
            ("activations", self.activations_bytes),
            ("logits", self.logits_bytes),
            ("reserved", self.reserved_bytes),
        )


@functools.lru_cache(maxsize=8192)
def shard(model: Model, layout: Layout) -> Shard:
    """Return the parameters of one GPU on the fullest stage.

    Matrices are cut by tensor parallelism, vectors are on every GPU of it; the ends of the pipeline
    hold the embedding or the output projection besides their layers (both on one GPU without a
    pipeline).

    ``model`` gives the parameters, ``layout`` divides them. The result counts parameters, not
    bytes.
    """
    c, t = counts(model), layout.tensor
    stage = -(-model.layers // layout.pipeline)
    sparse = model.moe_layers / model.layers
    layer = c.attention_matrix / t + c.attention_vector
    layer += (1.0 - sparse) * (c.dense_matrix / t + c.dense_vector)
    layer += sparse * (
        model.hidden * model.experts
        + (c.moe_matrix - model.hidden * model.experts) / t
        + c.moe_vector
    )
    ends = (
        (c.embedding + c.output) / t + c.positions
        if layout.pipeline == 1
        else c.embedding / t + c.positions
    )
    experts = stage * sparse * (model.experts / layout.expert) * c.expert_matrix / t
    return Shard(stage * layer + ends + c.final_vector, experts)


def activation_bytes_per_token(model: Model, layout: Layout, recipe: Recipe) -> float:
    """Return what one layer keeps of one token until its backward pass, on one GPU.

    Inputs and outputs of norms (cut by sequence parallelism), queries, keys, values, attention's
    output, and the feed-forward's inner values. Full recomputation keeps the layer's input only.
    Flash attention recomputes its scores by itself, so selective recomputation matters for unfused
    attention: 5 bytes a score.

    ``model`` gives the widths, ``layout`` its tensor degree, ``recipe`` precision and
    recomputation. The result is bytes a token and layer.
    """
    e, h, t = recipe.element_bytes, model.hidden, layout.tensor
    cut = t if recipe.sequence_parallel else 1
    if recipe.recompute == "full":
        return e * h / cut
    queries, values = model.heads * model.head_dim, model.heads * model.values
    keys = model.kv_heads * (model.head_dim + model.values) / min(t, model.kv_heads)
    kept = e * (4 * h / cut + (queries + values) / t + keys)
    if recipe.attention == "unfused" and recipe.recompute == "none":
        kept += 5.0 * model.heads * recipe.sequence / t
    sparse, inner = model.moe_layers / model.layers, 3 if model.gated else 2
    kept += e * (1.0 - sparse) * inner * model.ffn / t
    if sparse:
        width = model.active_experts * model.expert_ffn + model.shared_ffn
        kept += e * sparse * (inner * width / t + model.active_experts * h / cut)
    return kept


def _activations(model: Model, layout: Layout, recipe: Recipe) -> float:
    """Return the activations of the first stage, which has most microbatches in flight under 1F1B.

    Interleaving adds (p-1) / (p v) of them (Korthikanti et al. 2022). Recomputation works on one
    whole layer.
    """
    p, v = layout.pipeline, recipe.interleave
    tokens = recipe.micro_batch * recipe.sequence / layout.context
    steps = max(1, recipe.global_batch // (layout.data * recipe.micro_batch))
    in_flight = min(p, steps) * (1.0 + (p - 1) / (p * v) if v > 1 else 1.0)
    kept = (
        in_flight
        * -(-model.layers // p)
        * tokens
        * activation_bytes_per_token(model, layout, recipe)
    )
    if recipe.recompute == "full":
        whole = Recipe(
            1,
            1,
            recipe.sequence,
            recipe.precision,
            sequence_parallel=recipe.sequence_parallel,
            attention=recipe.attention,
        )
        kept += tokens * activation_bytes_per_token(model, layout, whole)
    return kept


def _logits(model: Model, layout: Layout, recipe: Recipe) -> float:
    """Return the logits of one microbatch in 16 bits and FP32, on the only stage; a pipeline's last
    one has room."""
    if layout.pipeline > 1:
        return 0.0
    tokens = recipe.micro_batch * recipe.sequence / layout.context
    return tokens * model.vocab / layout.tensor * (recipe.element_bytes + 4.0)


@functools.lru_cache(maxsize=8192)
def memory(model: Model, layout: Layout, recipe: Recipe, reserved_bytes: float = 0.0) -> Memory:
    """Return the bytes that the fullest GPU of a layout must hold; ``reserved_bytes`` is what
    others take of it.

    ``model``, ``layout`` and ``recipe`` are the job's.
    """
    held, replicas = shard(model, layout), layout.data * layout.context
    shared = held.common / replicas + held.experts / max(1, replicas // layout.expert)
    states = 8.0 if recipe.precision == "fp32" else 12.0
    weights = recipe.element_bytes * (shared if recipe.zero >= 3 else held.total)
    if recipe.zero >= 3:  # the layer that computes, and the next one on its way
        weights += 2.0 * recipe.element_bytes * held.total / -(-model.layers // layout.pipeline)
    return Memory(
        weights_bytes=weights,
        gradients_bytes=recipe.gradient_bytes * (shared if recipe.zero >= 2 else held.total),
        optimizer_bytes=states * (shared if recipe.zero >= 1 else held.total),
        activations_bytes=_activations(model, layout, recipe),
        logits_bytes=_logits(model, layout, recipe),
        reserved_bytes=reserved_bytes,
    )


def check_fits(
    model: Model,
    layout: Layout,
    recipe: Recipe,
    gpu_memory_bytes: float,
    where: str = "",
    reserved_bytes: float = 0.0,
) -> Memory:
    """Return the memory of the fullest GPU, or raise UserError with the sum and what would lower it
    most.

    ``model``, ``layout`` and ``recipe`` are the job's; ``gpu_memory_bytes`` is what a GPU has,
    ``reserved_bytes`` what others take of it, ``where`` the place that errors name.
    """
    need = memory(model, layout, recipe, reserved_bytes)
    if need.total_bytes <= gpu_memory_bytes:
        return need
    shown = " + ".join(f"{name} {format_size(size)}" for name, size in need.parts() if size)
    what = f"{model.name} with {layout} needs {format_size(need.total_bytes)} a GPU, which has "
    raise UserError(f"{what}{format_size(gpu_memory_bytes)}: {shown}", where, _remedy(need, recipe))


def _remedy(need: Memory, recipe: Recipe) -> str:
    if need.activations_bytes > need.total_bytes / 2 and recipe.recompute != "full":
        return "try recompute: full, a smaller micro_batch, or more tensor parallelism"
    if recipe.zero < 1:
        return "try zero: 1, or more tensor or pipeline parallelism"
    return "try more tensor or pipeline parallelism, or a higher zero stage"


def memory_table(need: Memory, gpu_memory_bytes: float) -> Table:
    """Return the parts of a GPU's memory as a table, each with its share of the whole.

    ``need`` and ``gpu_memory_bytes`` are in bytes, of one GPU.
    """
    columns = (
        Column("part", "GPU memory", right=False),
        Column("bytes", "size", format_size),
        Column("share", "of the GPU", lambda v: f"{v:.1%}"),
    )
    rows = [*need.parts(), ("total", need.total_bytes), ("GPU", gpu_memory_bytes)]
    return Table("", columns, tuple((name, size, size / gpu_memory_bytes) for name, size in rows))
