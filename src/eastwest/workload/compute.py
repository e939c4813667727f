"""How long a GPU computes. One idea: a roofline whose roof is lower for small shapes, with few
constants for all GPUs.

- A matrix product takes the longer of its arithmetic and its memory traffic. Arithmetic is counted
  as if each dimension were ``gemm_pad`` longer (edges of tiles, filling and draining of pipelines),
  at ``gemm_share`` of the peak, which power and clocks set for large products.
- Attention runs at ``attention_share`` of the peak (flash), or reads and writes the square of
  scores (unfused).
- All else (norms, activations, residuals, softmax) moves bytes at ``memory_share`` of the memory's
  rate.
- A layer takes at least as long as the host needs to launch it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from eastwest.catalog.world import World
from eastwest.workload.layout import Layout
from eastwest.workload.recipe import Recipe
from eastwest.workload.shapes import Matrix, Model, attention_matrices, ffn_matrices


@dataclass(frozen=True, slots=True)
class Machine:
    """One GPU in one world: what it reaches in practice, after the catalog's shares are applied."""

    gpu: str
    name: str
    generation: str
    peak_FLOPs: float  # bf16, dense, as the data sheet says
    peak_fp8_FLOPs: float
    gemm_FLOPs: float  # of a large matrix product
    gemm_fp8_FLOPs: float  # with one scale a tensor
    gemm_fp8_block_FLOPs: float  # with one a block of 128
    gemm_fp8_mx_FLOPs: float  # with one for 32 elements
    gemm_fp32_FLOPs: float  # TF32
    attention_FLOPs: float
    memory_Bps: float
    memory_bytes: float
    gemm_pad: float  # elements by which each side of a product's output counts longer
    gemm_depth: float  # and the sum over its inner side
    kernel_s: float
    launch_s: float  # the host's time for one kernel
    routing_moves: float  # times that routed tokens are read or written beside the products
    unfused_moves: float  # factor of the bytes of norms, activations and sums that are not fused
    launch_moe_s: float  # and for routing, sorting and dispatching one layer's tokens
    tensor_hidden: float  # share of tensor parallel exchanges that matrix products hide
    expert_hidden: float  # share of expert exchanges that other work hides
    step_s: float  # what each optimizer step costs besides: data, clipping, logging
    straggler: float  # share of a step by which each doubling of servers makes the slowest slower
    overlap_cost: float  # share of hidden communication that comes back as slower computing
    bucket_bytes: float  # of gradients that travel together
    reserved_bytes: float  # of GPU memory that is not the job's

    def peak(self, precision: str) -> float:
        """Return the data sheet's FLOP/s for a precision."""
        if precision == "fp8":
            return self.peak_fp8_FLOPs
        return self.peak_FLOPs * (
            0.5 if precision == "fp32" else 1.0
        )  # TF32 is half of BF16 by design


def machine(gpu: str, world: World, software: str = "2025") -> Machine:
    """Return a GPU with the compute constants of its generation and of the software's.

    ``software`` is one of workload.recipe.SOFTWARE. Raises UserError for an unknown GPU.

    ``gpu`` is an entry of the catalog's kind ``gpu``; constants come from ``world``.
    """
    generation = world.text("gpu", gpu, "generation")

    def of(attribute: str) -> float:
        for id in (f"software-{software}", generation):
            if world.has("compute", id, attribute):
                return world.number("compute", id, attribute)
        return world.number("compute", "all", attribute)

    bf16, fp8 = world.number("gpu", gpu, "bf16_FLOPs"), world.number("gpu", gpu, "fp8_FLOPs")
    # Products run into the limit of power, which differs among boards of one chip.
    clock = 1.0
    if world.has("compute", generation, "power_W"):
        clock = (world.number("gpu", gpu, "power_W") / of("power_W")) ** of("power_exponent")
    gemm = bf16 * min(0.97, of("gemm_share") * clock)

    def fp8_rate(attribute: str) -> float:
        return fp8 * min(0.97, of(attribute) * clock) if fp8 > bf16 else gemm

    return Machine(
        gpu=gpu,
        name=world.text("gpu", gpu, "name"),
        generation=generation,
        peak_FLOPs=bf16,
        peak_fp8_FLOPs=fp8,
        gemm_FLOPs=gemm,
        gemm_fp8_FLOPs=fp8_rate("gemm_fp8_share"),
        gemm_fp8_block_FLOPs=fp8_rate("gemm_fp8_block_share"),
        gemm_fp8_mx_FLOPs=fp8_rate("gemm_fp8_mx_share"),
        gemm_fp32_FLOPs=gemm * 0.5,
        attention_FLOPs=bf16 * min(0.97, of("attention_share") * clock),
        memory_Bps=world.number("gpu", gpu, "memory_Bps") * of("memory_share"),
        memory_bytes=world.number("gpu", gpu, "memory_bytes"),
        gemm_pad=of("gemm_pad"),
        gemm_depth=of("gemm_depth"),
        kernel_s=of("kernel_s"),
        launch_s=of("launch_s"),
        routing_moves=of("routing_moves"),
        unfused_moves=of("unfused_moves"),
        launch_moe_s=of("launch_moe_s"),
        tensor_hidden=of("tensor_hidden"),
        expert_hidden=of("expert_hidden"),
        step_s=of("step_s"),
        straggler=of("straggler"),
        overlap_cost=of("overlap_cost"),
        bucket_bytes=of("bucket_bytes"),
        reserved_bytes=of("reserved_bytes"),
    )


