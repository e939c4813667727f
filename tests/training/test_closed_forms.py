"""The step on a machine whose layers take a second: every part is a sum that fits on a line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eastwest.catalog.world import shared_nominal
from eastwest.training.operations import KINDS
from eastwest.training.plan import Message, StepInput, expert_copies, plan
from eastwest.training.step import TrainingStep, step_time
from eastwest.workload.compute import machine
from eastwest.workload.layout import Group, Layout
from eastwest.workload.memory import shard
from eastwest.workload.recipe import Recipe
from eastwest.workload.shapes import Model, forward_FLOPs_per_token

NEVER = 1e30
# A layer of GPT launches 11 kernels forward and 22 backward (two and four more if cut by tensor
# parallelism), and nothing else takes time: a second a layer forward, two backward.
SECOND = replace(
    machine("h100-sxm", shared_nominal()),
    gemm_FLOPs=NEVER,
    attention_FLOPs=NEVER,
    memory_Bps=NEVER,
    gemm_pad=0.0,
    gemm_depth=0.0,
    kernel_s=0.0,
    launch_s=1 / 11,
    launch_moe_s=0.0,
    step_s=0.0,
    straggler=0.0,
    overlap_cost=0.0,
    tensor_hidden=0.0,
    expert_hidden=0.0,
    bucket_bytes=1e12,
)
GPT = Model("gpt", "gpt2", 8, 64, 4, 4, 16, 256, 100, False, False, positions=32)
LLAMA = Model("llama", "llama", 8, 64, 8, 2, 8, 192, 100)
MOE = replace(LLAMA, experts=8, active_experts=2, expert_ffn=96)
BATCH, SEQUENCE = 64, 32


def given(layout: Layout, model: Model = GPT, gpu=SECOND, node_gpus: int = 8, **more: object):
    settings = {"global_batch": BATCH, "micro_batch": 1, "sequence": SEQUENCE, "zero": 0} | more
    return StepInput(model, layout, Recipe(**settings), gpu, node_gpus)


def flat(seconds: float, kind: str = ""):
    """A network on which each message of a kind takes the same time, others none."""

    def communicate(op: str, size_bytes: float, group: Group, asked: str) -> float:
        return seconds if not kind or asked == kind else 0.0

    return communicate


def step(inputs: StepInput, seconds: float = 0.0, kind: str = "") -> TrainingStep:
    return step_time(inputs, flat(seconds, kind))


def found(inputs: StepInput, kind: str) -> list[Message]:
    return [m for m in plan(inputs).messages if m.kind == kind]


def near(value: float):
    return pytest.approx(value, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("stages", "data"), [(1, 1), (2, 4), (4, 2), (8, 1)])
@pytest.mark.parametrize(("again", "layer_s"), [("none", 3.0), ("full", 4.0)])
def test_a_step_is_its_microbatches_and_the_bubble(stages, data, again, layer_s):
    """Narayanan et al. 2021: (m + p - 1) microbatches on a stage of layers / p."""
    made = step(given(Layout(1, stages, data), recompute=again))
    count, each = BATCH // data, 8 / stages * layer_s
    assert made.step_s == near((count + stages - 1) * each)
    assert made.part("compute") == near(count * 8 / stages * 3)
    assert made.part("recomputation") == near(count * 8 / stages * (layer_s - 3))
    assert made.part("pipeline bubble") == near((stages - 1) * each)
    assert made.microbatches == count
    assert made.idle_share == near((stages - 1) / (count + stages - 1))


@pytest.mark.parametrize(("stages", "chunks"), [(2, 2), (2, 4), (4, 2)])
def test_chunks_divide_the_bubble(stages: int, chunks: int):
    made = step(given(Layout(1, stages), interleave=chunks))
    assert made.part("pipeline bubble") == near((stages - 1) / chunks * 8 / stages * 3)


def test_stages_of_uneven_layers_wait_for_the_fullest():
    """Eight layers on three stages: 3, 3 and 2."""
    made = step(given(Layout(1, 3)))
    assert made.part("pipeline bubble") == near((BATCH - 1) * 3 * (3 - 8 / 3) + 2 * 8)


@pytest.mark.parametrize(("stages", "send_s"), [(2, 0.5), (4, 0.25)])
def test_each_send_waits_both_ways_and_fills_the_pipeline(stages: int, send_s: float):
    made = step(given(Layout(1, stages)), send_s, "pipeline")
    assert made.part("exposed pipeline") == near(2 * (BATCH + stages - 1) * send_s)


def test_a_chunk_hides_its_send_but_not_more():
    """Two stages of two chunks: two layers a chunk, two seconds forward and four backward."""
    short = step(given(Layout(1, 2), interleave=2), 1.5, "pipeline")
    assert short.part("exposed pipeline") == near(2 * 1.5)
    long = step(given(Layout(1, 2), interleave=2), 3.0, "pipeline")
    assert long.part("exposed pipeline") == near(2 * 3.0 + BATCH * 2 * (3.0 - 2.0))
    full = step(given(Layout(1, 2), interleave=2, recompute="full"), 7.0, "pipeline")
    assert full.part("exposed pipeline") == near(2 * 7.0 + BATCH * 2 * ((7.0 - 2.0) + (7.0 - 6.0)))


def test_tensor_exchanges_wait_but_for_the_share_that_software_hides():
    """Sequences cut: two gathers and two scatters a layer and pass."""
    whole, half = (
        step(given(Layout(2), gpu=replace(SECOND, tensor_hidden=h)), 0.1, "tensor")
        for h in (0.0, 0.5)
    )
    assert whole.part("exposed tensor parallel") == near(BATCH * 8 * 2 * 4 * 0.1)
    assert half.part("exposed tensor parallel") == near(BATCH * 8 * 2 * 4 * 0.05)


def test_expert_exchanges_wait_but_for_the_share_that_software_hides():
    layout = Layout(data=4, expert=4)
    gpu = replace(SECOND, expert_hidden=0.25)
    made = step(given(layout, MOE, gpu), 0.1, "expert")
    assert made.part("exposed expert parallel") == near(BATCH / 4 * 8 * 4 * 0.1 * 0.75)
    assert len(found(given(layout, MOE, recompute="full"), "expert")) == 6


def test_attention_on_blocks_that_are_here_hides_the_exchange_of_others():
    """One of two ranks' blocks is here: half of the scores' time, forward 1 s and backward 1.25."""
    tokens = SEQUENCE / 2
    square = tokens * SEQUENCE * 4 * 32
    gpu = replace(SECOND, attention_FLOPs=square, launch_s=0.0)
    made = step(given(Layout(context=2), gpu=gpu), 2.0, "context")
    repeats = BATCH * 8
    assert made.part("exposed context parallel") == near(repeats * (1.5 + 2 * (2.0 - 1.25 / 2)))
    hidden = step(given(Layout(context=2), gpu=gpu), 0.25, "context")
    assert hidden.part("exposed context parallel") == 0.0


def test_four_ranks_hide_three_quarters_of_the_scores():
    tokens = SEQUENCE / 4
    gpu = replace(SECOND, attention_FLOPs=tokens * SEQUENCE * 4 * 32, launch_s=0.0)
    made = step(given(Layout(context=4), gpu=gpu), 2.0, "context")
    repeats = BATCH * 8
    assert made.part("exposed context parallel") == near(repeats * (1.25 + 2 * (2 - 0.9375)))


def test_the_output_projection_hides_gradients_by_its_share_of_a_stage():
    """Its two backward products take a second each on one of two stages: a second on average."""
    tokens = SEQUENCE
    gpu = replace(SECOND, gemm_FLOPs=2.0 * tokens * 64 * 100, launch_s=0.0)
    wide = replace(GPT, hidden=64, ffn=1, heads=1, kv_heads=1, head_dim=1)
    layout = Layout(1, 2, 4)
    held = shard(wide, layout).total
    inputs = given(layout, wide, replace(gpu, bucket_bytes=held * 4 / 10 * 1.0000001))
    times = plan(inputs).times
    backward = 4 * times.layer.backward_s + 2.0 / 2
    assert times.head.backward_s == near(2.0)
    made = step(inputs, 5.0, "data")
    assert made.part("exposed data parallel") == near(50 - backward * 0.9)


def bucketed(pieces: int, held: float, bytes_each: float):
    return replace(SECOND, bucket_bytes=held * bytes_each / pieces * 1.0000001)


@pytest.mark.parametrize("zero", [0, 1])
@pytest.mark.parametrize(("chunks", "passes"), [(1, 1.0), (2, (2 - 1) * 2 / 2 + 1 / 2)])
def test_gradients_hide_behind_the_last_backward_pass(zero: int, chunks: int, passes: float):
    """Ten buckets on two stages of four layers, 8 s backward; the last bucket is never hidden.
    With v chunks (v - 1) p of the chunks' passes are left, and one."""
    layout = Layout(1, 2, 4)
    held = shard(GPT, layout).total
    gpu = bucketed(10, held, 4)
    inputs = given(layout, gpu=gpu, zero=zero, interleave=chunks)
    gradients = [m for m in found(inputs, "data") if m.phase == "gradients"]
    assert [m.repeats for m in gradients] == [10.0]
    made = step(inputs, 5.0, "data")
    seconds = {e.message.phase: e.exposed_s for e in made.exchanges if e.message.kind == "data"}
    assert seconds["gradients"] == near(50 - passes * 8 * 0.9)
    if zero:  # weights hide behind the forward pass likewise, 4 s
        assert seconds["weights"] == near(50 - passes * 4 * 0.9)
    slowed = step(replace(inputs, machine=replace(gpu, overlap_cost=0.5)), 5.0, "data")
    both = {e.message.phase: e.exposed_s for e in slowed.exchanges if e.message.kind == "data"}
    assert both["gradients"] == near(50 - passes * 8 * 0.9 / 2)


