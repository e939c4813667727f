"""Compute on machines so simple that its time is a closed form: no memory, no arithmetic, no
launches but the one that is looked at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eastwest.catalog.load import catalog
from eastwest.catalog.world import World, shared_nominal
from eastwest.errors import UserError
from eastwest.workload.compute import Machine, Pass, gemm_s, launches, machine, stage_times
from eastwest.workload.layout import Layout
from eastwest.workload.model import load_model
from eastwest.workload.recipe import Recipe
from eastwest.workload.shapes import Model, matrix_parameters

W = shared_nominal()
NEVER = 1e30
# Nothing takes time; each test gives one thing its price.
FREE = replace(
    machine("h100-sxm", W),
    peak_FLOPs=1.0,
    peak_fp8_FLOPs=2.0,
    gemm_FLOPs=NEVER,
    gemm_fp8_FLOPs=NEVER,
    gemm_fp8_block_FLOPs=NEVER,
    gemm_fp8_mx_FLOPs=NEVER,
    gemm_fp32_FLOPs=NEVER,
    attention_FLOPs=NEVER,
    memory_Bps=NEVER,
    gemm_pad=0.0,
    gemm_depth=0.0,
    kernel_s=0.0,
    launch_s=0.0,
    launch_moe_s=0.0,
    routing_moves=0.0,
    unfused_moves=1.0,
)
ARITHMETIC = replace(FREE, gemm_FLOPs=1.0)
MEMORY = replace(FREE, memory_Bps=1.0)
# GPT: two matrices, no rotary embedding. Llama: three, grouped-query heads.
GPT = Model("gpt", "gpt2", 3, 64, 4, 4, 16, 256, 100, False, True, positions=32)
LLAMA = Model("llama", "llama", 3, 64, 4, 2, 16, 192, 100)
MOE = replace(LLAMA, experts=8, active_experts=2, expert_ffn=96, shared_ffn=48, dense_layers=1)
TOKENS = 2 * 32


def recipe(**more: object) -> Recipe:
    return Recipe(**{"global_batch": 2, "micro_batch": 2, "sequence": 32} | more)


def near(value: float):
    return pytest.approx(value, rel=1e-9)


def times(model: Model, gpu: Machine, layout: Layout | None = None, **more: object):
    return stage_times(model, layout or Layout(), recipe(**more), gpu)


def test_a_product_is_two_FLOPs_a_multiply_add_on_padded_sides():
    gpu = replace(FREE, gemm_pad=10.0, gemm_depth=5.0, kernel_s=7.0)
    assert gemm_s(20, 30, 40, 2.0, gpu) == near(2 * 30 * 40 * 45 / 2 + 7)


def test_a_product_moves_both_operands_and_its_output():
    gpu = replace(FREE, memory_Bps=10.0, kernel_s=7.0)
    assert gemm_s(2, 3, 4, NEVER, gpu) == near(2 * (8 + 12 + 6) / 10 + 7)
    assert gemm_s(2, 3, 4, NEVER, gpu, 1.0) == near((8 + 12 + 6) / 10 + 7)
    assert gemm_s(2, 3, 4, NEVER, gpu, 1.0, 100.0) == near((8 + 12 + 100) / 10 + 7)


@pytest.mark.parametrize("tensor", [1, 2, 4])
@pytest.mark.parametrize("model", [GPT, replace(MOE, kv_heads=4)], ids=["gpt", "experts"])
def test_products_are_two_FLOPs_a_matrix_element_and_token(model: Model, tensor: int):
    """As shapes count them; the router is whole on each rank, its products are not divided."""
    found = times(model, ARITHMETIC, Layout(tensor))
    routers = model.moe_layers * model.hidden * model.experts
    elements = (matrix_parameters(model) - routers) / tensor + routers
    forward = model.layers * found.layer.forward_s + found.head.forward_s
    assert forward == near(2 * elements * TOKENS)
    backward = model.layers * found.layer.backward_s + found.head.backward_s
    assert backward == near(2 * forward)


def test_keys_and_values_are_not_cut_further_than_their_heads():
    one, cut = (times(LLAMA, ARITHMETIC, Layout(t)).attention.forward_s for t in (1, 4))
    queries, keys, out = 64 * 64, 64 * 2 * 2 * 16, 64 * 64
    assert one == near(2 * TOKENS * (queries + keys + out))
    assert cut == near(2 * TOKENS * (queries / 4 + keys / 2 + out / 4))


def test_experts_compute_the_same_wherever_they_are():
    alone, spread = (times(MOE, ARITHMETIC, Layout(data=8, expert=e)).ffn.forward_s for e in (1, 8))
    assert alone == near(spread)


def test_attention_is_half_the_square_and_five_products_back():
    """Dao 2023: 2 s d a query and product, causal, so half of it; backward 2.5 times."""
    gpu = replace(FREE, attention_FLOPs=1.0, kernel_s=0.0)
    found = times(LLAMA, gpu, Layout(2))
    assert found.core_s == near(TOKENS * 32 * (4 / 2) * (16 + 16))
    assert found.attention == Pass(found.core_s, 2.5 * found.core_s)
    kernel = times(LLAMA, replace(gpu, kernel_s=3.0))
    assert kernel.core_s == near(TOKENS * 32 * 4 * 32 + 3)


def test_unfused_attention_is_the_whole_square_and_moves_it():
    square = TOKENS * 32 * 4
    assert times(GPT, ARITHMETIC, attention="unfused").core_s == near(2 * square * 32)
    assert times(GPT, MEMORY, attention="unfused").core_s == near(13 * square)
    plain = times(GPT, ARITHMETIC, attention="flash").attention
    found = times(GPT, ARITHMETIC, attention="unfused").attention
    assert found.backward_s - plain.backward_s == near(4 * square * 32)
    moved = times(GPT, MEMORY, attention="unfused").attention
    kept = times(GPT, MEMORY, attention="flash").attention
    assert moved.backward_s - kept.backward_s == near(1.5 * 13 * square)


def product_bytes(k: int, n: int) -> float:
    return 2.0 * (TOKENS * k + k * n + TOKENS * n)


def test_a_dense_layer_moves_norms_sums_activation_and_rotated_heads():
    """Norm: read, write; sum: two read, one written; gated activation: two read, one written;
    rotary: queries and keys read and written. All in 16 bits."""
    around = 2 * TOKENS * 64 * (2 * 2 / 2 + 3)
    rotated = TOKENS * 2 * 2 * (4 + 2) * 16
    found = times(LLAMA, MEMORY)
    products = product_bytes(64, 64) + product_bytes(64, 64) + product_bytes(64, 64)
    assert found.attention.forward_s == near(products + around + rotated)
    inner = product_bytes(64, 2 * 192) + product_bytes(192, 64)
    assert found.ffn.forward_s == near(inner + around + 2 * TOKENS * 192 * 3)
    assert found.layer.forward_s == near(found.attention.forward_s + found.ffn.forward_s)
    assert found.layer.backward_s == near(found.attention.backward_s + found.ffn.backward_s)


def test_two_matrices_activate_one_width_and_learned_positions_rotate_nothing():
    around = 2 * TOKENS * 64 * 5
    found = times(GPT, MEMORY)
    assert found.ffn.forward_s == near(
        product_bytes(64, 256) + product_bytes(256, 64) + around + 2 * TOKENS * 256 * 2
    )
    keys = product_bytes(64, 2 * 64)
    assert found.attention.forward_s == near(2 * product_bytes(64, 64) + keys + around)


def test_backward_adds_weight_gradients_to_their_sum():
    """Input and weight gradients: a product each; the sum is read and written in its own
    precision; what only moves, moves half more."""
    for gradient, size in (("fp32", 4), ("bf16", 2)):
        found = times(GPT, MEMORY, gradient_precision=gradient)
        moved = 1.5 * (2 * TOKENS * 64 * 5 + 2 * TOKENS * 256 * 2)
        products = 0.0
        for k, n in ((64, 256), (256, 64)):
            products += product_bytes(k, n) + 2 * TOKENS * (k + n) + 2 * size * k * n
        assert found.ffn.backward_s == near(products + moved)


def test_sequence_parallelism_cuts_norms_and_sums():
    whole, cut = (
        times(LLAMA, MEMORY, Layout(4), sequence_parallel=s).layer.forward_s for s in (False, True)
    )
    assert whole - cut == near(2 * 2 * TOKENS * 64 * 5 * (1 - 1 / 4))


def test_what_is_not_fused_moves_more():
    fused, plain = (
        times(LLAMA, replace(MEMORY, unfused_moves=3.0), fused=f).layer.forward_s
        for f in (True, False)
    )
    assert plain - fused == near(2 * (2 * 2 * TOKENS * 64 * 5 + 2 * TOKENS * 192 * 3))


def test_routed_tokens_are_moved_once_for_each_expert():
    none, some = (
        times(MOE, replace(MEMORY, routing_moves=m), Layout(2)).layer.forward_s for m in (0.0, 5.0)
    )
    assert some - none == near(2 / 3 * 5 * 2 * TOKENS * 2 * 64 / 2)


def test_the_loss_moves_logits_in_16_and_32_bits():
    found = times(LLAMA, MEMORY).head
    assert found.forward_s == near(product_bytes(64, 100) + 14 * TOKENS * 100)
    cut = times(LLAMA, MEMORY, Layout(2)).head
    half = 2.0 * (TOKENS * 64 + 64 * 50 + TOKENS * 50)
    assert cut.forward_s == near(half + 14 * TOKENS * 50)


@pytest.mark.parametrize(
    ("scaling", "rate"),
    [
        ("tensor", "gemm_fp8_FLOPs"),
        ("block", "gemm_fp8_block_FLOPs"),
        ("mx", "gemm_fp8_mx_FLOPs"),
    ],
)
def test_each_kind_of_FP8_scale_has_its_rate(scaling: str, rate: str):
    gpu = replace(FREE, **{rate: 1.0})
    found = times(GPT, gpu, precision="fp8", scaling=scaling)
    assert found.layer.forward_s == near(2 * TOKENS * (4 * 64 * 64 + 2 * 64 * 256))
    assert found.head.forward_s < 1e-9  # the head stays in 16 bits


def test_FP8_casts_operands_on_the_way_and_moves_half():
    found = times(GPT, MEMORY, precision="fp8").ffn.forward_s
    products = (product_bytes(64, 256) + product_bytes(256, 64)) / 2
    casts = 4 * TOKENS * (64 + 256)
    around = 2 * TOKENS * 64 * 5 + 2 * TOKENS * 256 * 2
    assert found == near(products + casts + around)
    bare = replace(MEMORY, peak_fp8_FLOPs=1.0)  # a GPU without FP8 casts nothing
    assert times(GPT, bare, precision="fp8").ffn.forward_s == near(found - casts)


def test_TF32_products_run_at_their_own_rate():
    gpu = replace(FREE, gemm_fp32_FLOPs=1.0)
    assert times(GPT, gpu, precision="fp32").head.forward_s == near(2 * TOKENS * 64 * 100)


@pytest.mark.parametrize(
    ("model", "layout", "more", "count"),
    [
        # query, key-value, output, up, down; two norms, two sums, activation; attention
        (GPT, Layout(), {}, 5 + 5 + 1),
        (LLAMA, Layout(), {}, 5 + 5 + 2 + 1),  # rotary: queries, keys
        (GPT, Layout(), {"attention": "unfused"}, 5 + 5 + 5),
        (replace(GPT, output_bias=True), Layout(), {"attention": "unfused"}, 5 + 5 + 5 + 2),
        (GPT, Layout(2), {"sequence_parallel": False}, 11 + 2),
        (GPT, Layout(2), {}, 11 + 4),
    ],
)
def test_a_layer_takes_as_long_as_its_kernels_take_to_launch(model, layout, more, count):
    assert launches(model, layout, recipe(**more)) == count
    found = times(model, replace(FREE, launch_s=1.0), layout, **more).layer
    assert found == Pass(near(count), near(2 * count))


def test_layers_with_experts_launch_their_routing_too():
    gpu = replace(FREE, launch_s=1.0, launch_moe_s=30.0)
    assert times(MOE, gpu).layer.forward_s == near(13 + 30 * 2 / 3)


def test_what_is_computed_again():
    gpu = replace(ARITHMETIC, attention_FLOPs=1.0)
    layer = times(LLAMA, gpu)
    products = layer.layer.forward_s - layer.core_s
    assert layer.again_s == 0.0
    assert times(LLAMA, gpu, recompute="full").again_s == near(layer.layer.forward_s)
    assert times(LLAMA, gpu, recompute="selective").again_s == 0.0
    unfused = times(GPT, gpu, recompute="selective", attention="unfused")
    assert unfused.again_s == unfused.core_s > 0
    assert times(LLAMA, gpu, recompute="operations").again_s == near(products / 2)


def test_context_parallelism_divides_the_tokens():
    assert times(LLAMA, FREE, Layout(context=2)).tokens == TOKENS / 2
    whole, half = (times(LLAMA, ARITHMETIC, Layout(context=c)).head.forward_s for c in (1, 2))
    assert half == near(whole / 2)


def test_a_machine_is_the_data_sheet_times_the_shares():
    world = World(
        catalog(),
        {
            ("compute", "hopper", "gemm_share"): 0.5,
            ("compute", "hopper", "gemm_fp8_share"): 0.4,
            ("compute", "hopper", "attention_share"): 0.25,
            ("compute", "all", "memory_share"): 0.8,
            ("compute", "all", "power_exponent"): 0.5,
            ("compute", "software-2021", "launch_s"): 9.0,
        },
    )
    h100 = machine("h100-sxm", world)
    assert h100.gemm_FLOPs == near(989e12 / 2)
    assert h100.gemm_fp32_FLOPs == near(989e12 / 4)
    assert h100.gemm_fp8_FLOPs == near(1979e12 * 0.4)
    assert h100.attention_FLOPs == near(989e12 / 4)
    assert h100.memory_Bps == near(3.35e12 * 0.8)
    assert (h100.peak("bf16"), h100.peak("fp8"), h100.peak("fp32")) == (989e12, 1979e12, 494.5e12)
    assert (h100.gpu, h100.name, h100.generation) == ("h100-sxm", "H100", "hopper")
    assert h100.memory_bytes == 80e9
    assert machine("h100-sxm", world, "2021").launch_s == 9.0
    # 500 W instead of 700: the square root of their ratio.
    limited = machine("h100-96-hbm2e", world)
    assert limited.gemm_FLOPs / h100.gemm_FLOPs == near((500 / 700) ** 0.5)
    assert limited.gemm_fp8_FLOPs / h100.gemm_fp8_FLOPs == near((500 / 700) ** 0.5)
    assert limited.attention_FLOPs / h100.attention_FLOPs == near((500 / 700) ** 0.5)


def test_a_GPU_without_FP8_computes_it_in_16_bits():
    a100 = machine("a100-80-sxm", W)
    assert a100.gemm_fp8_FLOPs == a100.gemm_fp8_mx_FLOPs == a100.gemm_FLOPs


@pytest.mark.parametrize("software", ["2021", "2023", "2025", "2026"])
def test_each_generation_of_software_has_its_constants(software: str):
    found = machine("h100-sxm", W, software)
    for name in ("launch_s", "launch_moe_s", "tensor_hidden", "expert_hidden", "routing_moves"):
        assert getattr(found, name) == W.number("compute", f"software-{software}", name)
    for name in ("gemm_pad", "gemm_depth", "kernel_s", "step_s", "straggler", "overlap_cost"):
        assert getattr(found, name) == W.number("compute", "all", name)
    for name in ("bucket_bytes", "reserved_bytes", "unfused_moves"):
        assert getattr(found, name) == W.number("compute", "all", name)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("precision", "fp7", "unknown precision 'fp7' (known: bf16, fp16, fp8, fp32)"),
        ("gradient_precision", "fp8", "unknown gradient_precision 'fp8' (known: fp32, bf16, fp16)"),
        (
            "recompute",
            "some",
            "unknown recompute 'some' (known: none, selective, operations, full)",
        ),
        ("zero", 4, "unknown zero '4' (known: 0, 1, 2, 3)"),
        ("attention", "fast", "unknown attention 'fast' (known: flash, unfused)"),
        ("scaling", "row", "unknown scaling 'row' (known: tensor, block, mx)"),
        ("software", "1999", "unknown software '1999' (known: 2021, 2023, 2025, 2026)"),
        (
            "micro_batch",
            0,
            "global_batch, micro_batch, sequence and interleave must be 1 or more",
        ),
    ],
)
def test_a_recipe_of_unknown_words_is_refused(key: str, value: object, message: str):
    with pytest.raises(UserError) as caught:
        recipe(**{key: value})
    assert str(caught.value) == message


def test_elements_have_the_bytes_of_their_precision():
    assert [recipe(precision=p).element_bytes for p in ("bf16", "fp16", "fp8", "fp32")] == [
        2
    ] * 3 + [4]
    assert [recipe(gradient_precision=p).gradient_bytes for p in ("fp32", "bf16")] == [4, 2]


def test_a_model_of_the_catalog_computes():
    assert times(load_model("llama-3-8b", W), machine("h100-sxm", W)).layer.forward_s > 0
