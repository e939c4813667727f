"""Collectives by formula: bounds, asymptotes and steps that hold for every algorithm."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from eastwest.catalog.world import nominal
from eastwest.collective import ALGORITHMS, hierarchical, tree
from eastwest.collective.communicator import OPERATIONS, Communicator, bus_factor, steps
from eastwest.collective.estimate import Estimator
from eastwest.errors import UserError

WORLD = nominal()
ESTIMATOR = Estimator(WORLD)
GENERATIONS = {
    "volta": (150e9, 6),
    "ampere": (300e9, 12),
    "hopper": (450e9, 18),
    "blackwell": (900e9, 18),
}


def communicator(
    ranks=16, nodes=2, generation="hopper", node_Bps=8 * 48e9, latency_s=3e-6, **more
) -> Communicator:
    link, links = GENERATIONS[generation]
    return Communicator(
        ranks, nodes, generation, "intel", link, links, node_Bps, 8, latency_s, 3e12, **more
    )


def ways(operation: str, comm: Communicator):
    for name in ALGORITHMS:
        module = ALGORITHMS[name]
        if operation in module.OPERATIONS and not module.refusal(operation, comm):
            yield from ((name, protocol) for protocol in module.PROTOCOLS)


def test_busbw_factors_are_those_of_nccl_tests():
    golden = {
        "all_reduce": 2 * 7 / 8,
        "all_gather": 7 / 8,
        "reduce_scatter": 7 / 8,
        "all_to_all": 7 / 8,
        "broadcast": 1,
        "reduce": 1,
        "send_receive": 1,
    }
    assert {op: bus_factor(op, 8) for op in OPERATIONS} == golden


@pytest.mark.parametrize("ranks", range(2, 65))
def test_a_ring_waits_for_2_n_minus_1_steps_and_its_halves_for_n_minus_1(ranks):
    comm = communicator(ranks, ranks)
    assert steps("all_reduce", ranks) == 2 * (ranks - 1)
    one = ESTIMATOR.know.between_step_s("ring", "ll", comm)
    base = ESTIMATOR.know.base_s("ring", "ll", comm)
    assert ESTIMATOR.cost("all_reduce", "ring", "ll", comm).latency_s == pytest.approx(
        base + 2 * (ranks - 1) * one
    )
    assert ESTIMATOR.cost("all_gather", "ring", "ll", comm).latency_s == pytest.approx(
        base + (ranks - 1) * one
    )


def test_latency_grows_with_ranks_and_a_tree_grows_slower_than_a_ring():
    times = {
        a: [
            ESTIMATOR.time_s("all_reduce", a, "ll", 8, communicator(8 * n, n))
            for n in (2, 4, 16, 64, 256)
        ]
        for a in ("ring", "tree")
    }
    assert all(a < b for series in times.values() for a, b in pairwise(series))
    assert times["tree"][-1] < times["ring"][-1] / 20


@pytest.mark.parametrize("nodes", [2, 3, 5, 8, 23, 64])
def test_bandwidth_optimal_all_reduces_reach_one_asymptote(nodes):
    """A ring over everything and the hierarchical form load the NICs equally; NVLink then decides
    in neither."""
    comm = communicator(8 * nodes, nodes, node_Bps=8 * 5e9)
    ring = ESTIMATOR.cost("all_reduce", "ring", "simple", comm)
    split = ESTIMATOR.cost("all_reduce", "hierarchical", "simple", comm)
    n, N, net = comm.ranks, nodes, ESTIMATOR.know.between_Bps(comm)
    assert ring.rate_Bps == pytest.approx(net * n / (2 * (n - 1)))
    inside = (
        2
        * 7
        / 8
        / (ESTIMATOR.know.inside_Bps(comm) * (1 - ESTIMATOR.know.of("ring_tail", "hopper") / 7))
    )
    assert 1 / split.rate_Bps == pytest.approx(2 * (N - 1) / N / net + inside)


@pytest.mark.parametrize("protocol", ["ll", "ll128", "simple"])
def test_hierarchical_equals_reduce_scatter_plus_all_reduce_plus_all_gather(protocol):
    comm = communicator(64, 8)
    inside, rail = communicator(8, 1), communicator(8, 8, node_Bps=comm.node_Bps / 8)
    rail = replace(rail, nics=1)
    size, launch = (
        2**48,
        ESTIMATOR.know.launch_s(comm),
    )  # so large that every pipeline has ramped up
    parts = [
        ("reduce_scatter", size, inside),
        ("all_reduce", size / 8, rail),
        ("all_gather", size, inside),
    ]
    expected = sum(ESTIMATOR.time_s(op, "ring", protocol, s, c) for op, s, c in parts) - 2 * launch
    assert ESTIMATOR.time_s("all_reduce", "hierarchical", protocol, size, comm) == pytest.approx(
        expected, rel=1e-6
    )
    assert len(hierarchical.phases("all_gather", comm)) == 2


def test_what_is_reported_is_what_was_asked():
    comm = communicator(64, 8, in_switch=True)
    for algorithm, protocol in ways("all_reduce", comm):
        e = ESTIMATOR.estimate("all_reduce", 2**24, comm, algorithm, protocol)
        assert (e.algorithm, e.protocol) == (algorithm, protocol)
        assert e.time_s == ESTIMATOR.time_s("all_reduce", algorithm, protocol, 2**24, comm)


def binary_tree(nodes: int) -> dict[int, set[int]]:
    """Return the neighbours in NCCL's tree: a parent clears the lowest bit and sets the next,
    or only clears it where there is no such rank; rank 0 is the root."""
    near: dict[int, set[int]] = {rank: set() for rank in range(nodes)}
    for rank in range(1, nodes):
        bit = rank & -rank
        parent = (rank ^ bit) | (bit << 1)
        parent = parent if parent < nodes else rank ^ bit
        near[rank].add(parent)
        near[parent].add(rank)
    return near


@pytest.mark.parametrize("nodes", range(2, 130))
def test_a_double_tree_loads_the_busiest_node_as_its_edges_say(nodes):
    """The second tree is the first mirrored (even) or shifted by one (odd), as NCCL's."""
    near = binary_tree(nodes)
    other = [(nodes - 1 - r) if nodes % 2 == 0 else (r - 1) % nodes for r in range(nodes)]
    edges = [len(near[r]) + len(near[other[r]]) for r in range(nodes)]
    assert sum(edges) == 2 * 2 * (nodes - 1)
    assert tree.load(nodes) == max(edges) / 2