def test_one_bucket_is_not_hidden():
    made = step(given(Layout(data=8)), 5.0, "data")
    assert made.part("exposed data parallel") == near(5.0)


def test_ZeRO_2_hides_each_microbatch_behind_the_next():
    """Eight microbatches of 24 s in ten pieces; the last behind its own backward pass, 16 s."""
    layout = Layout(data=8)
    gpu = bucketed(10, shard(GPT, layout).total, 4)
    made = step(given(layout, gpu=gpu, zero=2), 5.0, "data")
    seconds = {e.message.phase: e.exposed_s for e in made.exchanges if e.message.kind == "data"}
    assert seconds["gradients"] == near(8 * 10 * 5 - 7 * 24 - 16 * 0.9)
    assert seconds["weights"] == near(10 * 5 - 8 * 0.9)


def test_ZeRO_3_gathers_behind_both_passes():
    """One piece a layer: weights behind forward, 8 s; weights and gradients share backward, 16."""
    made = step(given(Layout(data=8), zero=3), 5.0, "data")
    seconds = {e.message.name: e.exposed_s for e in made.exchanges}
    assert seconds["weights forward"] == near(8 * 8 * 5 - 8 * 8)
    assert seconds["weights backward"] == near(8 * 8 * 5 - 8 * 16 / 2)
    assert seconds["gradients"] == near(8 * 8 * 5 - 8 * 16 / 2)


