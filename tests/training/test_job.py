"""From the cluster file's job to a step's input."""

from __future__ import annotations

import pytest

from eastwest.catalog.world import shared_nominal
from eastwest.errors import UserError
from eastwest.spec.cluster import Job
from eastwest.training.job import recipe_of, step_input
from eastwest.training.published import plain_network
from eastwest.training.step import step_time
from eastwest.workload.compute import machine
from eastwest.workload.layout import Layout
from eastwest.workload.memory import memory
from eastwest.workload.model import load_model

WORLD = shared_nominal()
NETWORK = plain_network(8, 350e9, 45e9, 2e-6, 1e-5)


def job(**more: object) -> Job:
    values = {"model": "llama-3-70b", "global_batch": 1024, "sequence": 8192, **more}
    return Job.model_validate(values)


def plan(job: Job, gpus: int = 1024, gpu: str = "h100-sxm"):
    return step_input(job, load_model(job.model, WORLD), machine(gpu, WORLD), gpus, 8, NETWORK)


def test_what_the_file_leaves_out_is_completed():
    made = plan(job(parallel={"tensor": 8, "pipeline": 4}))
    assert made.layout == Layout(8, 4, 32)
    assert made.recipe.precision == "bf16"
    assert made.recipe.gradient_bytes == 4


def test_every_word_of_the_job_arrives():
    given = job(
        micro_batch=2,
        precision="fp8",
        recompute="full",
        zero=3,
        overlap=False,
        gradient_precision="bf16",
    )
    recipe = recipe_of(given)
    for name in (
        "global_batch",
        "micro_batch",
        "sequence",
        "precision",
        "recompute",
        "zero",
        "overlap",
        "gradient_precision",
    ):
        assert getattr(recipe, name) == getattr(given, name)


@pytest.mark.parametrize(
    ("model", "gpus"),
    [("llama-3-70b", 1024), ("mixtral-8x22b", 512), ("gpt2", 64), ("llama-3-8b", 8)],
)
def test_auto_is_no_slower_than_what_one_would_write(model: str, gpus: int):
    chosen = plan(job(model=model, parallel="auto"), gpus)
    need = memory(chosen.model, chosen.layout, chosen.recipe, chosen.machine.reserved_bytes)
    assert need.total_bytes <= chosen.machine.memory_bytes
    for parallel in (
        {"tensor": 8, "pipeline": 4},
        {"tensor": 8},
        {"tensor": 4, "pipeline": 2},
        {"tensor": 2},
    ):
        try:
            written = plan(job(model=model, parallel=parallel), gpus)
        except UserError:
            continue
        assert step_time(chosen, NETWORK).step_s <= step_time(written, NETWORK).step_s * (1 + 1e-12)


def test_a_job_that_fits_no_layout_says_so_at_its_place():
    with pytest.raises(
        UserError, match=r"^job\.parallel: llama-3\.1-405b fits no layout of 8 GPUs: the leanest"
    ):
        plan(job(model="llama-3.1-405b", parallel="auto", zero=0), 8)


def test_a_given_layout_that_does_not_fit_shows_its_sum():
    with pytest.raises(
        UserError,
        match=r"^job\.parallel: llama-3-70b with tensor 1 x pipeline 1 x data 1024 needs .* a GPU",
    ):
        plan(job(parallel={"tensor": 1}))
