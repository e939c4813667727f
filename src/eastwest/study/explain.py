"""What happens to one message, stage by stage? One idea: the stages that price a network also tell
why.

::

    gpu0.node0 ── same NVLink domain? ── yes: NVLink, whatever the network
                        no
                        └── same rail? ── no: to the GPU of the other's rail over NVLink first
                        (PXN), or, where the
                              yes             payload lies in host memory anyway, straight to that
                              rail's NIC └── NIC ── 1, 3 or 5 switches, as the plan has it ── NIC
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from eastwest.catalog.load import Fact
from eastwest.catalog.technology import technology_ids
from eastwest.catalog.world import World, nominal
from eastwest.errors import UserError, unknown_name
from eastwest.fabric.distance import crossing
from eastwest.fabric.networks import link_rate_Bps, server_nics
from eastwest.fabric.plan import Plan
from eastwest.fabric.server import server_graph
from eastwest.spec.cluster import Cluster
from eastwest.study.situation import Situation, domain_gpus, path_over, situate, way_of
from eastwest.study.variants import offered
from eastwest.table import Column, Table, plain
from eastwest.transport import abilities, nvlink
from eastwest.transport.endpoint import Endpoint
from eastwest.transport.stages import Path, Stage
from eastwest.units import format_size, format_time

LARGEST_bytes = 2**50
_NAME = re.compile(r"gpu([0-9]{1,9})\.node([0-9]{1,9})", re.IGNORECASE)
NVLINK = "nvlink"


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU of the cluster by its number in its server and its server's number."""

    gpu: int
    node: int

    def __str__(self) -> str:
        return f"gpu{self.gpu}.node{self.node}"


@dataclass(frozen=True, slots=True)
class Step:
    """What one stage costs one message: its part of the latency, CPU time, and what it leaves on
    the hosts."""

    name: str
    place: str
    side: str  # sender, network, receiver
    seconds: float
    cpu_s: float
    copies: int
    context_switches: int
    interrupts: int
    why: str


@dataclass(frozen=True, slots=True)
class Explained:
    """One technology's stages for the message, in order; ``switches`` is None where no plan
    tells."""

    technology: str
    label: str
    use: str
    in_file: bool
    switches: int | None
    steps: tuple[Step, ...]

    @property
    def seconds(self) -> float:
        """The latency: the sum over the stages."""
        return sum(s.seconds for s in self.steps)

    @property
    def cpu_s(self) -> float:
        """CPU time on all hosts."""
        return sum(s.cpu_s for s in self.steps)

    def count(self, what: str) -> int:
        """Return how many ``copies``, ``context_switches`` or ``interrupts`` the message leaves."""
        return sum(getattr(s, what) for s in self.steps)

    def table(self) -> Table:
        """Return the stages as a table, each with its share of the latency."""
        columns = (
            Column("stage", "stage", right=False),
            Column("place", "where", right=False),
            Column("side", "side", right=False),
            Column("time_s", "time", format_time),
            Column("share", "share", lambda v: f"{v:.1%}"),
            Column("cpu_s", "CPU time", _time_or_none),
            Column("copies", "copies", _count),
            Column("context_switches", "context switches", _count),
            Column("interrupts", "interrupts", _count),
            Column("why", "why", right=False),
        )
        whole = self.seconds or 1.0
        rows = tuple(
            (
                s.name,
                s.place,
                s.side,
                s.seconds,
                s.seconds / whole,
                s.cpu_s,
                s.copies,
                s.context_switches,
                s.interrupts,
                s.why,
            )
            for s in self.steps
        )
        return Table(f"{self.label}: {format_time(self.seconds)}", columns, rows)


