"""Rows of measured steps: each cell arrives where it belongs, and what is told of something else is
refused."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from eastwest.catalog.world import shared_nominal
from eastwest.errors import UserError
from eastwest.training.published import (
    Judged,
    Row,
    gpt,
    judge,
    plain_network,
    read_rows,
    region,
    software,
)
from eastwest.training.step import step_time
from eastwest.workload.compute import machine
from eastwest.workload.layout import Group, Layout
from eastwest.workload.model import load_model, parameters

WORLD = shared_nominal()
LLAMA = {
    "table_id": "t1",
    "source": "owner/repository docs/page.md @1",
    "model": "Llama3.1-8B",
    "params_b": "8.03",
    "layers": "32",
    "hidden": "4096",
    "heads": "32",
    "kv_heads": "8",
    "ffn": "14336",
    "seq_len": "8192",
    "vocab": "128256",
    "global_batch": "128",
    "micro_batch": "2",
    "gpu": "H100",
    "gpu_count": "16",
    "nodes": "2",
    "tp": "2",
    "pp": "2",
    "dp": "2",
    "cp": "2",
    "vpp": "4",
    "precision": "BF16",
    "framework": "NeMo",
    "network": "400G",
    "nic_gbps_per_gpu": "400",
    "step_time_s": "2.5",
}
COLUMNS = (*LLAMA, "n_experts", "topk", "ep", "zero", "recompute", "notes", "doubt")
PLAIN = {
    "params_b": "3.6",
    "gpus": "64",
    "gpu": "A100",
    "gpus_per_node": "8",
    "internode_gbps_per_node": "800",
    "global_batch": "512",
    "micro_batch": "4",
    "hidden": "3072",
    "heads": "32",
    "layers": "30",
    "sequence": "2048",
    "tensor": "4",
    "data": "8",
    "pipeline": "2",
    "step_ms": "4550",
}


def table(folder: Path, columns: tuple[str, ...], *records: dict[str, str]) -> list[Row]:
    path = folder / "steps.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(records)
    return read_rows(path, WORLD)


@pytest.fixture
def read(tmp_path: Path):
    def one(**more: str) -> Row | None:
        found = table(tmp_path, COLUMNS, LLAMA | more)
        return found[0] if found else None

    return one


def test_every_cell_of_a_row_arrives(read):
    row = read()
    recipe, model = row.inputs.recipe, row.inputs.model
    assert row.label == "steps.csv:2 t1 Llama3.1-8B"
    assert (row.publication, row.measured_s, row.nic_Bps) == ("owner/repository", 2.5, 50e9)
    assert row.inputs.layout == Layout(2, 2, 2, 1, 2)
    assert (row.inputs.node_gpus, row.inputs.machine.gpu) == (8, "h100-sxm")
    assert (recipe.global_batch, recipe.micro_batch, recipe.sequence) == (128, 2, 8192)
    assert (recipe.precision, recipe.recompute, recipe.zero) == ("bf16", "none", 1)
    assert (recipe.interleave, recipe.software, recipe.attention) == (4, "2023", "flash")
    assert (recipe.overlap, recipe.sequence_parallel, recipe.fused) == (True, True, True)
    assert (recipe.gradient_precision, recipe.scaling) == ("bf16", "tensor")
    assert parameters(model) == parameters(load_model("llama-3-8b", WORLD))
    assert (model.gated, model.kv_heads, model.ffn, model.positions) == (True, 8, 14336, 0)


@pytest.mark.parametrize(
    "missing",
    ["step_time_s", "seq_len", "global_batch", "micro_batch", "gpu_count", "tp", "pp", "layers"],
)
def test_a_row_without_what_a_step_needs_is_left_out(read, missing: str):
    assert read(**{missing: ""}) is None


@pytest.mark.parametrize(
    "unlike",
    [
        {"model": "Llama2-70B LoRA"},
        {"model": "BERT-Large"},
        {"precision": "NVFP4"},
        {"doubt": "unsure"},
        {"gpu": "TPU v4"},
        {"nic_gbps_per_gpu": ""},
        {"dp": "4"},
        {"global_batch": "many"},
        {"heads": "30"},
        {"params_b": "9.5"},
        {"params_b": "7.0"},
        {"vpp": "32"},
    ],
    ids=str,
)
def test_a_row_of_something_else_is_left_out(read, unlike: dict[str, str]):
    assert read(**unlike) is None


def test_one_server_needs_no_network(read):
    row = read(nodes="1", gpu_count="8", dp="1", nic_gbps_per_gpu="")
    assert row.inputs.node_gpus == 8


def test_parameters_may_differ_by_a_tenth(read):
    assert read(params_b="8.7") is not None
    assert read(params_b="7.4") is not None


def test_a_cut_model_may_state_the_whole_ones_parameters(read):
    note = "weak scaling by layers; params_b is for the full model"
    row = read(layers="8", notes=note)
    assert (row.inputs.model.layers, row.inputs.model.gated) == (8, True)
    assert read(layers="8") is None


def test_models_are_known_by_their_whole_name(read):
    same = {"layers": "", "hidden": "", "heads": "", "ffn": "", "params_b": "671", "tp": "2"}
    found = read(**same, model="DeepSeek-V3", vpp="")
    assert found.inputs.model == load_model("deepseek-v3", WORLD)
    assert read(**same, model="DeepSeek-V3.5-Next", vpp="") is None
    assert read(**same, model="Nemotron_3_Nano", vpp="") is None


def test_two_matrices_or_three_follow_from_the_parameters(read):
    shapes = {"layers": "96", "hidden": "18432", "heads": "96", "kv_heads": "8", "ffn": "73728"}
    row = read(**shapes, vocab="256000", params_b="341", tp="8", cp="1", dp="1", vpp="12")
    model = row.inputs.model
    assert (model.gated, model.kv_heads) == (False, 8)
    assert parameters(model) == pytest.approx(341e9, rel=0.01)


def test_experts_are_read(read):
    grok = {"model": "Grok1-314B", "params_b": "314", "layers": "64", "hidden": "6144"}
    grok |= {"heads": "48", "ffn": "32768", "n_experts": "8", "topk": "2", "vocab": "131072"}
    row = read(**grok, ep="2")
    model = row.inputs.model
    assert (model.experts, model.active_experts, model.expert_ffn) == (8, 2, 32768)
    assert (row.inputs.layout.expert, region(row.inputs)) == (2, "experts-hopper")
    assert read(ep="2").inputs.layout.expert == 1


@pytest.mark.parametrize(
    ("gpu", "network", "id", "node"),
    [
        ("NVIDIA Blackwell GPU (GB200)", "", "gb200", 72),
        ("GB300", "", "gb300", 72),
        ("B300", "", "b300-sxm", 8),
        ("B200", "", "b200-sxm", 8),
        ("h200_141gb", "", "h200-sxm", 8),
        ("H100", "8x H100 (HBM2e 96GB, 500W)", "h100-96-hbm2e", 8),
        ("a100_40gb", "", "a100-40-sxm", 8),
        ("A100-80GB", "", "a100-80-sxm", 8),
        ("V100-32GB", "", "v100-sxm", 8),
    ],
)
def test_each_GPU_is_its_own(read, gpu: str, network: str, id: str, node: int):
    row = read(gpu=gpu, network=network)
    assert (row.inputs.machine.gpu, row.inputs.node_gpus) == (id, node)


@pytest.mark.parametrize(
    ("told", "precision", "scaling"),
    [
        ("FP8", "fp8", "tensor"),
        ("MXFP8", "fp8", "mx"),
        ("amp_fp8", "fp8", "tensor"),
        ("TF32", "fp32", "tensor"),
        ("FP16", "bf16", "tensor"),
    ],
)
def test_precisions_are_read(read, told: str, precision: str, scaling: str):
    recipe = read(precision=told).inputs.recipe
    assert (recipe.precision, recipe.scaling) == (precision, scaling)


@pytest.mark.parametrize(
    ("told", "framework", "recompute"),
    [
        ("full", "NeMo", "full"),
        ("selective+SP", "NeMo", "selective"),
        ("selective", "TorchTitan", "operations"),
        ("full", "TorchTitan", "full"),
        ("", "NeMo", "none"),
        ("none", "TorchTitan", "none"),
    ],
)
def test_recomputation_is_read(read, told: str, framework: str, recompute: str):
    assert read(recompute=told, framework=framework).inputs.recipe.recompute == recompute


@pytest.mark.parametrize(
    ("told", "framework", "zero"),
    [
        ("ZeRO-3/FSDP FULL_SHARD", "NeMo", 3),
        ("FSDP2", "NeMo", 3),
        ("ZeRO-3", "NeMo", 3),
        ("ZeRO-1", "NeMo", 1),
        ("DDP/dist-opt", "NeMo", 1),
        ("DDP", "NeMo", 0),
        ("", "NeMo", 1),
        ("", "Megatron-LM", 0),
        ("ZeRO-1", "Megatron-DeepSpeed", 1),
    ],
)
def test_what_replicas_share_is_read(read, told: str, framework: str, zero: int):
    assert read(zero=told, framework=framework).inputs.recipe.zero == zero


def test_frameworks_before_flash_attention_train_otherwise(read):
    recipe = read(framework="Megatron-LM").inputs.recipe
    assert (recipe.software, recipe.attention, recipe.overlap) == ("2021", "unfused", False)
    assert (recipe.gradient_precision, recipe.sequence_parallel) == ("fp32", False)
    for told in ("selective+SP", "selective (attention) + sequence parallel"):
        cut = read(framework="Megatron-LM", recompute=told).inputs.recipe
        assert cut.sequence_parallel


def test_gradients_may_be_said_not_to_overlap(read):
    told = "distributed Adam (ZeRO-1), overlap_grad_sync False"
    assert not read(zero=told).inputs.recipe.overlap


@pytest.mark.parametrize(
    ("framework", "notes", "fused"),
    [
        ("TorchTitan", "FSDP", False),
        ("TorchTitan", "FSDP + torch.compile", True),
        ("Composer/FSDP", "", False),
        ("NeMo", "", True),
    ],
)
def test_plain_PyTorch_fuses_nothing(read, framework: str, notes: str, fused: bool):
    assert read(framework=framework, notes=notes).inputs.recipe.fused == fused


@pytest.mark.parametrize(
    ("framework", "table_id", "generation"),
    [
        ("Megatron-LM 2020", "", "2021"),
        ("Megatron-DeepSpeed 3D", "", "2021"),
        ("NeMo Megatron", "", "2021"),
        ("Megatron-Core r0.8", "", "2023"),
        ("NeMo docs 24.07-era", "", "2023"),
        ("NeMo/Megatron", "dgxc-v25.02-llama3", "2023"),
        ("NeMo/Megatron", "dgxc-v25.05.01-grok1", "2025"),
        ("NVIDIA NeMo Framework Release 25.04", "", "2025"),
        ("NeMo/Megatron-Bridge 26.02.01", "", "2025"),
        ("NeMo/Megatron-Bridge 26.04", "", "2026"),
        ("TorchTitan", "torchtitan-t1", "2023"),
    ],
)
def test_software_is_known_by_its_release(framework: str, table_id: str, generation: str):
    assert software(framework, table_id) == generation


@pytest.mark.parametrize(
    ("source", "publication"),
    [
        ("NVIDIA/NeMo docs/x.md @1", "NVIDIA/NeMo"),
        ("mlcommons/training_results_v5.1 Dell/results/x", "mlperf"),
        ("Korthikanti et al. 2205.05198 Table 5", "Korthikanti"),
        ("", "unknown"),
    ],
)
def test_a_publication_is_who_measured(read, source: str, publication: str):
    assert read(source=source).publication == publication


def test_plain_tables_are_half_precision_and_all_recomputed(tmp_path: Path):
    (row,) = table(tmp_path, tuple(PLAIN), PLAIN)
    recipe = row.inputs.recipe
    assert (row.label, row.publication) == ("steps.csv:2", "vTrain")
    assert (row.measured_s, row.nic_Bps, row.inputs.node_gpus) == (4.55, 12.5e9, 8)
    assert row.inputs.layout == Layout(4, 2, 8)
    assert (recipe.global_batch, recipe.micro_batch, recipe.sequence) == (512, 4, 2048)
    assert (recipe.precision, recipe.gradient_precision, recipe.zero) == ("fp16", "fp16", 0)
    assert (recipe.recompute, recipe.attention, recipe.software) == ("full", "unfused", "2021")
    assert (recipe.overlap, recipe.sequence_parallel) == (False, False)
    assert row.inputs.model == gpt(30, 3072, 32, 2048, 51200)
    assert row.inputs.machine == machine("a100-80-sxm", WORLD, "2021")
    assert (
        table(tmp_path, tuple(PLAIN), PLAIN | {"pipeline": "64", "tensor": "1", "data": "1"}) == []
    )


def test_GPT_shapes_have_the_published_parameters():
    """Radford et al. 2019: GPT-2 XL, 1,557,611,200."""
    assert parameters(gpt(48, 1600, 25, 1024, 50257)) == 1_557_611_200
    model = gpt(2, 64, 4, 32, 100, 128)
    assert (model.name, model.ffn, model.head_dim) == ("gpt 2 x 64", 128, 16)


def test_a_table_that_is_not_there_is_told():
    with pytest.raises(UserError, match="table of measured steps"):
        read_rows("/nowhere.csv", WORLD)


def network():
    return plain_network(8, 100.0, 10.0, 0.5, 2.0)


@pytest.mark.parametrize(
    ("op", "group", "seconds"),
    [
        # two latencies a rank less two, all-reduce twice the volume; a launch
        ("all_reduce", Group(4, 1, 4, 2), 2 + 0.5 * 6 + 1000 * 1.5 / 100),
        ("all_gather", Group(4, 1, 4, 2), 2 + 0.5 * 3 + 1000 * 0.75 / 100),
        # four groups of a node share eight NICs
        ("all_gather", Group(4, 2, 2, 4), 2 + 0.5 * 3 + 1000 * 0.75 / 20),
        ("reduce_scatter", Group(4, 2, 2, 1), 2 + 0.5 * 3 + 1000 * 0.75 / 80),
        ("all_to_all", Group(4, 2, 2, 4), 2 + 0.5 * 4 + 500 / 10),
        ("all_to_all", Group(4, 1, 4, 2), 2 + 0.5 * 3 + 1000 * 0.75 / 100),
        ("send_receive", Group(4, 1, 4, 2), 2 + 1000 / 100),
        ("send_receive", Group(4, 4, 1, 8), 2 + 1000 / 10),
    ],
)
def test_a_plain_network_is_a_launch_latencies_and_bytes(op: str, group: Group, seconds: float):
    assert network()(op, 1000.0, group, "data") == pytest.approx(seconds)


def test_rows_are_judged_on_the_shares_of_their_own_rates(read):
    row = read()
    (found,) = judge([row], 0.5, 0.8, 2e-6, 1e-5, WORLD)
    there = plain_network(8, 450e9 * 0.5, 50e9 * 0.8, 2e-6, 1e-5)
    expected = step_time(row.inputs, there).step_s
    assert found.predicted_s == pytest.approx(expected)
    assert found.error == pytest.approx(expected / 2.5 - 1)
    assert Judged(replace(row, measured_s=2.0), 3.0).error == 0.5
