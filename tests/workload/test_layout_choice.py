"""Which layouts are tried, and which is taken: counted by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.errors import UserError
from eastwest.workload.layout import (
    Group,
    Layout,
    candidates,
    check_layout,
    choose_layout,
    complete_layout,
    divisors,
    groups,
    microbatches,
    near_text,
    nearest_of,
    strided_group,
)
from eastwest.workload.shapes import Model

LLAMA = Model("llama", "llama", 6, 64, 4, 2, 16, 192, 100)
MOE = Model("moe", "llama", 6, 64, 4, 2, 16, 192, 100, experts=8, active_experts=2, expert_ffn=96)


@given(st.integers(1, 5000))
def test_divisors_divide_and_none_is_missing(number: int):
    assert divisors(number) == [d for d in range(1, number + 1) if number % d == 0]


def test_the_nearest_are_one_below_and_one_above():
    assert nearest_of(5, [1, 2, 4, 8, 16]) == [4, 8]
    assert nearest_of(4, [1, 2, 4, 8]) == [4]
    assert nearest_of(99, [1, 2]) == [2]
    assert nearest_of(0, [1, 2]) == [1]
    assert near_text([4, 8]) == "4 or 8"


def test_a_layout_reads_as_its_degrees():
    assert str(Layout(8, 4, 32)) == "tensor 8 x pipeline 4 x data 32"
    assert str(Layout(1, 1, 8, 4, 2)) == "tensor 1 x pipeline 1 x data 8 x context 2 x expert 4"
    assert Layout(2, 3, 5, 5, 7).gpus == 210


@pytest.mark.parametrize(
    ("ranks", "stride", "world", "node", "group"),
    [
        (1, 4, 64, 8, Group(1, 1, 1, 8)),
        (8, 1, 64, 8, Group(8, 1, 8, 1)),
        (4, 1, 64, 8, Group(4, 1, 4, 2)),
        (4, 2, 64, 8, Group(4, 1, 4, 2)),
        (8, 2, 64, 8, Group(8, 2, 4, 2)),
        (4, 8, 64, 8, Group(4, 4, 1, 8)),
        (4, 16, 64, 8, Group(4, 4, 1, 8)),
        (2, 1, 2, 8, Group(2, 1, 2, 1)),
        (1, 1, 2, 8, Group(1, 1, 1, 2)),
        (3, 1, 9, 8, Group(3, 2, 3, 2)),
    ],
)
def test_groups_of_equal_steps_are_counted(ranks, stride, world, node, group):
    assert strided_group(ranks, stride, world, node) == group


def test_replicas_of_experts_are_as_far_apart_as_their_group_is_wide():
    of = groups(Layout(2, 2, 8, 4, 2), 8)
    assert (of.tensor.ranks, of.context.ranks, of.data.ranks) == (2, 2, 16)
    assert (of.expert.ranks, of.expert_data.ranks, of.pipeline.ranks) == (4, 4, 2)
    assert of.expert_data == strided_group(4, 8, 64, 8)
    assert of.pipeline == strided_group(2, 32, 64, 8)


def test_microbatches_are_the_batch_over_replicas():
    assert microbatches(Layout(data=4), 64, 2) == 8
    with pytest.raises(UserError) as caught:
        microbatches(Layout(data=4), 3, 1)
    assert str(caught.value) == (
        "global_batch 3 is not a multiple of data 4 x micro_batch 1 = 4 "
        "(nearest that fits: 4, or data 3)"
    )
    with pytest.raises(UserError) as caught:
        microbatches(Layout(data=4), 9, 2)
    assert caught.value.hint == "nearest that fits: 8 or 16"


def test_what_is_not_given_is_one_or_what_remains():
    assert complete_layout(64) == Layout(1, 1, 64)
    assert complete_layout(64, 2, 4, expert=8, context=2) == Layout(2, 4, 4, 8, 2)
    assert complete_layout(64, 2, 4, 8) == Layout(2, 4, 8)


@pytest.mark.parametrize(
    ("gpus", "degrees", "message"),
    [
        (
            64,
            {"tensor": 3, "context": 2},
            "at: tensor 3 x pipeline 1 x context 2 = 6 does not divide 64 GPUs "
            "(divisors of 64: 1, 2, 4, 8, 16, 32, 64)",
        ),
        (
            5040,
            {"tensor": 11},
            "at: tensor 11 x pipeline 1 = 11 does not divide 5,040 GPUs "
            "(divisors of 5040: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, …)",
        ),
        (
            64,
            {"tensor": 2, "data": 16},
            "at: tensor 2 x pipeline 1 x data 16 = 32, but there are 64 GPUs (data 32 fits)",
        ),
        (
            64,
            {"tensor": 3, "data": 2},
            "at: tensor 3 x pipeline 1 x data 2 = 6, but there are 64 GPUs "
            "(64 is not a multiple of 3)",
        ),
    ],
)
def test_degrees_that_do_not_fill_the_gpus_are_told(gpus, degrees, message):
    with pytest.raises(UserError) as caught:
        complete_layout(gpus, **degrees, where="at")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("model", "layout", "message"),
    [
        (LLAMA, Layout(8), "at: tensor 8 does not divide attention heads (4) (nearest: 4)"),
        (
            Model("m", "llama", 6, 64, 8, 2, 8, 196, 100),
            Layout(8),
            "at: tensor 8 does not divide the feed-forward width (196) (nearest: 7 or 14)",
        ),
        (
            Model("m", "llama", 6, 64, 8, 2, 8, 192, 100, experts=2, expert_ffn=98),
            Layout(4),
            "at: tensor 4 does not divide an expert's width (98) (nearest: 2 or 7)",
        ),
    ],
)
def test_widths_that_tensor_does_not_divide_are_told(model, layout, message):
    with pytest.raises(UserError) as caught:
        check_layout(model, layout, layout.gpus, 8, 1, 32, "at")
    assert str(caught.value) == message


def test_a_batch_that_does_not_divide_is_told_at_its_place():
    with pytest.raises(UserError) as caught:
        check_layout(LLAMA, Layout(data=4), 4, 6, 1, 32, "at")
    assert caught.value.where == "at"
    assert check_layout(LLAMA, Layout(1, 6, 4), 24, 8, 1, 32) == 2


def tried(model: Model, gpus: int, node: int = 8, batch: int = 64, micro: int = 1, seq: int = 32):
    return set(candidates(model, gpus, node, batch, micro, seq))


def test_all_splits_of_four_gpus_are_tried():
    """Tensor divides heads, pipeline the layers or is a power of two."""
    assert tried(LLAMA, 4) == {
        Layout(1, 1, 4),
        Layout(1, 2, 2),
        Layout(1, 4, 1),
        Layout(2, 1, 2),
        Layout(2, 2, 1),
        Layout(4, 1, 1),
    }


def test_tensor_stays_within_a_node_and_pipeline_within_the_layers():
    assert {x.tensor for x in tried(LLAMA, 16, node=2)} == {1, 2}
    assert {x.pipeline for x in tried(LLAMA, 48, batch=48)} == {1, 2, 3, 4, 6}


def test_replicas_divide_the_batch():
    assert {x.data for x in tried(LLAMA, 12, batch=4)} == {1, 2, 4}
    assert tried(LLAMA, 4, batch=3, micro=2) == set()
    assert {x.data for x in tried(LLAMA, 8, batch=8, micro=4)} <= {1, 2}


def test_context_leaves_each_gpu_eight_thousand_tokens():
    assert {x.context for x in tried(LLAMA, 8, seq=16383)} == {1}
    assert {x.context for x in tried(LLAMA, 8, seq=16384)} == {1, 2}
    assert {x.context for x in tried(LLAMA, 8, seq=65536)} == {1, 2, 4, 8}


def test_experts_are_spread_by_powers_of_two():
    assert {x.expert for x in tried(MOE, 16)} == {1, 2, 4, 8}
    assert {x.expert for x in tried(LLAMA, 16)} == {1}


@settings(deadline=None)
@given(st.sampled_from([4, 12, 16, 24]))
def test_the_fastest_of_those_that_fit_is_taken(gpus: int):
    def spare(x: Layout) -> float:
        return float(x.pipeline - 2)

    chosen = choose_layout(LLAMA, gpus, 8, 48, 1, 32, spare, lambda x: 1.0 / x.tensor)
    fitting = [x for x in tried(LLAMA, gpus, batch=48) if x.pipeline >= 2]
    most = max(x.tensor for x in fitting)
    assert chosen.tensor == most
    assert chosen.pipeline == min(x.pipeline for x in fitting if x.tensor == most)


def test_no_layout_at_all_is_told():
    with pytest.raises(UserError) as caught:
        choose_layout(LLAMA, 4, 8, 3, 2, 32, lambda x: 1.0, lambda x: 1.0, "at")
    assert str(caught.value) == (
        "at: no layout of 4 GPUs suits global_batch 3 and micro_batch 2 "
        "(data parallel must divide global_batch / micro_batch and the number of GPUs)"
    )


def test_the_leanest_of_those_that_do_not_fit_is_told():
    with pytest.raises(UserError) as caught:
        choose_layout(LLAMA, 4, 8, 64, 1, 32, lambda x: -(2.0**30) * x.data, lambda x: 1.0, "at")
    assert str(caught.value) == (
        "at: llama fits no layout of 4 GPUs: the leanest (tensor 1 x pipeline 4 x data 1) lacks "
        "1.0 GiB a GPU (use more GPUs, recompute: full, or zero: 3)"
    )