@dataclass(frozen=True, slots=True)
class Explanation:
    """One message between two GPUs, by technology; ``remarks`` tell what cannot be built and what
    was assumed."""

    cluster: str
    source: str
    target: str
    size_bytes: int
    explained: tuple[Explained, ...]
    remarks: tuple[str, ...]
    facts: tuple[Fact, ...]

    @property
    def line(self) -> str:
        """One line that says what was asked."""
        return (
            f"{format_size(self.size_bytes)} from {self.source} to {self.target} of "
            f"{self.cluster}, one way"
        )

    def summary(self) -> Table:
        """Return one row a technology."""
        columns = (
            Column("technology", "technology", right=False),
            Column("label", "", right=False),
            Column("use", "use", right=False),
            Column("latency_s", "latency", format_time),
            Column("times_best", "× best", lambda v: f"{v:,.1f}"),
            Column("cpu_s", "CPU time", _time_or_none),
            Column("copies", "copies", _count),
            Column("context_switches", "context switches", _count),
            Column("interrupts", "interrupts", _count),
            Column("switches", "switches", plain),
        )
        best = min((e.seconds for e in self.explained), default=1.0) or 1.0
        rows = tuple(
            (
                e.technology,
                e.label + (" (in the file)" if e.in_file else ""),
                e.use,
                e.seconds,
                e.seconds / best,
                e.cpu_s,
                e.count("copies"),
                e.count("context_switches"),
                e.count("interrupts"),
                e.switches,
            )
            for e in self.explained
        )
        return Table(self.line, columns, rows, self.remarks)

    def brief(self) -> Table:
        """Return the summary with the ids alone and short headings, which a terminal of 80 columns
        holds."""
        columns = (
            Column("technology", "technology", right=False),
            Column("latency_s", "latency", format_time),
            Column("cpu_s", "CPU time", _time_or_none),
            Column("copies", "copies", _count),
            Column("context_switches", "ctx sw", _count),
            Column("interrupts", "irqs", _count),
            Column("switches", "hops", plain),
        )
        records = self.summary().records()
        rows = [[record[c.key] for c in columns] for record in records]
        for row, e in zip(rows, self.explained, strict=True):
            row[0] = f"{e.technology} *" if e.in_file else e.technology
        notes = ("* as the file has it",) if any(e.in_file for e in self.explained) else ()
        return Table(self.line, columns, tuple(tuple(row) for row in rows), (*notes, *self.remarks))

    def tables(self) -> tuple[Table, ...]:
        """Return the summary, then each technology's stages."""
        return (self.summary(), *(e.table() for e in self.explained))

    def record(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {
            "cluster": self.cluster,
            "from": self.source,
            "to": self.target,
            "size_bytes": self.size_bytes,
            "technologies": [
                summary | {"in_file": e.in_file, "label": e.label, "stages": e.table().records()}
                for summary, e in zip(self.summary().records(), self.explained, strict=True)
            ],
            "remarks": list(self.remarks),
        }


def _time_or_none(seconds: float) -> str:
    return format_time(seconds) if seconds else plain(None)


def _count(number: int) -> str:
    return str(number) if number else plain(None)


def parse_gpu(text: str, cluster: Cluster) -> Gpu:
    """Read ``gpu3.node17``. Raises UserError with what exists."""
    gpus, last = cluster.server_gpus(), cluster.servers - 1
    exist = f"gpu0 to gpu{gpus - 1} of node0 to node{last}"
    match = _NAME.fullmatch(text.strip())
    if not match:
        raise UserError(
            f"'{text[:40]}' names no GPU; expected gpuG.nodeN, such as gpu0.node0",
            hint=f"there are {exist}",
        )
    found = Gpu(int(match[1]), int(match[2]))
    if found.gpu >= gpus or found.node > last:
        missing = f"gpu{found.gpu}" if found.gpu >= gpus else f"node{found.node}"
        raise UserError(f"the cluster has no {missing}", hint=f"there are {exist}")
    return found


def default_ends(cluster: Cluster) -> tuple[str, str]:
    """Return the two GPUs to speak of where nobody says: of two servers, or else of one."""
    if cluster.servers > 1:
        return "gpu0.node0", "gpu0.node1"
    return "gpu0.node0", f"gpu{min(1, cluster.server_gpus() - 1)}.node0"


def explain(
    cluster: Cluster, source: str, target: str, size_bytes: int, technologies: Sequence[str] = ()
) -> Explanation:
    """Return what happens to one message from one GPU to another with each technology.

    Parameters
    ----------
    source, target : ``gpuG.nodeN``, case-insensitive.
    size_bytes : the payload.
    technologies : catalog ids; all if empty.

    Raises UserError for a GPU or technology that does not exist, for a GPU and itself, and for no
    bytes.
    """
    a, b = parse_gpu(source, cluster), parse_gpu(target, cluster)
    if a == b:
        raise UserError(f"{a} is both ends of the message", hint="name another GPU with --to")
    if size_bytes < 1:
        raise UserError("a message has at least one byte", hint="such as --size 8B")
    if size_bytes > LARGEST_bytes:
        raise UserError("a message has at most 1 PiB", hint="such as --size 1GiB")
    world = nominal(cluster.facts())
    ids = wanted(cluster, world, technologies)
    if same_domain(cluster, world, a, b):
        found = [_inside(cluster, world, size_bytes, (a.gpu, b.gpu))]
        one = "NVLink domain" if found[0].technology == NVLINK else "server"
        remarks = [f"{a} and {b} are in one {one}: no NIC and no switch of the network is used."]
    else:
        found, remarks = _over_networks(cluster, world, (a, b), size_bytes, ids)
    return Explanation(
        cluster.name, str(a), str(b), size_bytes, tuple(found), tuple(remarks), tuple(world.used())
    )


def wanted(cluster: Cluster, world: World, technologies: Sequence[str]) -> tuple[str, ...]:
    """Return the technologies asked for, all that its NICs can carry if none is. Raises UserError
    for one that does not exist."""
    known = technology_ids(world)
    for name in technologies:
        if name not in known:
            raise unknown_name("technology", name, known)
    return tuple(dict.fromkeys(technologies)) or offered(cluster, world)


def same_domain(cluster: Cluster, world: World, a: Gpu, b: Gpu) -> bool:
    """Whether two GPUs reach each other without the network: of one server, or of one rack where
    NVLink spans a rack."""
    per_server, domain = cluster.server_gpus(), domain_gpus(cluster, world)
    first, second = (g.node * per_server + g.gpu for g in (a, b))
    return a.node == b.node or first // domain == second // domain


def _inside(cluster: Cluster, world: World, size_bytes: int, pair: tuple[int, int]) -> Explained:
    end = _end(cluster, world)
    direct = nvlink.joined_directly(end, world, pair)
    id, label = (NVLINK, "NVLink") if direct else ("pcie", "PCIe")
    path = nvlink.path(label, end, world, pair)
    return Explained(id, label, "scale-up", False, None, steps(path, size_bytes))


def _over_networks(
    cluster: Cluster, world: World, ends: tuple[Gpu, Gpu], size_bytes: int, ids: Sequence[str]
) -> tuple[list[Explained], list[str]]:
    found, remarks = [], []
    for id in ids:
        situation = situate(cluster, world, id)
        if situation.path is None:
            remarks.append(f"{situation.label} cannot be built here: {situation.refused}.")
            continue
        path, switches, remark = _between(situation, world, ends)
        tech = situation.technology
        found.append(
            Explained(
                id, tech.label, tech.use, situation.in_file, switches, steps(path, size_bytes)
            )
        )
        if remark and remark not in remarks:
            remarks.append(remark)
    if not found:
        raise UserError("none of the technologies can be built here", hint=" ".join(remarks))
    return found, remarks


def _between(
    situation: Situation, world: World, ends: tuple[Gpu, Gpu]
) -> tuple[Path, int | None, str]:
    """Return the path between two GPUs of different servers, the switches it crosses, and what to
    remark."""
    plan, tech, cluster = situation.plan, situation.technology, situation.cluster
    if plan is None or situation.path is None:
        raise UserError(situation.refused)
    if abilities(tech).through_store:
        return (
            situation.path,
            None,
            "NVMe-oF: the way to a storage target is that of the mean server.",
        )
    source, target = (rail_of(plan, cluster, end.gpu) for end in ends)
    crossed = crossing(plan, *(port_of(plan, end.node, target) for end in ends))
    switches = round(crossed.hops)
    path = path_over(cluster, world, tech, way_of(world, tech, plan, crossed), plan)
    if source == target:
        return path, switches, ""
    if not tech.gpudirect:
        return (
            path,
            switches,
            f"Without GPUDirect the sender uses NIC {target}, of the receiver's rail.",
        )
    end, sender = _end(cluster, world), ends[0].gpu
    nearest = target * cluster.built_gpus() // plan.demand.rails
    if not nvlink.joined_directly(end, world, (sender, nearest)):
        return (
            path,
            switches,
            f"Without NVLink to the GPU beside it the sender reaches NIC {target} over PCIe.",
        )
    hand = tuple(
        replace(
            s,
            name="hand over by NVLink (PXN)",
            why=f"to the GPU of rail {target}, which has that NIC",
        )
        for s in nvlink.stages(end, world, launch=False, pair=(sender, nearest))
    )
    remark = (
        f"The GPUs are on rails {source} and {target}: NCCL hands the message to the "
        "other rail's GPU first (PXN)."
    )
    return replace(path, stages=(*hand, *path.stages)), switches, remark


def rail_of(plan: Plan, cluster: Cluster, gpu: int) -> int:
    """Return the rail, the number of the NIC, of a GPU: GPUs and NICs are paired in order and
    evenly."""
    return gpu * plan.demand.rails // cluster.built_gpus()


def port_of(plan: Plan, node: int, rail: int) -> int:
    """Return the number of a server's port on a rail, in the first plane."""
    return (node * plan.demand.rails + rail) * plan.demand.planes


def _end(cluster: Cluster, world: World) -> Endpoint:
    """Return the server as the file has it, for what does not leave it."""
    compute = cluster.networks.compute
    graph = server_graph(world, cluster.server, compute.nics or 0, compute.nic or "")
    cores = world.number("server", cluster.server, "cores")
    return Endpoint(
        graph,
        cores,
        link_rate_Bps(cluster),
        server_nics(cluster),
        compute.mtu_bytes or 4096,
    )


def steps(path: Path, size_bytes: int) -> tuple[Step, ...]:
    """Return the stages of a path with what each adds to one message."""
    return tuple(
        _step(stage, seconds, path, size_bytes) for stage, seconds in path.timeline(size_bytes)
    )


def _step(stage: Stage, seconds: float, path: Path, size_bytes: int) -> Step:
    packets = max(1, -(-size_bytes // path.packet_bytes))
    cpu_s = (
        stage.message_s + packets * stage.packet_s + size_bytes * stage.byte_s if stage.cpu else 0.0
    )
    return Step(
        stage.name,
        str(stage.place),
        stage.side,
        seconds,
        cpu_s,
        stage.copies,
        stage.context_switches,
        stage.interrupts,
        stage.why,
    )


__all__ = ["Explained", "Explanation", "Gpu", "Step", "default_ends", "explain", "parse_gpu"]