@pytest.mark.parametrize(("zero", "replicas"), [(0, 1), (1, 8), (2, 8), (3, 8)])
def test_Adam_reads_and_writes_its_states(zero: int, replicas: int):
    """Gradient read twice; FP32 weight and two moments read and written; 16-bit weight written."""
    gpu = replace(SECOND, memory_Bps=1.0)
    parameters = shard(GPT, Layout(data=8)).total / replicas
    for gradient, size in (("fp32", 4), ("bf16", 2)):
        made = plan(given(Layout(data=8), gpu=gpu, zero=zero, gradient_precision=gradient))
        assert made.optimizer_s == near(parameters * (2 * size + 6 * 4 + 2))
        assert made.gradient_bytes == near(size * shard(GPT, Layout(data=8)).total)
    full = plan(given(Layout(data=8), gpu=gpu, zero=zero, precision="fp32"))
    assert full.optimizer_s == near(parameters * (8 + 24))


def test_Adam_of_experts_is_shared_by_their_own_replicas():
    layout = Layout(data=8, expert=4)
    held, gpu = shard(MOE, layout), replace(SECOND, memory_Bps=1.0)
    made = plan(given(layout, MOE, gpu, zero=1))
    assert made.optimizer_s == near((held.common / 8 + held.experts / 2) * 34)
    groups = {m.name: m.group.ranks for m in found(given(layout, MOE, zero=1), "data")}
    assert groups == {
        "gradients": 8,
        "weights": 8,
        "expert gradients": 2,
        "expert weights": 2,
    }


def test_keys_and_values_are_gathered_in_each_pass_and_their_gradients_scattered():
    """Two heads of keys and values of 8, whole sequence, 16 bits; no more than halved by tensor."""
    inputs = given(Layout(4, 2, 1, 1, 2), LLAMA, recompute="full")
    messages = found(inputs, "context")
    assert {m.size_bytes for m in messages} == {SEQUENCE * 2 * (8 + 8) / 2 * 2}
    assert [(m.phase, m.op) for m in messages] == [
        ("forward", "all_gather"),
        ("backward", "all_gather"),
        ("backward", "reduce_scatter"),
        ("recompute", "all_gather"),
    ]
    assert {m.repeats for m in messages} == {BATCH * 8 / 2}


