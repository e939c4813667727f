"""Is the cluster file consistent? One idea: build in numbers what it describes, and say what was
understood.

Beyond what :func:`eastwest.spec.cluster.load_cluster` checks: the topology exists, takes its keys
and holds the servers; the switch's ports fit the NICs; the job's layout divides the GPUs; the model
fits their memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eastwest.catalog.world import nominal
from eastwest.errors import InternalError, UserError
from eastwest.fabric.networks import compute_plan, link_rate_Bps, storage_plan
from eastwest.fabric.plan import Plan
from eastwest.fabric.server import distance, server_graph
from eastwest.spec.cluster import Cluster, ManagementNetwork
from eastwest.spec.nccl import LEVELS
from eastwest.spec.problems import Collector
from eastwest.study.run import prepare
from eastwest.study.situation import Situation, situate
from eastwest.study.variants import file_technology
from eastwest.table import Column, Table, plain
from eastwest.units import format_bits_rate
from eastwest.workload.layout import Layout


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
            "nccl": self.cluster.nccl.said(),
            "not_modelled": list(self.cluster.nccl.not_modelled()),
            "expect": [e.text for e in self.cluster.expect],
            "overrides": {".".join(o.key): o.value for o in self.cluster.overrides},
        }


def check(cluster: Cluster) -> Check:
    """Check a cluster beyond its names and types.

    What :func:`eastwest.study.compare.compare` refuses of a cluster's own networks and job is
    refused here, in the same words. Raises SpecError with all that is wrong, each with its line.
    """
    collector = Collector(cluster.marks)
    situation, storage = _networks(cluster, collector)
    layout = _layout_of(cluster, situation, collector)
    collector.done()
    if situation is None or situation.plan is None:
        raise InternalError("a compute network without a plan was not refused")
    rate_Bps = link_rate_Bps(cluster)
    return Check(cluster, cluster.total_gpus(), rate_Bps, situation.plan, storage, layout)


def require_networks(cluster: Cluster) -> None:
    """Raise SpecError, as :func:`check` does, if the file's own networks cannot be built."""
    collector = Collector(cluster.marks)
    _networks(cluster, collector)
    collector.done()


def _networks(cluster: Cluster, collector: Collector) -> tuple[Situation | None, Plan | None]:
    """Return the file's compute network in its place, and its storage network's plan."""
    situation, storage = None, None
    try:
        compute_plan(cluster)  # names the key that is wrong, where a situation tells the reason
        situation = situate(cluster, nominal(cluster.facts()), file_technology(cluster))
        if situation.path is None:
            collector.add(("networks", "compute"), situation.refused)
    except UserError as error:
        collector.take(("networks", "compute"), error)
    try:
        _check_gpudirect(cluster)
    except UserError as error:
        collector.take(("nccl", "NCCL_NET_GDR_LEVEL"), error)
    try:
        storage = storage_plan(cluster)
    except UserError as error:
        collector.take(("networks", "storage"), error)
    return situation, storage


def _check_gpudirect(cluster: Cluster) -> None:
    """Raise UserError if NCCL_NET_GDR_LEVEL does not reach from a GPU to its NIC, but the compute
    network has GPUDirect."""
    level = cluster.nccl.NCCL_NET_GDR_LEVEL
    if level is None or not cluster.networks.compute.gpudirect:
        return
    form = server_graph(nominal(cluster.facts()), cluster.server).structure
    apart = max((distance(form, g, nic) for g, nic in enumerate(form.nic_of_gpu)), key=LEVELS.index)
    if LEVELS.index(apart) > LEVELS.index(level):
        raise UserError(
            f"GPUs and NICs are {apart} apart, so that {level} turns GPUDirect off, but the "
            "compute network has it on",
            hint="set networks.compute.gpudirect: false, or allow it farther",
        )


def _layout_of(
    cluster: Cluster, situation: Situation | None, collector: Collector
) -> Layout | None:
    """Return the job's layout; None where it is left to be chosen, though one must be possible."""
    auto = cluster.job.parallel == "auto"
    if situation is None or (auto and situation.path is None):
        return None
    try:
        job = prepare(cluster, nominal(cluster.facts()), situation)
    except UserError as error:
        collector.take(("job",), error)
        return None
    return None if auto else job.inputs.layout


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
        ("NCCL", "; ".join(f"{name}={value}" for name, value in cluster.nccl.said().items())),
        ("not modelled", ", ".join(cluster.nccl.not_modelled())),
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
