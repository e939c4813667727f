"""Every algorithm's schedule keeps its promise, and no wrong one passes."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.collective import ALGORITHMS, tree
from eastwest.collective.program import cut, written
from eastwest.collective.prove import prove
from eastwest.collective.schedule import WITHOUT_IN_PLACE, Buffer, Layout, Schedule
from eastwest.errors import UserError
from naive_schedules import outcome

ALL = [(name, operation) for name in ALGORITHMS for operation in ALGORITHMS[name].OPERATIONS]
NODES = st.one_of(st.just(1), st.integers(1, 64))


def layout(algorithm: str, ranks: int, nodes: int) -> Layout:
    """As even as the algorithm wants it."""
    if algorithm == "hierarchical":
        return Layout.spread(ranks, math.gcd(ranks, nodes))
    return Layout.spread(ranks, min(ranks, nodes))


@pytest.mark.parametrize(("algorithm", "operation"), ALL)
def test_every_algorithm_is_proven_for_1_to_64_ranks(algorithm: str, operation: str):
    for ranks in range(1, 65):
        where = layout(algorithm, ranks, 1 + ranks % 7)
        verdict = prove(written(algorithm, operation, where, 1 + ranks * 3 // 2, 2))
        assert verdict.fault == "", f"{ranks} ranks"


@pytest.mark.parametrize(("algorithm", "operation"), ALL)
@given(st.integers(1, 64), NODES, st.integers(1, 70), st.integers(1, 4), st.booleans())
@settings(max_examples=20)
def test_every_algorithm_is_proven_with_ragged_chunks_channels_and_in_place(
    algorithm, operation, ranks, nodes, chunks, channels, in_place
):
    in_place &= operation not in WITHOUT_IN_PLACE
    where = layout(algorithm, ranks, nodes)
    verdict = prove(written(algorithm, operation, where, chunks, channels, in_place))
    assert verdict.fault == ""


@pytest.mark.parametrize(("algorithm", "operation"), ALL)
def test_a_naive_execution_in_any_order_ends_alike(algorithm, operation):
    for seed, (ranks, nodes) in enumerate([(1, 1), (2, 1), (5, 2), (6, 3), (9, 9)]):
        schedule = written(algorithm, operation, layout(algorithm, ranks, nodes), 7, 2)
        assert outcome(schedule, seed) == ""


def dropped(schedule: Schedule, move: int) -> Schedule:
    """The schedule without a move; who waited for it waits for what it waited for."""
    first, need = schedule.first_need.tolist(), schedule.need.tolist()
    needs = [need[a:b] for a, b in pairwise(first)]
    heirs = [
        sorted({m for n in wanted for m in (needs[move] if n == move else [n])}) for wanted in needs
    ]
    del heirs[move]
    flat = [n - (n > move) for wanted in heirs for n in wanted]
    return replace(
        schedule,
        moves=np.delete(schedule.moves, move),
        first_need=np.cumsum([0, *map(len, heirs)]),
        need=np.array(flat, np.int64),
    )


@pytest.mark.parametrize(("algorithm", "operation"), ALL)
@given(data=st.data())
@settings(max_examples=8)
def test_no_move_of_a_schedule_can_be_spared(algorithm, operation, data):
    schedule = written(algorithm, operation, layout(algorithm, 6, 3), 7, 1)
    away = np.flatnonzero(schedule.moves["source"] != schedule.moves["target"])
    move = data.draw(st.sampled_from(away.tolist()))
    # Multicast also reaches heads that have the block already.
    target = schedule.moves["target"][move]
    spare = algorithm.startswith("nvls") and schedule.moves["source"][move] >= 6 and target < 6
    verdict = prove(dropped(schedule, move))
    assert spare or not verdict.proven


def mutated(schedule: Schedule, data: st.DataObject) -> Schedule:
    """A schedule with one thing changed."""
    how = data.draw(st.sampled_from(["need", "move", "chunk", "reduce", "target"]))
    if how == "need" and len(schedule.need):
        at = data.draw(st.integers(0, len(schedule.need) - 1))
        first = schedule.first_need - (schedule.first_need > at)
        return replace(schedule, first_need=first, need=np.delete(schedule.need, at))
    moves, move = schedule.moves.copy(), data.draw(st.integers(0, len(schedule.moves) - 1))
    if how == "chunk":
        moves["target_chunk"][move] = data.draw(st.integers(0, schedule.chunks - 1))
    elif how == "reduce":
        moves["reduce"][move] ^= 1
    elif how == "target":
        moves["target"][move] = data.draw(st.integers(0, schedule.ranks - 1))
    else:
        return dropped(schedule, move)
    return replace(schedule, moves=moves)


@given(data=st.data(), pair=st.sampled_from(ALL))
@settings(max_examples=200)
def test_what_is_proven_ends_well_in_any_order(data, pair):
    schedule = written(*pair, layout(pair[0], 4, 2), 5, 2)
    schedule = mutated(schedule, data)
    try:
        verdict = prove(schedule)
    except UserError:
        return
    wrong = [outcome(schedule, seed) for seed in range(10)]
    if verdict.proven:
        assert wrong == [""] * 10
    elif "does not wait for" not in verdict.fault:
        assert any(wrong), verdict.fault


def test_the_first_bad_move_is_named():
    schedule = written("ring", "broadcast", Layout.spread(3), 1, in_place=True)
    moves = schedule.moves.copy()
    moves["source"][0], moves["source_buffer"][0] = 2, Buffer.OUTPUT
    assert prove(replace(schedule, moves=moves)).fault == (
        "move 0 (step 0, channel 0: rank 2 output chunk 0 -> rank 1 output chunk 0) reads rank 2 "
        "output chunk 0 before anything is there"
    )


def test_a_rank_that_is_added_twice_is_found():
    schedule = written("ring", "reduce", Layout.spread(2), 1, in_place=True)
    twice = replace(
        schedule,
        moves=np.repeat(schedule.moves, 2),
        first_need=np.array([0, 0, 1]),
        need=np.array([0]),
    )
    assert prove(twice).fault == (
        "move 1 (step 0, channel 0: rank 1 input chunk 0 -> rank 0 output chunk 0, added) adds a "
        "rank's part twice to rank 0 output chunk 0"
    )


def test_an_unkept_promise_is_told_with_what_was_found():
    schedule = written("ring", "reduce", Layout.spread(3), 2, in_place=True)
    none = np.zeros(0, np.int64)
    empty = replace(schedule, moves=schedule.moves[:0], first_need=np.zeros(1, np.int64), need=none)
    assert prove(empty).fault == (
        "rank 0 ends with chunk 0 of rank 0 in output chunk 0; promised was chunk 0 of all ranks, "
        "added up"
    )


def test_a_circular_wait_is_named():
    schedule = written("pairwise", "send_receive", Layout.spread(2), 1)
    waiting = replace(schedule, first_need=np.array([0, 1, 2]), need=np.array([1, 0]))
    assert prove(waiting).fault == (
        "move 0 (step 0, channel 0: rank 0 input chunk 0 -> rank 1 output chunk 0) waits in a "
        "circle: move 0 for move 1 for move 0"
    )


def test_moves_of_one_chunk_without_an_order_are_named():
    schedule = written("ring", "broadcast", Layout.spread(3), 1, in_place=True)
    moves = np.concatenate([schedule.moves[:1], schedule.moves])
    racing = replace(schedule, moves=moves, first_need=np.array([0, 0, 0, 1]), need=np.array([0]))
    assert "does not wait for move" in prove(racing).fault


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("source", 9, "move 0: its source is out of range"),
        ("target", -1, "move 0: its target is out of range"),
        ("count", 0, "move 0: its count is out of range"),
        ("source_buffer", 3, "move 0: its source_buffer is out of range"),
        ("target_chunk", 4, "move 0: it is outside of its target's buffer"),
    ],
)
def test_a_move_that_cannot_be_is_named(field, value, what):
    schedule = written("ring", "all_gather", Layout.spread(4), 4)
    moves = schedule.moves.copy()
    moves[field][0] = value
    with pytest.raises(UserError) as caught:
        prove(replace(schedule, moves=moves))
    assert str(caught.value) == what


@pytest.mark.parametrize("ranks", [2, 3, 8, 24, 63, 64])
def test_rings_take_the_textbooks_steps_and_bytes(ranks):
    for operation, rounds in (("all_reduce", 2), ("all_gather", 1), ("reduce_scatter", 1)):
        verdict = prove(written("ring", operation, Layout.spread(ranks), ranks, in_place=True))
        local = (
            operation == "reduce_scatter" and ranks > 2
        )  # a copy of what others' sums begin with
        assert verdict.depth == rounds * (ranks - 1) + local
        assert verdict.most_sent == pytest.approx(rounds * (ranks - 1) / ranks)


@pytest.mark.parametrize("ranks", [2, 3, 5, 8, 33, 64])
def test_pat_takes_logarithmically_many_rounds_and_a_rings_bytes(ranks):
    verdict = prove(written("pat", "all_gather", Layout.spread(ranks, ranks), ranks, in_place=True))
    assert verdict.schedule.moves["step"].max() + 1 == math.ceil(math.log2(ranks))
    assert verdict.most_sent == pytest.approx((ranks - 1) / ranks)


@pytest.mark.parametrize("nodes", range(1, 130))
def test_a_node_has_children_in_one_of_the_two_trees_at_most(nodes):
    trees = [tree.parents(nodes, mirrored) for mirrored in (False, True)]
    inside = [set(parent[parent >= 0].tolist()) for parent in trees]
    roots = {int(np.argmax(parent < 0)) for parent in trees}
    assert all((parent < 0).sum() == 1 for parent in trees)
    assert inside[0] & inside[1] <= roots
    for parent in trees:
        assert np.bincount(parent[parent >= 0], minlength=1).max() <= 2


@given(st.integers(1, 200), st.integers(1, 20), st.integers(1, 9))
def test_pieces_cover_every_chunk_once(chunks, blocks, channels):
    first, count = cut(chunks, blocks, channels)
    covered = [c for f, n in zip(first.flat, count.flat, strict=True) for c in range(f, f + n)]
    assert sorted(covered) == list(range(chunks))
    assert count.max() - count.min() <= 1 + (chunks // blocks + 1) // channels


def test_an_algorithm_without_a_schedule_is_named(monkeypatch):
    monkeypatch.delattr("eastwest.collective.pat.schedule")
    with pytest.raises(UserError, match=r"pat has no schedule \(its module lacks schedule"):
        written("pat", "all_gather", Layout.spread(2, 2), 2)


def test_what_cannot_be_written_is_refused():
    for arguments, what in (
        (("ring", "all_to_all", Layout.spread(2), 2), "ring does not do all_to_all (it does "),
        (("ring", "all_gather", Layout.spread(2), 0), "at least one chunk and one channel"),
        (("ring", "all_reduce", Layout.spread(64), 2**20), "too many to write out"),
        (("hierarchical", "all_reduce", Layout.spread(5, 2), 5), "as many ranks on each node"),
    ):
        with pytest.raises(UserError) as caught:
            written(*arguments)
        assert what in str(caught.value)
    with pytest.raises(UserError, match="at least one rank a node"):
        Layout.spread(2, 3)
