"""Memory of small models, counted by hand: what a GPU holds, keeps and works on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eastwest.errors import UserError
from eastwest.workload.layout import Layout
from eastwest.workload.memory import (
    Memory,
    Shard,
    activation_bytes_per_token,
    check_fits,
    memory,
    memory_table,
    shard,
)
from eastwest.workload.recipe import Recipe
from eastwest.workload.shapes import Model, parameters

GPT = Model(
    "gpt",
    "gpt2",
    6,
    64,
    4,
    4,
    16,
    256,
    100,
    False,
    True,
    positions=32,
    qkv_bias=True,
    output_bias=True,
    ffn_bias=True,
    norm_bias=True,
)
LLAMA = Model("llama", "llama", 6, 64, 4, 2, 16, 192, 100)
MOE = replace(LLAMA, experts=8, active_experts=2, expert_ffn=96, shared_ffn=48, dense_layers=2)


def recipe(**more: object) -> Recipe:
    return Recipe(**{"global_batch": 16, "micro_batch": 2, "sequence": 32} | more)


def near(value: float):
    return pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("model", [GPT, LLAMA, MOE], ids=["gpt", "llama", "experts"])
def test_one_GPU_holds_every_parameter(model: Model):
    assert shard(model, Layout()).total == near(parameters(model))


def test_tensor_parallelism_cuts_matrices_and_no_vectors():
    """A layer of GPT: 12 h^2 in matrices, 13 h in vectors; embedding cut, positions and last norm
    whole."""
    held = shard(GPT, Layout(4))
    assert held == Shard(6 * (12 * 64**2 / 4 + 13 * 64) + 100 * 64 / 4 + 32 * 64 + 2 * 64, 0.0)


def test_the_fullest_stage_holds_an_end_of_the_model():
    """Four stages of six layers: two on the fullest, and the embedding; the other end is apart."""
    layer = 64 * 64 * 2 + 64 * 64 + 3 * 64 * 192 + 2 * 64
    assert shard(LLAMA, Layout(1, 4)).common == near(2 * layer + 100 * 64 + 64)
    assert shard(LLAMA, Layout()).common == near(6 * layer + 2 * 100 * 64 + 64)


def test_experts_are_divided_and_routers_are_not():
    held = shard(MOE, Layout(2, expert=4, data=4))
    assert held.experts == near(4 * (8 / 4) * 3 * 64 * 96 / 2)
    attention = 3 * 64 * 64 / 2 + 2 * 64
    dense, sparse = 3 * 64 * 192 / 2, 64 * 8 + 3 * 64 * 48 / 2
    common = 6 * attention + 2 * dense + 4 * sparse + 2 * 100 * 64 / 2 + 64
    assert held.common == near(common)
    assert held.total == held.common + held.experts


@pytest.mark.parametrize(("precision", "element"), [("bf16", 2), ("fp32", 4)])
def test_a_layer_keeps_its_norms_heads_and_inner_values(precision: str, element: int):
    """Four times the width for norms and sums; queries, keys, values, attention's output; two or
    three inner widths."""
    gpt = activation_bytes_per_token(GPT, Layout(), recipe(precision=precision))
    assert gpt == near(element * (4 * 64 + 4 * 64 + 2 * 256))
    llama = activation_bytes_per_token(LLAMA, Layout(), recipe(precision=precision))
    assert llama == near(element * (4 * 64 + 2 * 64 + 2 * 32 + 3 * 192))


def test_tensor_parallelism_cuts_what_a_layer_keeps_but_for_shared_heads():
    cut = activation_bytes_per_token(LLAMA, Layout(4), recipe())
    assert cut == near(2 * (4 * 64 / 4 + 2 * 64 / 4 + 2 * 32 / 2 + 3 * 192 / 4))
    whole = activation_bytes_per_token(LLAMA, Layout(4), recipe(sequence_parallel=False))
    assert whole - cut == near(2 * 4 * 64 * 3 / 4)


def test_unfused_attention_keeps_five_bytes_a_score_unless_recomputed():
    flash = activation_bytes_per_token(GPT, Layout(2), recipe())
    kept = activation_bytes_per_token(GPT, Layout(2), recipe(attention="unfused"))
    again = recipe(attention="unfused", recompute="selective")
    assert kept - flash == near(5 * 4 * 32 / 2)
    assert activation_bytes_per_token(GPT, Layout(2), again) == flash


def test_all_recomputed_keeps_the_layers_input():
    for cut, share in ((True, 4), (False, 1)):
        made = recipe(recompute="full", sequence_parallel=cut)
        assert activation_bytes_per_token(GPT, Layout(4), made) == near(2 * 64 / share)


def test_experts_keep_what_their_tokens_meet():
    kept = activation_bytes_per_token(MOE, Layout(2), recipe())
    base = 4 * 64 / 2 + 2 * 64 / 2 + 2 * 32 / 2
    dense, sparse = 3 * 192 / 2, 3 * (2 * 96 + 48) / 2 + 2 * 64 / 2
    assert kept == near(2 * (base + dense / 3 + sparse * 2 / 3))


@pytest.mark.parametrize(
    ("stages", "batch", "chunks", "flight"),
    [(1, 16, 1, 1), (2, 16, 1, 2), (3, 4, 1, 2), (3, 16, 2, 3 * (1 + 2 / 6))],
)
def test_the_first_stage_keeps_the_microbatches_in_flight(stages, batch, chunks, flight):
    """1F1B: as many as there are stages, or microbatches; interleaving (p - 1) / (p v) more."""
    made = recipe(global_batch=batch, interleave=chunks)
    need = memory(LLAMA, Layout(1, stages), made)
    each = activation_bytes_per_token(LLAMA, Layout(), made)
    assert need.activations_bytes == near(flight * 6 / stages * 2 * 32 * each)


def test_recomputation_works_on_one_whole_layer():
    need = memory(LLAMA, Layout(2, context=2), recipe(recompute="full"))
    whole = activation_bytes_per_token(LLAMA, Layout(2), recipe())
    assert need.activations_bytes == near(2 * 16 * (6 * 2 * 64 / 2 + whole))


@pytest.mark.parametrize(("precision", "each"), [("bf16", 6), ("fp32", 8)])
def test_logits_are_kept_twice_on_the_only_stage(precision: str, each: int):
    need = memory(LLAMA, Layout(2, context=2), recipe(precision=precision))
    assert need.logits_bytes == near(2 * 16 * 100 / 2 * each)
    assert memory(LLAMA, Layout(2, 2), recipe()).logits_bytes == 0.0


@pytest.mark.parametrize(
    ("zero", "weights", "gradients", "states"),
    [(0, 1, 1, 1), (1, 1, 1, 1 / 8), (2, 1, 1 / 8, 1 / 8), (3, 1 / 8 + 2 / 6, 1 / 8, 1 / 8)],
)
def test_each_ZeRO_stage_shares_one_thing_more(zero, weights, gradients, states):
    """Rajbhandari et al. 2020; stage 3 works on two whole layers of six."""
    need = memory(LLAMA, Layout(data=4, context=2), recipe(zero=zero), 7.0)
    total = parameters(LLAMA)
    assert need.weights_bytes == near(2 * total * weights)
    assert need.gradients_bytes == near(4 * total * gradients)
    assert need.optimizer_bytes == near(12 * total * states)
    assert need.reserved_bytes == 7.0
    full = memory(LLAMA, Layout(data=4, context=2), recipe(zero=zero, precision="fp32"))
    assert full.optimizer_bytes == near(8 * total * states)


def test_experts_share_with_their_own_replicas():
    layout = Layout(data=8, expert=4)
    held = shard(MOE, layout)
    need = memory(MOE, layout, recipe(zero=1))
    assert need.optimizer_bytes == near(12 * (held.common / 8 + held.experts / 2))


NEED = Memory(1 * 2**30, 2 * 2**30, 3 * 2**30, 4 * 2**30, 5 * 2**30, 6 * 2**30)


def test_memory_is_the_sum_of_its_parts():
    assert NEED.total_bytes == 21 * 2**30
    assert [size / 2**30 for _, size in NEED.parts()] == [1, 2, 3, 4, 5, 6]
    names = ["weights", "gradients", "optimizer states", "activations", "logits", "reserved"]
    assert [name for name, _ in NEED.parts()] == names


def test_the_table_shows_each_part_and_its_share():
    shown = memory_table(NEED, 42 * 2**30)
    assert shown.rows[0] == ("weights", 2**30, 1 / 42)
    assert shown.rows[-2] == ("total", 21 * 2**30, 0.5)
    assert shown.rows[-1] == ("GPU", 42 * 2**30, 1.0)
    text = shown.to_markdown()
    for word in ("GPU memory", "size", "of the GPU", "1 GiB", "50.0%"):
        assert word in text


def test_exactly_full_fits():
    need = memory(LLAMA, Layout(), recipe())
    assert check_fits(LLAMA, Layout(), recipe(), need.total_bytes) == need
    with pytest.raises(UserError, match="needs"):
        check_fits(LLAMA, Layout(), recipe(), need.total_bytes - 1)


@pytest.mark.parametrize(
    ("more", "hint"),
    [
        (
            {"micro_batch": 16},
            "try recompute: full, a smaller micro_batch, or more tensor parallelism",
        ),
        ({"zero": 0}, "try zero: 1, or more tensor or pipeline parallelism"),
        ({}, "try more tensor or pipeline parallelism, or a higher zero stage"),
        (
            {"micro_batch": 16, "recompute": "full"},
            "try more tensor or pipeline parallelism, or a higher zero stage",
        ),
    ],
)
def test_the_remedy_suits_what_fills_the_memory(more: dict[str, object], hint: str):
    with pytest.raises(UserError) as caught:
        check_fits(GPT, Layout(), recipe(**more), 1.0, "job")
    assert caught.value.hint == hint
    assert caught.value.where == "job"
