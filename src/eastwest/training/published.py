"""Measured training steps by others, as inputs of the model. One idea: a row says what ran; what it
leaves out is assumed alike for all rows, and nothing is fitted to a row.

Rows with a noted doubt are left out, and rows whose model does not come out with the parameters
that they state, within a tenth: it is another architecture. Assumed where a row is silent: no
recomputation; gradients exchanged in 16 bits and Adam's states shared by frameworks of today, in 32
bits and each its own by those of 2020 to 2022, which also have no flash attention, no sequence
parallelism and no overlap of gradients. The software's generation follows from the framework's
release.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from eastwest.catalog.world import World
from eastwest.collective.communicator import bus_factor
from eastwest.errors import UserError
from eastwest.files import read_text
from eastwest.training.operations import Communicate
from eastwest.training.plan import StepInput
from eastwest.training.step import step_time
from eastwest.workload.compute import machine
from eastwest.workload.layout import Group, Layout, check_layout
from eastwest.workload.model import load_model, parameters
from eastwest.workload.recipe import Recipe
from eastwest.workload.shapes import Model

# The first word found in a row's GPU column, with its network's for variants, decides.
GPUS = (
    ("hbm2e 96gb, 500w", "h100-96-hbm2e"),
    ("gb300", "gb300"),
    ("gb200", "gb200"),
    ("b300", "b300-sxm"),
    ("b200", "b200-sxm"),
    ("h200", "h200-sxm"),
    ("h100", "h100-sxm"),
    ("a100_40", "a100-40-sxm"),
    ("a100", "a100-80-sxm"),
    ("v100", "v100-sxm"),
)
# Models whose shapes the tables do not state, by their whole name in letters and digits.
CATALOG = {
    "deepseekv3": "deepseek-v3",
    "qwen330ba3b": "qwen3-30b-a3b",
    "qwen3235ba22b": "qwen3-235b-a22b",
}
BEFORE_FLASH = ("Megatron-LM", "Megatron-DeepSpeed", "NeMo Megatron")
RELEASE = re.compile(r"\b[vV]?(2\d)\.(\d\d)\b")
UNLIKE = ("LoRA", "BERT", "T5", "BART")  # trained otherwise than we model
PARAMETERS_within = 0.1


@dataclass(frozen=True, slots=True)
class Row:
    """One measured step: where it stands, what ran, on what network, and how long it took."""

    label: str
    publication: str  # who measured: rows of one share hardware, software and habits
    inputs: StepInput
    nic_Bps: float  # of one GPU
    measured_s: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A row and what the model says; ``error`` is predicted over measured, less one."""

    row: Row
    predicted_s: float

    @property
    def error(self) -> float:
        """Relative error."""
        return self.predicted_s / self.row.measured_s - 1.0


def gpt(layers: int, hidden: int, heads: int, sequence: int, vocab: int, ffn: int = 0) -> Model:
    """Return GPT shapes: two-matrix feed-forward of four times hidden, learned positions, tied
    embedding, biases.

    ``layers``, ``heads`` and ``vocab`` are counts, ``hidden`` and ``ffn`` (0: four times hidden)
    widths in elements, ``sequence`` the learned positions.
    """
    return Model(
        f"gpt {layers} x {hidden}",
        "gpt2",
        layers,
        hidden,
        heads,
        heads,
        hidden // heads,
        ffn or 4 * hidden,
        vocab,
        gated=False,
        tied=True,
        positions=sequence,
        qkv_bias=True,
        output_bias=True,
        ffn_bias=True,
        norm_bias=True,
    )


def read_rows(path: str | Path, world: World) -> list[Row]:
    """Return the rows of a table of measured steps that say enough to be predicted. Raises
    UserError.

    ``path`` is a CSV file with vTrain's columns or those of the table of named models (seconds or
    milliseconds a step, Gb/s a GPU or node); GPUs and models are looked up in ``world``. Raises
    UserError if the file cannot be read.
    """
    records = list(csv.DictReader(io.StringIO(read_text(path, "table of measured steps"))))
    parse = _plain_row if records and "internode_gbps_per_node" in records[0] else _named_row
    found = [
        parse(record, world, f"{Path(path).name}:{n}") for n, record in enumerate(records, start=2)
    ]
    return [row for row in found if row is not None]


def _plain_row(record: dict[str, str], world: World, label: str) -> Row | None:
    """Read a row of vTrain's tables: half precision, all recomputed, 1F1B, nothing overlapped."""
    n = {key: int(value) for key, value in record.items() if value.isdigit()}
    layout = Layout(n["tensor"], n["pipeline"], n["data"])
    recipe = Recipe(
        n["global_batch"],
        n["micro_batch"],
        n["sequence"],
        "fp16",
        "full",
        zero=0,
        overlap=False,
        gradient_precision="fp16",
        sequence_parallel=False,
        attention="unfused",
        software="2021",
    )
    model = gpt(n["layers"], n["hidden"], n["heads"], n["sequence"], vocab=51200)
    inputs = StepInput(
        model, layout, recipe, machine("a100-80-sxm", world, "2021"), n["gpus_per_node"]
    )
    nic_Bps = n.get("internode_gbps_per_node", 800) / n["gpus_per_node"] * 1e9 / 8
    return _possible(Row(label, "vTrain", inputs, nic_Bps, float(record["step_ms"]) / 1e3))