@dataclass(frozen=True, slots=True)
class Pass:
    """Seconds of one part of the model for one microbatch on one GPU."""

    forward_s: float
    backward_s: float


@dataclass(frozen=True, slots=True)
class StageTimes:
    """What one microbatch costs: each part of a layer, averaged over dense and expert layers, and
    the model's ends."""

    attention: Pass  # projections, scores, norms of a layer
    ffn: Pass  # feed-forward or experts of a layer
    layer: Pass  # both, or the host's launching where that is longer
    again_s: float  # what the backward pass of a layer computes again
    core_s: (
        float  # scores and values alone, forward: what context parallelism hides its traffic behind
    )
    head: Pass  # output projection, softmax and loss; on the last stage
    tokens: float  # of a microbatch on one GPU


def gemm_s(
    m: float,
    n: float,
    k: float,
    rate_FLOPs: float,
    gpu: Machine,
    element_bytes: float = 2.0,
    output_bytes: float = 0.0,
) -> float:
    """Return the seconds of one (m x k) (k x n) product: arithmetic on padded sides, or memory,
    whichever is longer.

    ``element_bytes`` are those of an element of each matrix, ``output_bytes`` those that the whole
    output moves where it is not written once in that size.

    ``m``, ``n`` and ``k`` are elements, ``rate_FLOPs`` FLOP/s of a large product on ``gpu``.
    """
    pad = gpu.gemm_pad
    arithmetic = 2.0 * (m + pad) * (n + pad) * (k + gpu.gemm_depth) / rate_FLOPs
    written = output_bytes or element_bytes * m * n
    memory = (element_bytes * (m * k + k * n) + written) / gpu.memory_Bps
    return (arithmetic if arithmetic > memory else memory) + gpu.kernel_s


def _rate(gpu: Machine, recipe: Recipe) -> float:
    if recipe.precision == "fp8":
        return {
            "tensor": gpu.gemm_fp8_FLOPs,
            "block": gpu.gemm_fp8_block_FLOPs,
            "mx": gpu.gemm_fp8_mx_FLOPs,
        }[recipe.scaling]
    return gpu.gemm_fp32_FLOPs if recipe.precision == "fp32" else gpu.gemm_FLOPs


def _linear(m: float, n: float, k: float, gpu: Machine, recipe: Recipe) -> Pass:
    """Return the time of a linear layer: one product forward; backward one for the input, one for
    the weights."""
    rate, size = (
        _rate(gpu, recipe),
        1.0 if recipe.precision == "fp8" else recipe.element_bytes,
    )
    # FP8: each operand is read in 16 bits and written in 8, as it is and transposed.
    cast = (
        4.0 * m / gpu.memory_Bps
        if recipe.precision == "fp8" and gpu.peak_fp8_FLOPs > gpu.peak_FLOPs
        else 0.0
    )
    forward = gemm_s(m, n, k, rate, gpu, size) + cast * k
    # Each microbatch adds its weight gradients to their sum, which is read and written.
    summed = 2.0 * recipe.gradient_bytes * k * n
    weights = gemm_s(k, n, m, rate, gpu, size, summed)
    return Pass(forward, gemm_s(m, k, n, rate, gpu, size) + weights + cast * n)


def _shard(matrix: Matrix, model: Model, tensor: int) -> tuple[float, float]:
    """Return inputs and outputs of one GPU's part of a matrix."""
    if matrix.split == "row":
        return matrix.inputs / tensor, matrix.outputs
    if matrix.split == "whole":
        return matrix.inputs, matrix.outputs
    if matrix.split == "kv":
        return matrix.inputs, matrix.outputs / min(tensor, model.kv_heads)
    return matrix.inputs, matrix.outputs / tensor


