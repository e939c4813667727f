"""From the cluster file's job to a step. One idea: the layout is given or chosen, then checked,
before anything is timed."""

from __future__ import annotations

from eastwest.errors import UserError
from eastwest.spec.cluster import Job
from eastwest.training.operations import Communicate
from eastwest.training.plan import StepInput
from eastwest.training.step import step_time
from eastwest.workload.compute import Machine
from eastwest.workload.layout import Layout, check_layout, choose_layout, complete_layout
from eastwest.workload.memory import check_fits, memory
from eastwest.workload.recipe import Recipe
from eastwest.workload.shapes import Model


def recipe_of(job: Job) -> Recipe:
    """Return how a job trains, apart from its model and layout.

    ``job`` is the cluster file's section; batch sizes are sequences, ``sequence`` is tokens.
    """
    return Recipe(
        global_batch=job.global_batch,
        micro_batch=job.micro_batch,
        sequence=job.sequence,
        precision=job.precision,
        recompute=job.recompute,
        zero=job.zero,
        overlap=job.overlap,
        gradient_precision=job.gradient_precision,
    )


def step_input(
    job: Job,
    model: Model,
    machine: Machine,
    gpus: int,
    node_gpus: int,
    communicate: Communicate,
    where: str = "job",
) -> StepInput:
    """Return all that a job's step depends on but the network, with its layout given, completed or
    chosen.

    ``node_gpus`` are the GPUs of one NVLink domain; ``communicate`` times the layouts that are
    tried (parallel: auto). Raises UserError, at ``where``, for a layout that does not divide or
    does not fit the GPUs' memory.

    ``job`` is the cluster file's section, ``model`` its shapes, ``machine`` one GPU, ``gpus`` how
    many there are in all.
    """
    recipe = recipe_of(job)
    if job.parallel == "auto":
        layout = _chosen(recipe, model, machine, gpus, node_gpus, communicate, where)
    else:
        p = job.parallel
        layout = complete_layout(
            gpus, p.tensor, p.pipeline, p.data, p.expert, p.context, f"{where}.parallel"
        )
    check_layout(
        model,
        layout,
        gpus,
        recipe.global_batch,
        recipe.micro_batch,
        recipe.sequence,
        f"{where}.parallel",
    )
    check_fits(
        model, layout, recipe, machine.memory_bytes, f"{where}.parallel", machine.reserved_bytes
    )
    return StepInput(model, layout, recipe, machine, node_gpus)


def _chosen(
    recipe: Recipe,
    model: Model,
    machine: Machine,
    gpus: int,
    node_gpus: int,
    communicate: Communicate,
    where: str,
) -> Layout:
    def spare_bytes(layout: Layout) -> float:
        return (
            machine.memory_bytes - memory(model, layout, recipe, machine.reserved_bytes).total_bytes
        )

    def step_s(layout: Layout) -> float:
        return step_time(StepInput(model, layout, recipe, machine, node_gpus), communicate).step_s

    try:
        return choose_layout(
            model,
            gpus,
            node_gpus,
            recipe.global_batch,
            recipe.micro_batch,
            recipe.sequence,
            spare_bytes,
            step_s,
        )
    except UserError as error:
        raise error.at(f"{where}.parallel") from None
