"""The step: closed forms of pipeline, volumes and overlap, and laws that hold for any layout and
network."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.catalog.world import shared_nominal
from eastwest.errors import InternalError, UserError
from eastwest.training.operations import COLLECTIVES, KINDS, PART, PARTS
from eastwest.training.plan import Message, StepInput, plan
from eastwest.training.step import step_time
from eastwest.workload.compute import Machine, machine
from eastwest.workload.layout import Group, Layout
from eastwest.workload.memory import shard
from eastwest.workload.model import load_model, parameters
from eastwest.workload.recipe import Recipe
from eastwest.workload.shapes import training_FLOPs_per_token

H100 = machine("h100-sxm", shared_nominal())
LLAMA = load_model("llama-3-70b", shared_nominal())
MIXTRAL = load_model("mixtral-8x22b", shared_nominal())
GPT = load_model("gpt3-175b", shared_nominal())


@dataclass
class Network:
    """A network of one rate for each place; keeps what it was asked."""

    rate_Bps: float = 40e9
    latency_s: float = 1e-5
    asked: list[tuple[str, float, Group, str]] = field(default_factory=list)

    def __call__(self, op: str, size_bytes: float, group: Group, kind: str) -> float:
        assert op in COLLECTIVES
        assert kind in KINDS
        self.asked.append((op, size_bytes, group, kind))
        return self.latency_s + size_bytes / (self.rate_Bps * (8 if group.nodes == 1 else 1))


def inputs(model=LLAMA, layout=None, recipe=None, gpu: Machine = H100) -> StepInput:
    return StepInput(model, layout or Layout(8, 4, 32), recipe or Recipe(1024, 1, 8192), gpu, 8)


# With it, the output projection of a vocabulary of one costs nothing, so that pipeline stages are
# equal.
IDEAL = replace(H100, gemm_pad=0.0, gemm_depth=0.0, kernel_s=0.0, memory_Bps=1e18)


def without_ends(model):
    """A model whose output projection is a vector."""
    return replace(model, vocab=1)


def messages(given: StepInput, kind: str) -> list[Message]:
    """The messages of one kind in a step."""
    return [m for m in plan(given).messages if m.kind == kind]


def silent(op: str, size_bytes: float, group: Group, kind: str) -> float:
    return 0.0


@pytest.mark.parametrize(("stages", "batch"), [(2, 64), (4, 128), (8, 1024), (16, 512)])
@pytest.mark.parametrize("chunks", [1, 5])
def test_the_bubble_is_stages_less_one_over_microbatches_and_chunks(
    stages: int, batch: int, chunks: int
):
    """Narayanan et al. 2021, sections 2.2.1 and 2.2.2: (p - 1) / m, and 1 / v of it with
    interleaving."""
    recipe = Recipe(batch, 1, 8192, interleave=chunks)
    step = step_time(inputs(without_ends(LLAMA), Layout(8, stages, 4), recipe, IDEAL), silent)
    bubble = step.part("pipeline bubble") / step.part("compute")
    assert bubble == pytest.approx((stages - 1) / (batch / 4) / chunks, rel=2e-3)


def test_the_bubble_stretches_what_the_stages_wait_for_too():
    step = step_time(inputs(without_ends(LLAMA), gpu=IDEAL), Network())
    work = step.part("compute") + step.part("exposed tensor parallel")
    assert step.part("pipeline bubble") == pytest.approx(work * 3 / 32, rel=2e-3)


def test_an_output_projection_makes_the_last_stage_the_slowest():
    even, real = (
        step_time(inputs(m, Layout(8, 4, 32)), silent) for m in (without_ends(LLAMA), LLAMA)
    )
    assert real.part("pipeline bubble") > 1.2 * even.part("pipeline bubble")


def test_layers_that_do_not_divide_wait_for_the_fullest_stage():
    model = without_ends(load_model("llama-3.1-405b", shared_nominal()))
    step = step_time(inputs(model, Layout(8, 16, 8), Recipe(1024, 1, 8192), IDEAL), silent)
    layer = step.part("compute") / 128 / (126 / 16)
    assert step.part("pipeline bubble") == pytest.approx(
        127 * layer * (8 - 126 / 16) + 15 * layer * 126 / 16, rel=2e-3
    )


@pytest.mark.parametrize(
    "model", [LLAMA, MIXTRAL, GPT, load_model("llama-3-8b", shared_nominal())], ids=str
)
def test_model_FLOPs_are_six_a_parameter_and_token_within_attention(model):
    step = step_time(inputs(model, Layout(8, 1, 128)), silent)
    tokens = 1024 * 8192
    assert step.model_FLOPs == training_FLOPs_per_token(model, 8192) * tokens
    if not model.experts:
        attention = 3 * model.layers * 2 * 8192 * model.hidden * tokens
        assert step.model_FLOPs - attention == pytest.approx(
            6 * parameters(model) * tokens, rel=0.07
        )


@pytest.mark.parametrize(
    ("zero", "factors"),
    [
        (0, {("all_reduce", "data"): 4}),
        (1, {("reduce_scatter", "data"): 4, ("all_gather", "data"): 2}),
        (2, {("reduce_scatter", "data"): 4 * 8, ("all_gather", "data"): 2}),
        (3, {("reduce_scatter", "data"): 4 * 8, ("all_gather", "data"): 2 * 2 * 8}),
    ],
)
def test_data_parallel_volumes_are_those_of_zero(zero: int, factors: dict[tuple[str, str], int]):
    """Bytes a parameter: FP32 gradients, 16-bit weights; ZeRO 2 and 3 exchange with each of the
    eight microbatches."""
    given = inputs(LLAMA, Layout(8, 1, 128), Recipe(1024, 1, 8192, zero=zero))
    held, sums = shard(LLAMA, given.layout).total, dict.fromkeys(factors, 0.0)
    for m in messages(given, "data"):
        sums[m.op, m.kind] += m.size_bytes * m.repeats
    assert sums == pytest.approx({key: held * factor for key, factor in factors.items()})


@pytest.mark.parametrize(
    ("cut", "recompute", "passes"), [(False, "none", 2), (False, "full", 3), (True, "none", 2)]
)
def test_tensor_parallelism_moves_two_all_reduces_a_layer_and_pass(
    cut: bool, recompute: str, passes: int
):
    """Shoeybi et al. 2019; Korthikanti et al. 2022: all-gather and reduce-scatter of the same size
    instead."""
    recipe = Recipe(1024, 1, 8192, recompute=recompute, sequence_parallel=cut)
    found = messages(inputs(recipe=recipe), "tensor")
    each = 8192 * LLAMA.hidden * 2
    assert {o.size_bytes for o in found} == {each}
    assert {o.op for o in found} == ({"all_gather", "reduce_scatter"} if cut else {"all_reduce"})
    assert sum(o.repeats for o in found) == 32 * 20 * passes * 2 * (2 if cut else 1)


@pytest.mark.parametrize(("tensor", "copies"), [(1, 2.0), (2, 2 - 1 / 2)])
def test_a_token_travels_once_for_each_expert_or_other_node(tensor: int, copies: float):
    """Two experts of eight: within a server two copies; on two nodes both are on the same one half
    of the time. Cut by tensor."""
    layout = Layout(tensor, 4, 128 // tensor, expert=8)
    found = messages(inputs(MIXTRAL, layout), "expert")
    nodes = {o.group.nodes for o in found}
    assert nodes == {tensor}
    expected = copies if tensor == 2 else 2.0
    assert {o.size_bytes for o in found} == {8192 * expected * MIXTRAL.hidden * 2 / tensor}
    # Dispatch and combine, forward and backward.
    assert sum(o.repeats for o in found) == 4 * (1024 * tensor / 128) * 56 / 4


def test_a_send_carries_one_activation_cut_by_tensor():
    found = messages(inputs(), "pipeline")
    assert {o.op for o in found} == {"send_receive"}
    assert {(o.size_bytes, o.repeats) for o in found} == {(8192 * LLAMA.hidden * 2 / 8, 32.0)}
    assert len(found) == 2


def test_a_step_of_one_gpu_asks_the_network_nothing():
    network = Network()
    step = step_time(
        inputs(load_model("gpt2", shared_nominal()), Layout(), Recipe(8, 8, 1024)), network
    )
    assert network.asked == []
    assert [name for name, seconds in step.parts if seconds] == [
        "compute",
        "optimizer",
        "rest of the step",
    ]


def test_gradients_hide_behind_the_backward_pass_but_for_the_last_bucket():
    gpu = replace(H100, overlap_cost=0.0)
    given = inputs(LLAMA, Layout(8, 1, 128), Recipe(1024, 1, 8192, zero=0), gpu)
    step = step_time(given, Network(rate_Bps=1e12))
    bucket = next(e for e in step.exchanges if e.message.kind == "data")
    assert step.part("exposed data parallel") == pytest.approx(bucket.seconds)
    bare = step_time(
        replace(given, recipe=replace(given.recipe, overlap=False)), Network(rate_Bps=1e12)
    )
    assert bare.part("exposed data parallel") == pytest.approx(
        bucket.seconds * bucket.message.repeats
    )


def test_what_the_backward_pass_cannot_hide_is_exposed_whole():
    gpu = replace(H100, overlap_cost=0.0)
    given = inputs(LLAMA, Layout(8, 1, 128), Recipe(1024, 1, 8192, zero=0), gpu)
    slow, slower = (
        step_time(given, Network(rate_Bps=r)).part("exposed data parallel") for r in (1e9, 0.5e9)
    )
    assert slower - slow == pytest.approx(4 * shard(LLAMA, given.layout).total / 1e9, rel=1e-9)


def test_interleaving_hides_sends_and_shortens_the_bubble():
    plain, chunked = (
        step_time(inputs(LLAMA, recipe=Recipe(1024, 1, 8192, interleave=v)), Network())
        for v in (1, 5)
    )
    assert chunked.part("exposed pipeline") < plain.part("exposed pipeline") / 5
    assert chunked.part("pipeline bubble") < plain.part("pipeline bubble")


def test_an_answer_that_is_no_time_is_our_fault():
    for wrong in (math.nan, math.inf, -1.0):
        with pytest.raises(InternalError, match="takes"):
            step_time(inputs(), lambda op, size_bytes, group, kind, wrong=wrong: wrong)


def test_a_batch_that_does_not_divide_is_refused():
    with pytest.raises(UserError, match="global_batch 1000 is not a multiple of data 32"):
        step_time(inputs(recipe=Recipe(1000, 1, 8192)), silent)


def test_more_chunks_than_layers_are_refused():
    with pytest.raises(UserError, match="pipeline 4 x interleave 21 is more than 80 layers"):
        step_time(inputs(recipe=Recipe(1024, 1, 8192, interleave=21)), silent)


PLANS = st.builds(
    lambda model, t, p, d, e, c, per, micro, sequence, recompute, zero, overlap, v: StepInput(
        model,
        Layout(t, p, d * (e if model.experts else 1), e if model.experts else 1, c),
        Recipe(
            d * (e if model.experts else 1) * micro * per,
            micro,
            sequence,
            recompute=recompute,
            zero=zero,
            overlap=overlap,
            interleave=v if p > 1 else 1,
        ),
        H100,
        8,
    ),
    st.sampled_from([LLAMA, MIXTRAL, GPT]),
    st.sampled_from([1, 2, 8]),
    st.integers(1, 8),
    st.sampled_from([1, 2, 23, 64]),
    st.sampled_from([1, 2, 8]),
    st.sampled_from([1, 2]),
    st.integers(1, 16),
    st.integers(1, 4),
    st.sampled_from([2048, 8192]),
    st.sampled_from(["none", "selective", "full"]),
    st.integers(0, 3),
    st.booleans(),
    st.integers(1, 4),
)


@settings(deadline=None)
@given(PLANS, st.floats(1e8, 1e12), st.floats(0, 1e-3))
def test_parts_and_exchanges_add_up_and_all_is_finite(
    given_: StepInput, rate_Bps: float, latency_s: float
):
    step = step_time(given_, Network(rate_Bps, latency_s))
    assert tuple(name for name, _ in step.parts) == PARTS
    assert sum(seconds for _, seconds in step.parts) == step.step_s
    assert all(0.0 <= seconds < math.inf for _, seconds in step.parts)
    assert 0.0 < step.mfu < 1.0
    assert 0.0 <= step.idle_share < 1.0
    assert math.isfinite(step.tokens_per_s)
    for part in PARTS:
        own = [e.exposed_s for e in step.exchanges if PART[e.message.kind] == part]
        if part in PART.values():
            assert sum(own) == pytest.approx(step.part(part), rel=1e-9, abs=1e-12)


@settings(deadline=None)
@given(PLANS, st.floats(1e8, 1e12), st.floats(1.0, 100.0))
def test_a_slower_network_never_shortens_a_step(given_: StepInput, rate_Bps: float, factor: float):
    fast, slow = (step_time(given_, Network(r)).step_s for r in (rate_Bps, rate_Bps / factor))
    assert slow >= fast * (1 - 1e-12)


@settings(deadline=None)
@given(PLANS, st.integers(2, 5))
def test_a_larger_batch_never_shortens_a_step(given_: StepInput, factor: int):
    larger = replace(
        given_, recipe=replace(given_.recipe, global_batch=given_.recipe.global_batch * factor)
    )
    small, large = step_time(given_, Network()), step_time(larger, Network())
    assert large.step_s > small.step_s
    assert large.microbatches == factor * small.microbatches


@settings(deadline=None)
@given(PLANS)
def test_what_the_network_is_asked_does_not_depend_on_how_fast_the_gpu_is(given_: StepInput):
    one, other = Network(), Network()
    step_time(given_, one)
    step_time(replace(given_, machine=machine("b200-sxm", shared_nominal())), other)
    assert one.asked == other.asked


def test_an_hour_of_a_step_is_no_trouble():
    step = step_time(inputs(), Network(rate_Bps=1e6))
    assert step.step_s > 3600
    assert math.isfinite(step.step_s)
