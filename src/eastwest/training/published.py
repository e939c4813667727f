"""Measured training steps by others, as inputs of the model. One idea: a row says what ran; what it
leaves out is assumed alike for all rows, and nothing is fitted to a row.

Rows with a noted doubt are left out. Assumed where a row is silent: no recomputation; gradients
exchanged in 16 bits and Adam's states shared by frameworks of today, in 32 bits and each its own by
those of 2020 to 2022, which also have no flash attention, no sequence parallelism and no overlap of
gradients.
"""

from __future__ import annotations

import csv
import io
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

# The first word found in a row's GPU column decides.
GPUS = (
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
CATALOG = (
    ("deepseek", "deepseek-v3"),
    ("qwen3_30b", "qwen3-30b-a3b"),
    ("qwen3_235b", "qwen3-235b-a22b"),
)
BEFORE_FLASH = ("Megatron-LM", "Megatron-DeepSpeed", "NeMo Megatron")


@dataclass(frozen=True, slots=True)
class Row:
    """One measured step: where it stands, what ran, on what network, and how long it took."""

    label: str
    table: str
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
    embedding, biases."""
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
    UserError."""
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
    )
    model = gpt(n["layers"], n["hidden"], n["heads"], n["sequence"], vocab=51200)
    inputs = StepInput(model, layout, recipe, machine("a100-80-sxm", world), n["gpus_per_node"])
    nic_Bps = n.get("internode_gbps_per_node", 800) / n["gpus_per_node"] * 1e9 / 8
    return _possible(
        Row(label, label.split(":")[0], inputs, nic_Bps, float(record["step_ms"]) / 1e3)
    )


def _named_row(record: dict[str, str], world: World, label: str) -> Row | None:
    """Read a row of the table of named models; None if it lacks something or trains otherwise than
    we model."""
    needed = ("step_time_s", "seq_len", "global_batch", "micro_batch", "gpu_count", "tp", "pp")
    gpu = next((id for word, id in GPUS if word in record["gpu"].lower()), "")
    unlike = (
        any(word in record["model"] for word in ("LoRA", "BERT", "T5", "BART"))
        or "NVFP4" in record["precision"]
    )
    model = _model(record, world)
    if (
        unlike
        or record["doubt"]
        or not gpu
        or model is None
        or not all(record[key] for key in needed)
        or not record["nic_gbps_per_gpu"]
    ):
        return None
    try:
        inputs = _inputs(record, model, gpu, world)
    except (UserError, ValueError):
        return None
    nic_Bps = float(record["nic_gbps_per_gpu"]) * 1e9 / 8
    return _possible(
        Row(
            f"{label} {record['table_id']} {record['model']}",
            label.split(":")[0],
            inputs,
            nic_Bps,
            float(record["step_time_s"]),
        )
    )


def _model(record: dict[str, str], world: World) -> Model | None:
    for word, id in CATALOG:
        if word in record["model"].lower():
            return load_model(id, world)
    if record["n_experts"] or not (record["layers"] and record["hidden"] and record["heads"]):
        return None
    layers, hidden, heads = (int(record[key]) for key in ("layers", "hidden", "heads"))
    vocab, ffn = int(record["vocab"] or 51200), int(record["ffn"] or 4 * hidden)
    two = gpt(layers, hidden, heads, int(record["seq_len"] or 2048), vocab, ffn)
    if not record["ffn"] or not record["params_b"]:
        return two
    three = replace(
        two,
        gated=True,
        tied=False,
        positions=0,
        kv_heads=int(record["kv_heads"] or heads),
        family="llama",
    )
    wanted = float(record["params_b"]) * 1e9
    return min((two, three), key=lambda m: abs(parameters(m) - wanted))


def _inputs(record: dict[str, str], model: Model, gpu: str, world: World) -> StepInput:
    old = record["framework"].startswith(BEFORE_FLASH)
    gpus, tp, pp, cp = (int(record[key] or 1) for key in ("gpu_count", "tp", "pp", "cp"))
    if record["dp"] and int(record["dp"]) * tp * pp * cp != gpus:
        raise UserError("the row's layout does not fill its GPUs")
    layout = Layout(
        tp, pp, gpus // (tp * pp * cp), int(record["ep"] or 1) if model.experts else 1, cp
    )
    zero = record["zero"].lower()
    stage = (
        3
        if "fsdp" in zero or "zero-3" in zero
        else 1
        if any(w in zero for w in ("dist", "zero-1"))
        else 0
    )
    stage = 1 if not zero and not old else stage
    told = record["recompute"]
    recipe = Recipe(
        int(record["global_batch"]),
        int(record["micro_batch"]),
        int(record["seq_len"]),
        "fp8"
        if "FP8" in record["precision"]
        else "fp32"
        if "TF32" in record["precision"]
        else "bf16",
        next((word for word in ("full", "selective") if word in told), "none"),
        stage,
        overlap=not old and "overlap_grad_sync False" not in zero,
        gradient_precision="fp32" if old else "bf16",
        sequence_parallel=not old or "SP" in told or "sequence parallel" in told,
        attention="unfused" if old else "flash",
        interleave=int(record["vpp"] or 1),
    )
    node = 72 if gpu in ("gb200", "gb300") else -(-gpus // int(record["nodes"] or -(-gpus // 8)))
    return StepInput(model, layout, recipe, machine(gpu, world), node)


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
    """Predict rows on plain networks that reach the given shares of their line rates."""
    found = []
    for row in rows:
        inputs = replace(row.inputs, machine=machine(row.inputs.machine.gpu, world))
        scaleup_Bps = world.number("gpu", inputs.machine.gpu, "scaleup_oneway_Bps") * scaleup_share
        network = plain_network(
            inputs.node_gpus, scaleup_Bps, row.nic_Bps * nic_share, step_s, launch_s
        )
        found.append(Judged(row, step_time(inputs, network).step_s))
    return found