def _sum(passes: list[Pass]) -> Pass:
    return Pass(sum(p.forward_s for p in passes), sum(p.backward_s for p in passes))


def _moved(forward_bytes: float, gpu: Machine) -> Pass:
    """Return the time of operations that only move bytes; backward reads gradient and input, writes
    one: half more."""
    return Pass(forward_bytes / gpu.memory_Bps, 1.5 * forward_bytes / gpu.memory_Bps)


def _core(model: Model, layout: Layout, recipe: Recipe, gpu: Machine, tokens: float) -> Pass:
    """Return the time of scores and weighted values: causal, so half the square.

    Flash attention backward does five products for the forward's two (Dao 2023). Unfused attention
    computes the full square and moves it: two products' output and input, scale-mask-softmax and
    dropout, some 13 bytes an element.
    """
    heads, s = model.heads / layout.tensor, recipe.sequence
    square = tokens * s * heads
    if recipe.attention == "flash":
        forward = square * (model.head_dim + model.values) / gpu.attention_FLOPs + gpu.kernel_s
        return Pass(forward, 2.5 * forward)
    work = 2.0 * square * (model.head_dim + model.values) / gpu.gemm_FLOPs
    moved = _moved(13.0 * square, gpu)
    return Pass(work + moved.forward_s, 2.0 * work + moved.backward_s)


def _attention(
    model: Model, layout: Layout, recipe: Recipe, gpu: Machine, tokens: float, core: Pass
) -> Pass:
    t, e = layout.tensor, recipe.element_bytes
    linear = [
        _linear(tokens, n, k, gpu, recipe)
        for k, n in (_shard(m, model, t) for m in attention_matrices(model))
    ]
    # Rotary embedding: queries and keys are read and written.
    rotated = 0 if model.positions else 2 * e * (model.heads + model.kv_heads) * model.head_dim / t
    return _sum(
        [
            *linear,
            core,
            _moved(tokens * rotated, gpu),
            _norm_and_residual(model, layout, recipe, gpu, tokens),
        ]
    )


def _norm_and_residual(
    model: Model, layout: Layout, recipe: Recipe, gpu: Machine, tokens: float
) -> Pass:
    """Return half a layer's norms and residual sums: a norm reads and writes, a sum reads two and
    writes one."""
    share = layout.tensor if recipe.sequence_parallel else 1
    moved = recipe.element_bytes * tokens * model.hidden * (2.0 * model.norms / 2 + 3.0) / share
    return _moved(moved * (1.0 if recipe.fused else gpu.unfused_moves), gpu)


def _activation(model: Model, width: float, recipe: Recipe, gpu: Machine, tokens: float) -> Pass:
    """Return the time of the activation: reads one width, or two if gated, and writes one."""
    moved = recipe.element_bytes * tokens * width * (3.0 if model.gated else 2.0)
    return _moved(moved * (1.0 if recipe.fused else gpu.unfused_moves), gpu)


def _dense(
    model: Model, width: int, layout: Layout, recipe: Recipe, gpu: Machine, tokens: float
) -> Pass:
    shapes = [_shard(m, model, layout.tensor) for m in ffn_matrices(model, width)]
    linear = [_linear(tokens, n, k, gpu, recipe) for k, n in shapes]
    return _sum([*linear, _activation(model, width / layout.tensor, recipe, gpu, tokens)])


def _experts(model: Model, layout: Layout, recipe: Recipe, gpu: Machine, tokens: float) -> Pass:
    """Return router, shared and routed experts, with tokens spread evenly over experts.

    A GPU holds experts / expert of them, and each gets the tokens of all ranks of its expert group.
    """
    held = model.experts / layout.expert
    each = tokens * model.active_experts / held
    parts = [_linear(tokens, model.experts, model.hidden, gpu, recipe)]
    for matrix in ffn_matrices(model, model.expert_ffn):
        k, n = _shard(matrix, model, layout.tensor)
        one = _linear(each, n, k, gpu, recipe)  # grouped: launched once for all experts
        saved = (held - 1.0) * gpu.kernel_s
        parts.append(Pass(held * one.forward_s - saved, held * one.backward_s - 2.0 * saved))
    routed = tokens * model.active_experts
    parts.append(_activation(model, model.expert_ffn / layout.tensor, recipe, gpu, routed))
    # Sorting tokens by expert and back, weighing, padding.
    share = layout.tensor if recipe.sequence_parallel else 1
    parts.append(
        _moved(gpu.routing_moves * recipe.element_bytes * routed * model.hidden / share, gpu)
    )
    if model.shared_ffn:
        parts.append(_dense(model, model.shared_ffn, layout, recipe, gpu, tokens))
    return _sum(parts)


