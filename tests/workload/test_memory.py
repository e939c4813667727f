"""Memory: ZeRO's and Korthikanti's closed forms, and a refusal that shows its sum."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eastwest.catalog.world import shared_nominal
from eastwest.errors import UserError
from eastwest.workload.layout import Layout
from eastwest.workload.memory import activation_bytes_per_token, check_fits, memory, memory_table
from eastwest.workload.model import load_model, parameters
from eastwest.workload.recipe import Recipe


def model(name: str):
    return load_model(name, shared_nominal())


@pytest.mark.parametrize(("zero", "shared"), [(0, 0), (1, 12), (2, 14), (3, 16)])
def test_zero_shares_what_its_paper_says(zero: int, shared: int):
    """Rajbhandari et al. 2020: 16 bytes a parameter with 16-bit gradients, of which stages share
    12, 14 and 16."""
    gpt, replicas = model("gpt2-xl"), 64
    recipe = Recipe(64, 1, 1024, zero=zero, gradient_precision="bf16")
    need = memory(gpt, Layout(data=replicas), recipe)
    states = need.weights_bytes + need.gradients_bytes + need.optimizer_bytes
    working = 2 * 2 * parameters(gpt) / gpt.layers if zero == 3 else 0  # ZeRO-3's layers at work
    assert states - working == pytest.approx(
        parameters(gpt) * (16 - shared + shared / replicas), rel=1e-9
    )


def test_a_gpt_layer_keeps_34_s_b_h_but_for_two_dropout_masks():
    """Korthikanti et al. 2022, equations 2 and 4: s b h (34 + 5 a s / h) / t; we have no
    dropout."""
    gpt, recipe = model("gpt3-175b"), Recipe(1, 1, 2048, attention="unfused")
    kept = activation_bytes_per_token(gpt, Layout(tensor=8), recipe)
    assert kept == pytest.approx(gpt.hidden * (34 - 2 + 5 * gpt.heads * 2048 / gpt.hidden) / 8)
    assert activation_bytes_per_token(
        gpt, Layout(tensor=8), replace(recipe, recompute="selective")
    ) == pytest.approx(gpt.hidden * 32 / 8)
    assert (
        activation_bytes_per_token(gpt, Layout(tensor=8), replace(recipe, recompute="full"))
        == gpt.hidden * 2 / 8
    )


def test_without_sequence_parallelism_norms_are_kept_whole():
    """Korthikanti et al. 2022, equation 2: s b h (10 + 24 / t) with tensor parallelism alone, 8 of
    them ours."""
    gpt, recipe = model("gpt3-175b"), Recipe(1, 1, 2048, sequence_parallel=False)
    assert activation_bytes_per_token(gpt, Layout(tensor=8), recipe) == pytest.approx(
        gpt.hidden * (8 + 24 / 8)
    )


def test_a_pipeline_keeps_as_many_microbatches_as_it_has_stages():
    llama, recipe = model("llama-3-70b"), Recipe(1024, 1, 8192)
    one = memory(llama, Layout(8, 1, 8), recipe).activations_bytes
    for stages in (2, 4, 8):
        assert memory(llama, Layout(8, stages, 8), recipe).activations_bytes == pytest.approx(one)


def test_experts_are_shared_out():
    mixtral, recipe = model("mixtral-8x22b"), Recipe(512, 1, 4096)
    alone, spread = (memory(mixtral, Layout(2, 4, 64, e), recipe).weights_bytes for e in (1, 8))
    held = mixtral.layers / 4 * mixtral.experts * 3 * mixtral.hidden * mixtral.expert_ffn / 2 * 2
    assert alone - spread == pytest.approx(held * 7 / 8)


def test_a_job_that_does_not_fit_is_refused_with_its_arithmetic():
    with pytest.raises(UserError) as caught:
        check_fits(model("llama-3-70b"), Layout(8, 1, 2), Recipe(16, 1, 8192), 80e9, "job.parallel")
    assert str(caught.value) == (
        "job.parallel: llama-3-70b with tensor 8 x pipeline 1 x data 2 needs 120.2 GiB a GPU, "
        "which has 74.51 GiB: "
        "weights 16.43 GiB + gradients 32.86 GiB + optimizer states 49.29 GiB + activations "
        "20.94 GiB + "
        "logits 751.5 MiB (try more tensor or pipeline parallelism, or a higher zero stage)"
    )


def test_the_table_adds_up():
    need = check_fits(
        model("llama-3-8b"), Layout(2, 1, 8), Recipe(16, 1, 8192), 80e9, reserved_bytes=4e9
    )
    rows = memory_table(need, 80e9).records()
    assert sum(float(r["bytes"]) for r in rows[:-2]) == pytest.approx(float(rows[-2]["bytes"]))
    assert rows[-1]["share"] == 1.0