def test_swapping_equal_dimensions_changes_only_the_latency_of_steps():
    """(2 nodes of 8) and (8 nodes of 2) with equal rates everywhere move the same bytes."""
    a = replace(communicator(16, 2, node_Bps=1e9), link_Bps=1e12)
    b = replace(communicator(16, 8, node_Bps=1e9), link_Bps=1e12)
    ca, cb = (ESTIMATOR.cost("all_reduce", "ring", "simple", c) for c in (a, b))
    assert ca.rate_Bps == pytest.approx(cb.rate_Bps)
    assert ca.latency_s < cb.latency_s


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("all_reduc", 8, communicator()),
            "unknown collective 'all_reduc' (did you mean 'all_reduce'?)",
        ),
        (
            ("all_reduce", 8, communicator(), "rnig"),
            "unknown algorithm 'rnig' (did you mean 'ring'?)",
        ),
        (
            ("all_reduce", 8, communicator(), "ring", "ll12"),
            "unknown protocol 'll12' (did you mean 'll128'?)",
        ),
        (
            ("all_reduce", 8, communicator(), "collnet_direct"),
            "collnet_direct cannot run here: the network's switches do not reduce (SHARP is on "
            "InfiniBand switches)",
        ),
        (
            ("broadcast", 8, communicator(), "tree"),
            "tree does not do broadcast with simple (it does all_reduce with ll, ll128, simple)",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(arguments, message):
    with pytest.raises(UserError) as caught:
        ESTIMATOR.estimate(*arguments)
    assert str(caught.value) == message


def test_every_registered_algorithm_offers_the_protocol_of_the_family():
    for name in ALGORITHMS:
        module = ALGORITHMS[name]
        assert set(module.OPERATIONS) <= set(OPERATIONS)
        assert callable(module.refusal)
        assert callable(module.cost)