def test_without_cut_sequences_a_stage_gathers_the_slices_it_was_sent():
    """Narayanan et al. 2021, section 4.1: a slice a rank over the network, gathered by NVLink."""
    whole = SEQUENCE * 64 * 2
    messages = found(given(Layout(4, 2), sequence_parallel=False), "pipeline")
    assert [(m.op, m.size_bytes, m.group.ranks) for m in messages] == [
        ("send_receive", whole / 4, 2),
        ("all_gather", whole, 4),
    ] * 2
    unsliced = found(given(Layout(4, 2), sequence_parallel=False, sliced_sends=False), "pipeline")
    assert [(m.op, m.size_bytes) for m in unsliced] == [("send_receive", whole)] * 2
    cut = found(given(Layout(4, 2)), "pipeline")
    assert [(m.op, m.size_bytes) for m in cut] == [("send_receive", whole / 4)] * 2
    alone = found(given(Layout(1, 2), sequence_parallel=False), "pipeline")
    assert [(m.op, m.size_bytes) for m in alone] == [("send_receive", whole)] * 2


def test_an_embedding_that_both_ends_share_is_summed_once_a_step():
    tied = replace(GPT, tied=True)
    inputs = given(Layout(2, 4, 2), tied, node_gpus=4)
    shared = found(inputs, "pipeline")[-1]
    assert (shared.op, shared.size_bytes, shared.repeats) == ("all_reduce", 100 * 64 / 2 * 4, 1.0)
    assert (shared.group.ranks, shared.group.nodes) == (2, 2)
    made = step_time(inputs, lambda op, size, group, kind: float(op == "all_reduce"))
    assert made.part("exposed pipeline") == near(1.0)
    assert found(given(Layout(2, 1, 2), tied), "pipeline") == []


@pytest.mark.parametrize(
    ("experts", "nodes", "copies"), [(8, 1, 8.0), (2, 2, 1.5), (1, 4, 1.0), (2, 4, 1.75)]
)
def test_a_token_goes_to_each_node_once(experts: int, nodes: int, copies: float):
    """By counting: two experts of four nodes lie on one node once in four."""
    assert expert_copies(experts, Group(8 * nodes, nodes, 8, 1)) == near(copies)


def test_tokens_to_experts_are_cut_by_tensor_only_with_cut_sequences():
    layout = Layout(2, 1, 4, 4)
    for cut, share in ((True, 2), (False, 1)):
        messages = found(given(layout, MOE, sequence_parallel=cut), "expert")
        assert {m.size_bytes for m in messages} == {SEQUENCE * 2 * 64 * 2 / share}


def test_each_doubling_of_nodes_waits_for_a_slower_slowest():
    gpu = replace(SECOND, straggler=0.01)
    one, eight = (step(given(Layout(data=d), gpu=gpu)) for d in (8, 64))
    assert one.part("waiting for stragglers") == 0.0
    assert eight.part("waiting for stragglers") == near(0.03 * 24)


def test_the_rest_of_the_step_is_once_a_step():
    made = step(given(Layout(data=8), gpu=replace(SECOND, step_s=0.5)))
    assert made.step_s == near(8 * 24 + 0.5)
    assert made.part("rest of the step") == 0.5


def test_tokens_a_second_and_utilisation_are_those_of_the_whole_step():
    inputs = given(Layout(1, 2, 4), gpu=replace(SECOND, peak_FLOPs=1e6))
    made = step(inputs)
    tokens = BATCH * SEQUENCE
    work = 3 * forward_FLOPs_per_token(GPT, SEQUENCE) * tokens
    assert made.tokens_per_s == near(tokens / made.step_s)
    assert made.model_FLOPs == near(work)
    assert made.mfu == near(work / (8 * 1e6 * made.step_s))
    eight = step(given(Layout(1, 2, 4), gpu=inputs.machine, precision="fp8"))
    assert eight.mfu == near(work / (8 * SECOND.peak_fp8_FLOPs * eight.step_s))


def test_idle_time_is_split_by_what_it_waits_for():
    made = step(given(Layout(2, 2, 2, 1, 2), gpu=replace(SECOND, step_s=0.5)), 0.1)
    split = dict(made.idle_parts())
    assert sum(split.values()) == near(made.idle_share)
    assert "compute" not in split
    assert "recomputation" not in split
    for name in ("pipeline bubble", "exposed tensor parallel", "rest of the step"):
        assert split[name] == near(made.part(name) / made.step_s)


def test_a_message_names_its_scope_and_kind():
    inputs = given(Layout(2, 2, 2, 2, 2), MOE, zero=1)
    scopes = {(m.kind, m.scope) for m in plan(inputs).messages}
    assert scopes == {
        ("tensor", "layer"),
        ("context", "layer"),
        ("expert", "layer"),
        ("pipeline", "microbatch"),
        ("data", "step"),
    }
    assert {kind for kind, _ in scopes} == set(KINDS)
    assert {m.scope for m in found(given(Layout(data=2), zero=3), "data")} == {"microbatch"}