def _named_row(record: dict[str, str], world: World, label: str) -> Row | None:
    """Read a row of the table of named models; None if it lacks something or trains otherwise than
    we model."""
    needed = ("step_time_s", "seq_len", "global_batch", "micro_batch", "gpu_count", "tp", "pp")
    about = f"{record['gpu']} {record['network']}".lower()
    gpu = next((id for word, id in GPUS if word in about), "")
    unlike = any(word in record["model"] for word in UNLIKE) or "NVFP4" in record["precision"]
    alone = record["nodes"] == "1"
    known = all(record[key] for key in needed) and (alone or record["nic_gbps_per_gpu"])
    if unlike or record["doubt"] or not gpu or not known:
        return None
    model = _model(record, world)
    if model is None:
        return None
    try:
        inputs = _inputs(record, model, gpu, world)
    except (UserError, ValueError):
        return None
    nic_Bps = float(record["nic_gbps_per_gpu"] or 100) * 1e9 / 8
    name = f"{label} {record['table_id']} {record['model']}"
    return _possible(
        Row(name, _publication(record["source"]), inputs, nic_Bps, float(record["step_time_s"]))
    )


def _publication(source: str) -> str:
    """Return who measured: a repository or a paper, whatever page, release or table of it."""
    word = source.replace(",", " ").split(" ")[0]
    owner, _, name = word.partition("/")
    return "mlperf" if owner == "mlcommons" else f"{owner}/{name}".strip("/") or "unknown"


def _model(record: dict[str, str], world: World) -> Model | None:
    """Return the row's model, or None where its shapes are not told or do not give its
    parameters."""
    name = "".join(c for c in record["model"].lower().split(" (")[0] if c.isalnum())
    if name in CATALOG:
        tried = [load_model(CATALOG[name], world)]
    elif record["layers"] and record["hidden"] and record["heads"]:
        tried = _shapes(record)
    else:
        tried = []
    if not tried:
        return None
    if not record["params_b"] or "for the full model" in record["notes"]:
        return tried[0] if not record["ffn"] or len(tried) == 1 else tried[-1]
    wanted = float(record["params_b"]) * 1e9
    best = min(tried, key=lambda m: abs(parameters(m) - wanted))
    return best if abs(parameters(best) / wanted - 1.0) <= PARAMETERS_within else None


def _shapes(record: dict[str, str]) -> list[Model]:
    """Return what a row's numbers can mean: two matrices a feed-forward, or three."""
    layers, hidden, heads = (int(record[key]) for key in ("layers", "hidden", "heads"))
    vocab, ffn = int(record["vocab"] or 51200), int(record["ffn"] or 4 * hidden)
    kv_heads = int(record["kv_heads"] or heads)
    if hidden % (8 * heads):  # no head is so wide: the row does not tell its width
        return []
    two = gpt(layers, hidden, heads, int(record["seq_len"] or 2048), vocab, ffn)
    two = replace(two, kv_heads=kv_heads)
    bare = replace(two, qkv_bias=False, output_bias=False, ffn_bias=False, norm_bias=False)
    three = replace(bare, gated=True, tied=False, positions=0, family="llama")
    if record["n_experts"]:
        experts, active = int(record["n_experts"]), int(record["topk"] or 2)
        return [replace(three, experts=experts, active_experts=active, expert_ffn=ffn)]
    untied = replace(two, tied=False, positions=0)
    return [two, untied, three] if record["ffn"] else [two]


def software(framework: str, table: str = "") -> str:
    """Return the generation of a framework: by its release (year.month) where it or its table
    states one, else by its name.

    ``framework`` and ``table`` are the row's words for them, such as ``NeMo 25.02`` and
    ``dgxc-v25.02``.
    """
    if framework.startswith(BEFORE_FLASH) and "Core" not in framework:
        return "2021"
    released = [(int(y), int(m)) for y, m in RELEASE.findall(f"{framework} {table}")]
    if any(release >= (26, 4) for release in released):
        return "2026"
    return "2025" if any(release >= (25, 4) for release in released) else "2023"


