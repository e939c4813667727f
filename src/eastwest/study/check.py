"""Is the cluster file consistent? One idea: build in numbers what it describes, and say what was
understood.

Beyond what :func:`eastwest.spec.cluster.load_cluster` checks: the topology exists, takes its keys
and holds the servers; the switch's ports fit the NICs; the job's layout divides the GPUs; the model
fits their memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from eastwest.catalog.world import nominal
from eastwest.errors import UserError
from eastwest.fabric.networks import compute_plan, link_rate_Bps, storage_plan
from eastwest.fabric.plan import Plan
from eastwest.spec.cluster import Cluster, ManagementNetwork, Parallel
from eastwest.spec.problems import Collector
from eastwest.table import Column, Table, plain
from eastwest.training.job import recipe_of
from eastwest.units import format_bits_rate
from eastwest.workload.compute import machine
from eastwest.workload.layout import Layout, check_layout
from eastwest.workload.memory import check_fits
from eastwest.workload.model import load_model


@dataclass(frozen=True, slots=True)
class Check:
    """What was understood of a cluster file that is consistent. ``layout`` is None where it is left
    to be chosen."""

    cluster: Cluster
    gpus: int
    link_rate_Bps: float
    plan: Plan
    storage: Plan | None
    layout: Layout | None

    @property
    def line(self) -> str:
        """One line: ``llama-pod: 1,024 GPUs in 128 dgx-h100 …``."""
        compute = self.cluster.networks.compute
        return (
            f"{self.cluster.name}: {self.gpus:,} GPUs in {self.cluster.servers:,} "
            f"{self.cluster.server}, "
            f"{compute.technology} {compute.topology} of {self.plan.switches:,} {compute.switch}"
        )

    def table(self) -> Table:
        """Return what was understood, a row each."""
        rows = tuple((what, value) for what, value in _rows(self) if value)
        return Table("", (Column("what", "", right=False), Column("value", "", right=False)), rows)

    def record(self) -> dict[str, Any]:
        """Return what was understood as plain values, for JSON."""
        compute, job = self.cluster.networks.compute, self.cluster.job
        layout = self.layout and {name: getattr(self.layout, name) for name in Layout.__slots__}
        return {
            "name": self.cluster.name,
            "gpus": self.gpus,
            "servers": self.cluster.servers,
            "server": self.cluster.server,
            "compute": {
                "technology": compute.technology,
                "topology": compute.topology,
                "switch": compute.switch,
                "switches": self.plan.switches,
                "roles": {role.name: role.count for role in self.plan.roles},
                "cables": list(self.plan.cables),
                "link_rate_Bps": self.link_rate_Bps,
                "gpudirect": compute.gpudirect,
            },
            "storage": self.storage
            and {
                "topology": self.storage.topology,
                "switch": self.storage.switch.id,
                "switches": self.storage.switches,
                "roles": {role.name: role.count for role in self.storage.roles},
                "cables": list(self.storage.cables),
            },
            "job": {
                "model": job.model,
                "layout": layout or "auto",
                "global_batch": job.global_batch,
                "sequence": job.sequence,
                "precision": job.precision,
            },
            "expect": [e.text for e in self.cluster.expect],
            "overrides": {".".join(o.key): o.value for o in self.cluster.overrides},
        }


def check(cluster: Cluster) -> Check:
    """Check a cluster beyond its names and types. Raises SpecError with all that is wrong, each
    with its line."""
    collector = Collector(cluster.marks)
    plan, storage, rate_Bps, layout = None, None, 0.0, None
    try:
        rate_Bps = link_rate_Bps(cluster)
        plan = compute_plan(cluster)
    except UserError as error:
        collector.take(("networks", "compute"), error)
    try:
        storage = storage_plan(cluster)
    except UserError as error:
        collector.take(("networks", "storage"), error)
    try:
        layout = job_layout(cluster)
        check_job(cluster, layout)
    except UserError as error:
        collector.take(("job", "parallel"), error)
    collector.done()
    if plan is None:
        raise UserError(
            "the compute network cannot be planned", where=cluster.where("networks.compute")
        )
    return Check(cluster, cluster.total_gpus(), rate_Bps, plan, storage, layout)


def job_layout(cluster: Cluster) -> Layout | None:
    """Return the job's layout with every degree known, or None for ``auto``.

    Raises UserError if the degrees do not divide the GPUs, or the replicas the batch.
    """
    parallel, gpus = cluster.job.parallel, cluster.total_gpus()
    if not isinstance(parallel, Parallel):
        return None
    tensor, pipeline, context = parallel.tensor or 1, parallel.pipeline or 1, parallel.context or 1
    model_gpus = tensor * pipeline * context
    where = cluster.where("job.parallel")
    said = " x ".join(
        f"{n} {v}"
        for n in ("tensor", "pipeline", "context")
        if (v := getattr(parallel, n)) is not None
    )
    if gpus % model_gpus:
        raise UserError(f"{said} = {model_gpus:,} GPUs do not divide the cluster's {gpus:,}", where)
    data = gpus // model_gpus
    if parallel.data is not None and parallel.data != data:
        rest = f"{said} x data" if said else "data"
        hint = f"leave data out, or write {data:,}"
        raise UserError(
            f"{rest} {parallel.data:,} = {model_gpus * parallel.data:,} GPUs, not {gpus:,}",
            cluster.where("job.parallel.data"),
            hint,
        )
    job = cluster.job
    if job.global_batch % (data * job.micro_batch):
        shares = f"{data:,} replicas in micro-batches of {job.micro_batch:,}"
        raise UserError(
            f"{job.global_batch:,} sequences do not divide over {shares}",
            cluster.where("job.global_batch"),
            f"a multiple of {data * job.micro_batch:,} does",
        )
    return Layout(tensor, pipeline, data, parallel.expert or 1, context)


def check_job(cluster: Cluster, layout: Layout | None) -> None:
    """Check that the model can be read, and that a given layout divides it and fits the GPUs'
    memory.

    Raises UserError at the key that is to be changed.
    """
    world, job = nominal(cluster.facts()), cluster.job
    try:
        model = load_model(job.model, world, FilePath(cluster.marks.name).parent)
    except UserError as error:
        raise error.at(cluster.where("job.model")) from None
    if layout is None:
        return
    gpu, recipe = machine(world.text("server", cluster.server, "gpu"), world), recipe_of(job)
    where = cluster.where("job.parallel")
    check_layout(
        model, layout, layout.gpus, recipe.global_batch, recipe.micro_batch, recipe.sequence, where
    )
    check_fits(model, layout, recipe, gpu.memory_bytes, where, gpu.reserved_bytes)


def _rows(found: Check) -> list[tuple[str, str]]:
    cluster, plan = found.cluster, found.plan
    compute, job = cluster.networks.compute, cluster.job
    direct = "GPUDirect" if compute.gpudirect else "through host memory"
    ports = f"{format_bits_rate(found.link_rate_Bps)} ports"
    return [
        ("GPUs", f"{found.gpus:,} in {cluster.servers:,} {cluster.server}"),
        ("compute", f"{compute.technology}, {compute.topology}, {ports}, {direct}"),
        ("switches", f"{_roles(plan)} {compute.switch}"),
        ("cables", " + ".join(f"{n:,}" for n in plan.cables)),
        ("storage", _storage(found)),
        ("management", _management(cluster.networks.management)),
        (
            "job",
            f"{job.model}, {job.global_batch:,} sequences of {job.sequence:,}, {job.precision}",
        ),
        ("layout", _layout(found.layout)),
        ("expect", "; ".join(e.text for e in cluster.expect)),
        (
            "overrides",
            "; ".join(f"{'.'.join(o.key)} = {plain(o.value)}" for o in cluster.overrides),
        ),
    ]


def _roles(plan: Plan) -> str:
    return " + ".join(f"{role.count:,} {role.name}" for role in plan.roles)


def _storage(found: Check) -> str:
    storage = found.cluster.networks.storage
    if storage is None:
        return ""
    text = f"{storage.technology}, {storage.targets:,} targets"
    return f"{text}, {_roles(found.storage)} {found.storage.switch.id}" if found.storage else text


def _management(network: ManagementNetwork) -> str:
    return f"{network.switch}, {network.servers_per_rack} servers a rack"


def _layout(layout: Layout | None) -> str:
    if layout is None:
        return "auto"
    shown = [("tensor", layout.tensor), ("pipeline", layout.pipeline), ("context", layout.context)]
    degrees = [f"{name} {degree:,}" for name, degree in shown if degree > 1] + [
        f"data {layout.data:,}"
    ]
    return " x ".join(degrees) + (f", expert {layout.expert:,}" if layout.expert > 1 else "")
