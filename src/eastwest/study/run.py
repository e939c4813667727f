"""The job on a network: one run of the step. One idea: the job is prepared once a world, then asked
on many networks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path as FilePath

from eastwest.catalog.world import World
from eastwest.collective.estimate import Estimate, Estimator
from eastwest.errors import UserError
from eastwest.spec.cluster import Cluster
from eastwest.study.situation import Situation, communicate, communicator, domain_gpus
from eastwest.training.job import step_input
from eastwest.training.plan import StepInput
from eastwest.training.step import TrainingStep, step_time
from eastwest.transport.stages import Path
from eastwest.workload.compute import machine
from eastwest.workload.layout import Group, groups
from eastwest.workload.model import load_model


@dataclass(frozen=True, slots=True)
class Job:
    """The cluster's job in one world, ready to be run on any of its networks."""

    cluster: Cluster
    world: World
    inputs: StepInput
    estimator: Estimator

    def step(
        self, situation: Situation, path: Path | None = None, inputs: StepInput | None = None
    ) -> TrainingStep:
        """Return the step on a network; on another path or with another input where they are
        given."""
        there = situation if path is None else replace(situation, path=path)
        return step_time(inputs or self.inputs, communicate(there, self.world, self.estimator))

    def everyone(self) -> Group:
        """Return the group of all GPUs."""
        total, node = self.cluster.total_gpus(), self.inputs.node_gpus
        return Group(total, -(-total // node), min(total, node), 1)

    def data_group(self) -> Group:
        """Return a data parallel group; all GPUs where there is none."""
        found = groups(self.inputs.layout, self.inputs.node_gpus).data
        return found if found.ranks > 1 else self.everyone()

    def all_reduce(self, situation: Situation, size_bytes: float, group: Group) -> Estimate:
        """Return an all-reduce of one group on a network."""
        comm = communicator(situation, self.world, group)
        return self.estimator.estimate("all_reduce", size_bytes, comm)


def prepare(cluster: Cluster, world: World, situation: Situation) -> Job:
    """Return the cluster's job with its layout given or chosen on this network.

    Raises UserError, with the place in the cluster file, for models and layouts that do not fit.
    """
    estimator = Estimator(world)
    try:
        model = load_model(cluster.job.model, world, FilePath(cluster.marks.name).parent)
    except UserError as error:
        raise cluster.with_line(error.at(cluster.where("job.model"))) from None
    gpu = machine(world.text("server", cluster.server, "gpu"), world)
    node = domain_gpus(cluster, world)
    ask = communicate(situation, world, estimator)
    try:
        inputs = step_input(cluster.job, model, gpu, cluster.total_gpus(), node, ask, "job")
    except UserError as error:
        key = error.where if error.where.startswith("job") else "job"
        raise cluster.with_line(UserError(error.what, cluster.where(key), error.hint)) from None
    return Job(cluster, world, inputs, estimator)


def in_world(job: Job, world: World) -> Job:
    """Return the same job and layout in another world."""
    gpu = machine(world.text("server", job.cluster.server, "gpu"), world)
    return Job(job.cluster, world, replace(job.inputs, machine=gpu), Estimator(world))