def _inputs(record: dict[str, str], model: Model, gpu: str, world: World) -> StepInput:
    made = software(record["framework"], record["table_id"])
    old = made == "2021"
    gpus, tp, pp, cp = (int(record[key] or 1) for key in ("gpu_count", "tp", "pp", "cp"))
    if record["dp"] and int(record["dp"]) * tp * pp * cp != gpus:
        raise UserError("the row's layout does not fill its GPUs")
    expert = int(record["ep"] or 1) if model.experts else 1
    told, zero = record["recompute"], record["zero"].lower()
    recipe = Recipe(
        int(record["global_batch"]),
        int(record["micro_batch"]),
        int(record["seq_len"]),
        _precision(record["precision"]),
        _recompute(told, record["framework"]),
        _zero(zero, old),
        overlap=not old and "overlap_grad_sync false" not in zero,
        gradient_precision="fp32" if old else "bf16",
        sequence_parallel=not old or "SP" in told or "sequence parallel" in told,
        attention="unfused" if old else "flash",
        interleave=int(record["vpp"] or 1),
        scaling="mx" if "MXFP8" in record["precision"] else "tensor",
        software=made,
        fused=_fused(record),
    )
    node = 72 if gpu in ("gb200", "gb300") else -(-gpus // int(record["nodes"] or -(-gpus // 8)))
    layout = Layout(tp, pp, gpus // (tp * pp * cp), expert, cp)
    return StepInput(model, layout, recipe, machine(gpu, world, made), node)


def _precision(told: str) -> str:
    if "FP8" in told.upper():
        return "fp8"
    return "fp32" if "TF32" in told else "bf16"


def _recompute(told: str, framework: str) -> str:
    """Return what is recomputed; PyTorch's trainers call selective what leaves out operations."""
    if "selective" in told and framework.startswith("TorchTitan"):
        return "operations"
    return next((word for word in ("full", "selective") if word in told), "none")


def _fused(record: dict[str, str]) -> bool:
    """Return whether norms and activations are one kernel each: not in plain PyTorch, unless it is
    compiled."""
    if record["framework"].startswith("TorchTitan"):
        return "compile" in record["notes"]
    return not record["framework"].startswith("Composer")


def _zero(told: str, old: bool) -> int:
    if "fsdp" in told or "zero-3" in told:
        return 3
    if any(word in told for word in ("dist", "zero-1")):
        return 1
    return 0 if told or old else 1


def _possible(row: Row) -> Row | None:
    r, layout = row.inputs.recipe, row.inputs.layout
    try:
        check_layout(
            row.inputs.model, layout, layout.gpus, r.global_batch, r.micro_batch, r.sequence
        )
    except UserError:
        return None
    return row if layout.pipeline * r.interleave <= row.inputs.model.layers else None


def plain_network(
    node_gpus: int, scaleup_Bps: float, nic_Bps: float, step_s: float, launch_s: float
) -> Communicate:
    """Return a network of two rates: bus bandwidth within a node, and one NIC's payload rate a GPU
    between nodes.

    Collectives are rings (or pairwise exchanges): a launch, a latency each step, and bytes over the
    slower of the two. Enough to judge computing by; the real thing is :mod:`eastwest.collective`.

    ``node_gpus`` is the GPUs of an NVLink domain; ``scaleup_Bps`` the bytes a second of one GPU in
    it, ``nic_Bps`` of one NIC; ``step_s`` and ``launch_s`` the seconds of a collective's step and
    start.
    """

    def communicate(op: str, size_bytes: float, group: Group, kind: str) -> float:
        share_Bps = nic_Bps * node_gpus / group.concurrent_per_node
        if op == "send_receive":
            return launch_s + size_bytes / (share_Bps if group.nodes > 1 else scaleup_Bps)
        if op == "all_to_all" and group.nodes > 1:
            remote = size_bytes * (group.ranks - group.ranks_per_node) / group.ranks
            return launch_s + step_s * group.ranks + max(remote / nic_Bps, size_bytes / scaleup_Bps)
        rate = min(scaleup_Bps, share_Bps) if group.nodes > 1 else scaleup_Bps
        steps = bus_factor(op, group.ranks) * group.ranks
        return launch_s + step_s * steps + size_bytes * bus_factor(op, group.ranks) / rate

    return communicate


def judge(
    rows: Iterable[Row],
    scaleup_share: float,
    nic_share: float,
    step_s: float,
    launch_s: float,
    world: World,
) -> list[Judged]:
    """Predict rows on plain networks that reach the given shares of their line rates.

    ``rows`` come from read_rows; ``scaleup_share`` and ``nic_share`` are shares (0 to 1) of the
    line rates, ``step_s`` and ``launch_s`` seconds; GPUs are read anew from ``world``. One result a
    row, in their order.
    """
    found = []
    for row in rows:
        gpu, made = row.inputs.machine.gpu, row.inputs.recipe.software
        inputs = replace(row.inputs, machine=machine(gpu, world, made))
        scaleup_Bps = world.number("gpu", inputs.machine.gpu, "scaleup_oneway_Bps") * scaleup_share
        network = plain_network(
            inputs.node_gpus, scaleup_Bps, row.nic_Bps * nic_share, step_s, launch_s
        )
        found.append(Judged(row, step_time(inputs, network).step_s))
    return found


def region(inputs: StepInput) -> str:
    """Return the kind of step whose error is stated apart: dense or with experts, by the GPU's
    generation.

    ``inputs`` is the step's; the result is such as ``dense-hopper``.
    """
    kind = "experts" if inputs.model.experts else "dense"
    return f"{kind}-{inputs.machine.generation}"
