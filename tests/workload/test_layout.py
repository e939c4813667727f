"""Layouts: groups against a count over all ranks, and mistakes told with the nearest that fits."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.catalog.world import shared_nominal
from eastwest.errors import UserError
from eastwest.workload.layout import (
    Group,
    Layout,
    candidates,
    check_layout,
    choose_layout,
    complete_layout,
    groups,
    microbatches,
)
from eastwest.workload.model import load_model


def model(name: str = "llama-3-70b"):
    return load_model(name, shared_nominal())


def counted(members: list[list[int]], node_gpus: int) -> tuple[int, int, int]:
    """Ranks, most nodes that a group spans, and most of its ranks on one node, by looking at every
    rank."""
    nodes = [Counter(rank // node_gpus for rank in group) for group in members]
    return len(members[0]), max(map(len, nodes)), max(max(n.values()) for n in nodes)


def by_rank(layout: Layout, kind: str) -> list[list[int]]:
    """Return the groups of a kind by Megatron's order, tensor-context-expert-data-pipeline, the
    slow way."""
    t, replicas, p = layout.tensor, layout.context * layout.data, layout.pipeline
    found: dict[tuple[int, ...], list[int]] = {}
    for rank in range(layout.gpus):
        tensor, replica, stage = rank % t, rank // t % replicas, rank // (t * replicas)
        key = {
            "tensor": (replica, stage),
            "context": (tensor, replica // layout.context, stage),
            "data": (tensor, stage),
            "expert": (tensor, replica // layout.expert, stage),
            "expert_data": (tensor, replica % layout.expert, stage),
            "pipeline": (tensor, replica),
        }[kind]
        found.setdefault(key, []).append(rank)
    assert p * replicas * t == layout.gpus
    return list(found.values())


LAYOUTS = st.builds(
    lambda t, p, d, c, e: Layout(t, p, d * e, e, c),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(1, 6),
    st.integers(1, 23),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 4]),
)


@settings(deadline=None)
@given(LAYOUTS, st.sampled_from([1, 2, 4, 8, 72]))
def test_groups_span_the_nodes_that_a_count_over_all_ranks_finds(layout: Layout, node_gpus: int):
    of = groups(layout, node_gpus)
    for kind in ("tensor", "context", "data", "expert", "expert_data", "pipeline"):
        group: Group = getattr(of, kind)
        ranks, nodes, most = counted(by_rank(layout, kind), node_gpus)
        assert group.ranks == ranks
        # Where groups do not align with nodes, the worst start may not occur among few groups.
        assert nodes <= group.nodes <= nodes + 1
        assert most <= group.ranks_per_node <= max(most + 1, most)
        assert 1 <= group.concurrent_per_node <= node_gpus


def test_tensor_8_fills_a_server_and_leaves_data_parallel_one_rank_on_each():
    of = groups(Layout(8, 4, 32), 8)
    assert of.tensor == Group(8, 1, 8, 1)
    assert of.data == Group(32, 32, 1, 8)
    assert of.pipeline == Group(4, 4, 1, 8)


def test_tensor_2_leaves_four_data_parallel_ranks_on_each_server():
    assert groups(Layout(2, 1, 64), 8).data == Group(64, 16, 4, 2)


def test_experts_beside_tensor_2_fill_a_server():
    of = groups(Layout(2, 4, 64, expert=4), 8)
    assert of.expert == Group(4, 1, 4, 2)
    assert of.expert_data == Group(16, 16, 1, 8)


def test_world_1472_is_8_by_8_by_23():
    assert complete_layout(1472, tensor=8, pipeline=8) == Layout(8, 8, 23)
    assert check_layout(model("llama-3-8b"), Layout(8, 8, 23), 1472, 46, 1, 8192) == 2


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (
            Layout(8, 4, 30),
            "job: tensor 8 x pipeline 4 x data 30 = 960, but there are 1,024 GPUs (data 32 fits)",
        ),
        (Layout(128, 4, 2), "job: tensor 128 does not divide attention heads (64) (nearest: 64)"),
        (Layout(1, 128, 8), "job: pipeline 128 is more than the model's 80 layers"),
        (Layout(8, 4, 32, 4), "job: expert 4, but llama-3-70b has no experts (leave expert out)"),
        (
            Layout(8, 2, 2, 1, 32),
            "job: context 32 does not divide sequence 8200 (nearest: 25 or 40)",
        ),
    ],
)
def test_a_layout_that_does_not_fit_is_told_with_the_numbers(layout: Layout, message: str):
    with pytest.raises(UserError) as caught:
        check_layout(model(), layout, 1024, 1024, 1, 8200, "job")
    assert str(caught.value) == message


def test_degrees_that_do_not_divide_the_gpus_are_told_with_the_nearest():
    with pytest.raises(UserError) as caught:
        complete_layout(1024, tensor=8, pipeline=6)
    assert (
        str(caught.value)
        == "tensor 8 x pipeline 6 = 48 does not divide 1,024 GPUs (pipeline 4 or 8 fits)"
    )


def test_a_batch_that_does_not_divide_is_told_with_the_nearest():
    with pytest.raises(UserError) as caught:
        microbatches(Layout(8, 4, 32), 1000, 1)
    assert str(caught.value) == (
        "global_batch 1000 is not a multiple of data 32 x micro_batch 1 = 32 "
        "(nearest that fits: 992 or 1024, or data 25 or 40)"
    )


def test_experts_must_divide_experts_and_replicas():
    with pytest.raises(
        UserError,
        match=r"expert 3 must divide 8 experts and data x context = 32 \(nearest: 2 or 4\)",
    ):
        check_layout(model("mixtral-8x22b"), Layout(8, 4, 32, 3), 1024, 1024, 1, 4096)


@pytest.mark.parametrize("gpus", [1, 7, 8, 96, 1024, 1472])
def test_every_candidate_is_a_valid_layout_within_a_node(gpus: int):
    found = list(candidates(model("mixtral-8x22b"), gpus, 8, 1472, 1, 4096))
    for layout in found:
        assert layout.tensor <= 8
        assert check_layout(model("mixtral-8x22b"), layout, gpus, 1472, 1, 4096) >= 1
    assert len(set(found)) == len(found)


def test_the_fastest_that_fits_is_chosen_whatever_fits_not():
    chosen = choose_layout(
        model(),
        64,
        8,
        64,
        1,
        8192,
        spare_bytes=lambda x: x.tensor * x.pipeline - 16.0,
        step_s=lambda x: 1.0 / x.data,
    )
    assert chosen.tensor * chosen.pipeline == 16
    assert chosen.tensor == 1  # ties go to less tensor parallelism


def test_nothing_fits_is_told_with_what_lacks():
    with pytest.raises(
        UserError, match=r"llama-3-70b fits no layout of 8 GPUs: the leanest .* lacks 1.0 GiB a GPU"
    ):
        choose_layout(
            model(), 8, 8, 8, 1, 8192, spare_bytes=lambda x: -(2.0**30), step_s=lambda x: 1.0
        )
