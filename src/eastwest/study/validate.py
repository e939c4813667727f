"""How far are we off? One idea: predict every measured row from its configuration alone, and show
the worst first."""

from __future__ import annotations

import csv
import functools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources

from eastwest.catalog.world import World, nominal
from eastwest.collective.communicator import Communicator
from eastwest.collective.estimate import Estimator
from eastwest.fabric.nvlink_mesh import mesh_rings
from eastwest.study.accuracy import RDMA, LARGE_bytes, region, table
from eastwest.table import Column, Table
from eastwest.units import format_size, parse_rate

TABLES = ("collectives", "allreduce_nvlink")


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured row: what ran where, and the bus bandwidth."""

    table: str
    hardware: str
    system: str  # the machine, under whatever name a row has it
    fabric: str
    operation: str
    algorithm: str  # "" where the library chose
    comm: Communicator
    size_bytes: int
    busbw_Bps: float

    def in_world(self, world: World) -> Measured:
        """Return the row with the rates and latencies of another world."""
        comm = communicator(world, self.hardware, self.comm.ranks, self.comm.nodes)
        return replace(self, comm=comm)

    def region(self, world: World) -> str:
        """Return the region of :mod:`eastwest.study.accuracy` that the row belongs to."""
        return region(self.comm, self.fabric in RDMA, world)


@dataclass(frozen=True, slots=True)
class Judged:
    """A measured row beside its prediction."""

    row: Measured
    predicted_Bps: float
    algorithm: str
    protocol: str

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted_Bps / self.row.busbw_Bps - 1.0


def _read(name: str) -> list[dict[str, str]]:
    file = resources.files("eastwest.study").joinpath("measured", f"{name}.csv")
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


@functools.cache
def _hardware() -> dict[str, dict[str, str]]:
    return {row["hardware"]: row for row in _read("hardware")}


def communicator(world: World, hardware: str, gpus: int, nodes: int) -> Communicator:
    """Return the communicator of a measured system: rates from the catalog, NICs from the table of
    systems."""
    about = _hardware()[hardware]
    gpu, fabric = about["gpu"], about["fabric"]
    local, mesh = gpus // nodes, world.has("nvlink-mesh", gpu, "pairs")
    rings, relayed = (
        mesh_rings(world.text("nvlink-mesh", gpu, "pairs"), local) if mesh else (0, False)
    )
    bridge = "bridge" in world.text("gpu", gpu, "scaleup") or local == 1
    linked = not bridge and (rings > 0 or not mesh)
    header = world.number("fitted", fabric, "payload_share")
    return Communicator(
        ranks=gpus,
        nodes=nodes,
        generation=world.text("gpu", gpu, "generation"),
        cpu="intel",
        link_Bps=world.number("gpu", gpu, "scaleup_oneway_Bps")
        if linked
        else world.number("nccl", "pcie", "gen3_x16_Bps"),
        links=int(world.number("gpu", gpu, "scaleup_links")) if linked else 0,
        node_Bps=int(about["nics"]) * parse_rate(about["nic_rate"]) * header,
        nics=int(about["nics"]),
        network_latency_s=world.number("fitted", fabric, "network_latency_s"),
        memory_Bps=world.number("gpu", gpu, "memory_Bps"),
        switched=not mesh,
        in_switch=about["nvls"] == "1",
        rings=rings,
        relayed=relayed,
        near_nics=about["near_nics"] == "1",
    )


_STATED = {
    "ring": "ring",
    "ring (NVLS off)": "ring",
    "tree": "tree",
    "NVLS": "nvls",
    "NVLSTree": "nvls_tree",
    "nvlstree": "nvls_tree",
}


def measured(table: str, world: World) -> list[Measured]:
    """Return the rows of a measured table with the communicator of each."""
    rows = []
    for row in _read(table):
        hardware = row.get("hardware") or row["gpu"]
        nodes = int(row.get("nodes") or 1)
        gpus = int(row["gpus"]) if "gpus" in row else nodes * int(row["gpus_per_node"])
        comm = communicator(world, hardware, gpus, nodes)
        operation, algorithm = row.get("op") or "all_reduce", _STATED.get(row.get("algo") or "", "")
        busbw, size = float(row["busbw_GBps"]) * 1e9, int(row["size_bytes"])
        system, fabric = (_hardware()[hardware][name] for name in ("system", "fabric"))
        rows.append(
            Measured(table, hardware, system, fabric, operation, algorithm, comm, size, busbw)
        )
    return rows


def judge(rows: Sequence[Measured], world: World) -> list[Judged]:
    """Predict every row."""
    estimator = Estimator(world)
    judged = []
    for row in rows:
        e = estimator.estimate(row.operation, row.size_bytes, row.comm, row.algorithm)
        judged.append(Judged(row, e.busbw_Bps, e.algorithm, e.protocol))
    return judged


def validate(world: World | None = None) -> dict[str, list[Judged]]:
    """Predict every row of every measured table."""
    world = world or nominal()
    return {name: judge(measured(name, world), world) for name in TABLES}


def summary(name: str, judged: Sequence[Judged]) -> Table:
    """Return medians and worst errors: of all rows, and of those from 16 MiB up."""
    columns = (
        Column("rows", "rows of " + name, right=False),
        Column("count", "count"),
        Column("median", "median error", _percent),
        Column("p90", "nine in ten within", _percent),
        Column("worst", "worst", _percent),
        Column("bias", "median bias", _signed),
    )
    parts = (
        ("from 16 MiB", [j for j in judged if j.row.size_bytes >= LARGE_bytes]),
        ("below 16 MiB", [j for j in judged if j.row.size_bytes < LARGE_bytes]),
        ("all", list(judged)),
    )
    rows = []
    for label, chosen in parts:
        sizes = sorted(abs(j.error) for j in chosen)
        if sizes:
            bias = statistics.median(j.error for j in chosen)
            tenth = sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))]
            rows.append((label, len(sizes), statistics.median(sizes), tenth, sizes[-1], bias))
    return Table("", columns, tuple(rows))


def _percent(value: float) -> str:
    return f"{value * 100:.1f} %"


def _signed(value: float) -> str:
    return f"{value * 100:+.1f} %"


def rows_table(title: str, judged: Sequence[Judged]) -> Table:
    """Return rows with measured and predicted bus bandwidth, the worst first."""
    columns = (
        Column("hardware", "system", right=False),
        Column("operation", "collective", right=False),
        Column("ranks", "ranks"),
        Column("nodes", "nodes"),
        Column("size_bytes", "size", format_size),
        Column("measured_Bps", "measured GB/s", _giga),
        Column("predicted_Bps", "predicted GB/s", _giga),
        Column("error", "error", _signed),
        Column("choice", "as", right=False),
    )
    worst = sorted(judged, key=lambda j: -abs(j.error))
    return Table(
        title,
        columns,
        tuple(
            (
                j.row.hardware,
                j.row.operation,
                j.row.comm.ranks,
                j.row.comm.nodes,
                j.row.size_bytes,
                j.row.busbw_Bps,
                j.predicted_Bps,
                j.error,
                f"{j.algorithm}/{j.protocol}",
            )
            for j in worst
        ),
    )


def _giga(value: float) -> str:
    return f"{value / 1e9:.4g}"


# What we believe is behind the worst rows: (system, what the row lacks or the model does not have).
GUESSES = (
    (
        "2 VMs A100-PCIE TCP",
        "the row states no rate of its virtual network (an overlay that gave 0.2 Gb/s); 10 Gb/s "
        "was assumed. Nothing but the rate could mend it.",
    ),
    (
        "v100",
        "the second step of a ring over four and eight GPUs of a DGX-1V at 4-8 MiB is slower than "
        "its neighbours on both sides; not explained.",
    ),
    (
        "GH200 quad, Slingshot-11",
        "a Cray machine with its own library below NCCL; no other was measured.",
    ),
    (
        "A100 80GB 1 node",
        "measured through PyTorch, whose own calls add some 50 us from 0.5 to 2 MiB; at 16 MiB the "
        "switch to Simple comes earlier than NCCL's tuner says.",
    ),
    (
        "Azure NDv4 80GB",
        "the same switch from LL128 to Simple at 16 MiB, and a dip at 128 MiB that two sources "
        "show and we do not model.",
    ),
    (
        "GCP A3 Ultra",
        "the plateau is 41 of 50 GB/s a NIC on this cloud's RoCE; other RoCE systems reach 47.5.",
    ),
    (
        "H100 RoCE",
        "the tree over five nodes reaches 150 GB/s, the ring 190; its switches and routing are not "
        "stated.",
    ),
    ("AWS P6-B200", "the plug-in's own tuner switches algorithms between 4 MiB and 4 GiB."),
)


def accuracy_page() -> str:
    """Return docs/accuracy.md: the figures of systems left out, then each table in sample."""
    lines = [
        "# Accuracy",
        "",
        "Written by `make accuracy`; do not edit. Errors are of the bus bandwidth, predicted over "
        "measured, less one.",
        "",
        "## Systems that took no part in the fit",
        "",
        "Each system in turn is left out with all of its rows; all constants start from neutral "
        "values and are fitted on the others, and what only the left-out system determines (its "
        "GPU generation, its cloud's transport) is given the middle of the others "
        "(`tools/fit_collectives.py --held-out`). This is what to expect on a system of one's own, "
        "and what `compare` prints for the cluster's region.",
        "",
        table(nominal()).to_markdown(),
        "The last column: measured rows inside the 5-95 % band of `--uncertainty`.",
        "",
        "## In sample",
        "",
        "With the constants of the catalog (kind `fitted`), fitted once on all rows together.",
    ]
    for name, judged in validate().items():
        lines += ["", f"### {name}", "", *_table_page(name, judged)]
    return "\n".join([*lines, "", "## Training steps", "", _steps()]) + "\n"


def _table_page(name: str, judged: Sequence[Judged]) -> list[str]:
    """Return one measured table: summary, the ten worst rows, guesses, all rows."""
    worst = rows_table("", [j for j in judged if j.row.size_bytes >= LARGE_bytes])
    systems = {j.row.hardware for j in judged}
    return [
        summary(name, judged).to_markdown(),
        "The ten worst rows from 16 MiB up:",
        "",
        Table("", worst.columns, worst.rows[:10]).to_markdown(),
        "Our guess why:",
        "",
        *(f"- **{who}**: {why}" for who, why in GUESSES if who in systems),
        "",
        "<details><summary>All rows, the worst first</summary>",
        "",
        rows_table("", judged).to_markdown(),
        "</details>",
    ]


def _steps() -> str:
    """Tell the known errors of training steps, which are measured elsewhere."""
    facts = nominal().catalog
    rows = []
    for id in (id for id in facts.ids("accuracy") if id.split("-")[0] == "step"):
        median, tenth = (
            facts.fact("accuracy", id, f"{name}_error") for name in ("median", "nine_in_ten")
        )
        kind = id.removeprefix("step-").replace("-", ", ") if id != "step" else "all"
        rows.append((kind, median.value, tenth.value, median.note))
    columns = (
        Column("kind", "steps", right=False),
        Column("median", "median error", _percent),
        Column("nine_in_ten", "nine in ten within", _percent),
        Column("note", "of", right=False),
    )
    return (
        "Each publication is left out of the fit in turn, whole, and predicted from constants that "
        "start neutral. Run by `tools/fit_compute.py FOLDER --held-out`, whose argument is the "
        "folder of the published tables; not by `make accuracy`.\n\n"
        + Table("", columns, tuple(rows)).to_markdown()
    )