def _ffn(model: Model, layout: Layout, recipe: Recipe, gpu: Machine, tokens: float) -> Pass:
    """Return a layer's feed-forward part, averaged over layers with and without experts."""
    around, sparse = (
        _norm_and_residual(model, layout, recipe, gpu, tokens),
        model.moe_layers / model.layers,
    )
    dense = _dense(model, model.ffn, layout, recipe, gpu, tokens) if sparse < 1 else Pass(0.0, 0.0)
    moe = _experts(model, layout, recipe, gpu, tokens) if sparse else Pass(0.0, 0.0)
    forward = around.forward_s + (1.0 - sparse) * dense.forward_s + sparse * moe.forward_s
    backward = around.backward_s + (1.0 - sparse) * dense.backward_s + sparse * moe.backward_s
    return Pass(forward, backward)


def _head(model: Model, layout: Layout, recipe: Recipe, gpu: Machine, tokens: float) -> Pass:
    """Return the output projection and the loss: logits written, widened to FP32, read twice and
    written."""
    width = model.vocab / layout.tensor
    plain = Recipe(
        1, 1, 1, "bf16" if recipe.precision == "fp8" else recipe.precision
    )  # the head stays in 16 bits
    loss = _moved(14.0 * tokens * width, gpu)
    return _sum([_linear(tokens, width, model.hidden, gpu, plain), loss])


def launches(model: Model, layout: Layout, recipe: Recipe) -> float:
    """Return the kernels of a layer's forward pass, averaged over layers; backward has twice as
    many.

    Matrix products, norms, residual sums, activation, rotary embedding of queries and keys,
    attention (unfused: two products, scale and mask, softmax, dropout), biases and their dropout
    where they are not part of the products, and tensor parallel exchanges.

    ``model``, ``layout`` and ``recipe`` decide which of them there are; the result is a count.
    """
    products = len(attention_matrices(model)) + 2
    around = model.norms + 2 + 1 + (0 if model.positions else 2)
    attention = 1 if recipe.attention == "flash" else 5
    biases = 2 if model.output_bias and recipe.attention == "unfused" else 0
    exchanges = 0
    if layout.tensor > 1:
        exchanges = 4 if recipe.sequence_parallel else 2
    return products + around + attention + biases + exchanges


def _again(
    model: Model, layout: Layout, recipe: Recipe, gpu: Machine, core: Pass, layer_s: float
) -> float:
    """Return what a layer's backward pass computes again, in seconds.

    ``operations``: all but attention and every second matrix product (selective activation
    checkpointing as PyTorch's trainers do it).
    """
    if recipe.recompute == "full":
        return layer_s
    if recipe.recompute == "selective":
        return core.forward_s if recipe.attention == "unfused" else 0.0
    if recipe.recompute == "none":
        return 0.0
    tokens = recipe.micro_batch * recipe.sequence / layout.context
    matrices = attention_matrices(model)
    if model.moe_layers < model.layers:
        matrices += ffn_matrices(model, model.ffn)
    products = sum(
        _linear(tokens, n, k, gpu, recipe).forward_s
        for k, n in (_shard(m, model, layout.tensor) for m in matrices)
    )
    return max(0.0, layer_s - core.forward_s - products / 2)


@functools.lru_cache(maxsize=8192)
def stage_times(model: Model, layout: Layout, recipe: Recipe, gpu: Machine) -> StageTimes:
    """Return what one microbatch costs one GPU.

    ``layout`` counts by its tensor, context and expert degrees, not by the others.

    ``model`` and ``recipe`` give the shapes, ``gpu`` the rates; all results are seconds, but for
    the tokens.
    """
    tokens = recipe.micro_batch * recipe.sequence / layout.context
    core = _core(model, layout, recipe, gpu, tokens)
    attention = _attention(model, layout, recipe, gpu, tokens, core)
    ffn = _ffn(model, layout, recipe, gpu, tokens)
    host = gpu.launch_s * launches(model, layout, recipe)
    host += gpu.launch_moe_s * model.moe_layers / model.layers
    layer = Pass(
        max(attention.forward_s + ffn.forward_s, host),
        max(attention.backward_s + ffn.backward_s, 2.0 * host),
    )
    head = _head(model, layout, recipe, gpu, tokens)
    again = _again(model, layout, recipe, gpu, core, layer.forward_s)
    return StageTimes(attention, ffn, layer, again, core.forward_s, head, tokens)
