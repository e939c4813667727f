"""Laws that every registered algorithm obeys: a wrong new one fails here with no line added.

Each law is derived from what a collective must move, not from the formulas that it holds.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eastwest.catalog.world import nominal
from eastwest.collective import ALGORITHMS
from eastwest.collective.communicator import OPERATIONS, Communicator, bus_factor
from eastwest.collective.estimate import Estimator
from eastwest.collective.stretches import stretches

ESTIMATOR = Estimator(nominal())
LINKS = {"volta": (150e9, 6), "ampere": (300e9, 12), "hopper": (450e9, 18), "blackwell": (9e11, 18)}
HALVES = ("reduce_scatter", "all_gather")


@st.composite
def communicators(draw, even=st.booleans()):
    """Any ranks on any nodes, of any generation, wired by switches, rings of links or PCIe."""
    generation = draw(st.sampled_from(sorted(LINKS)))
    nodes, local = draw(st.integers(1, 40)), draw(st.integers(1, 9))
    ranks = max(2, nodes * local - (0 if draw(even) else draw(st.integers(0, max(0, nodes - 1)))))
    link_Bps, links = LINKS[generation]
    wiring = draw(st.sampled_from(["switch", "rings", "pcie"]))
    if wiring == "pcie":
        link_Bps, links = draw(st.floats(5e9, 60e9)), 0
    return Communicator(
        ranks,
        nodes if ranks >= nodes else 1,
        generation,
        draw(st.sampled_from(["intel", "amd", "arm"])),
        link_Bps,
        links,
        node_Bps=draw(st.floats(1e8, 1e12)),
        nics=draw(st.integers(1, 9)),
        network_latency_s=draw(st.floats(0, 1e-3)),
        memory_Bps=draw(st.floats(1e11, 1e13)),
        switched=wiring == "switch",
        in_switch=wiring == "switch" and generation in ("hopper", "blackwell"),
        sharp=draw(st.booleans()),
        collnet=draw(st.booleans()),
        rings=draw(st.integers(1, links)) if wiring == "rings" else 0,
    )


def ways(operation: str, comm: Communicator):
    for name in ALGORITHMS:
        module = ALGORITHMS[name]
        if operation in module.OPERATIONS and not module.refusal(operation, comm):
            yield from ((name, protocol) for protocol in module.PROTOCOLS)


def time_s(operation, way, size, comm) -> float:
    return ESTIMATOR.time_s(operation, *way, size, comm)


def out_of_a_node(operation: str, comm: Communicator, adds: tuple[str, ...]) -> float:
    """Return the parts of the buffer that the busiest node must send or receive, at the least."""
    N, n = comm.nodes, comm.ranks
    if N == 1:
        return 0.0
    if operation == "all_reduce":
        return 1.0 if "network" in adds else 2 * (N - 1) / N
    if operation in HALVES:
        return (N - 1) / N
    if operation == "all_to_all":
        return sum(k * (n - k) for k in filling(comm)) / n / N
    return 1.0


def filling(comm: Communicator) -> list[int]:
    """Return the ranks of each node, as evenly as they go."""
    each, more = divmod(comm.ranks, comm.nodes)
    return [each + (i < more) for i in range(comm.nodes)]


def out_of_a_gpu(operation: str, comm: Communicator, adds: tuple[str, ...]) -> float:
    """Return the parts of the buffer that the busiest GPU must send or receive, at the least."""
    n = comm.ranks
    if operation == "all_reduce":
        return 1.0 if adds else 2 * (n - 1) / n
    if operation in HALVES or operation == "all_to_all":
        return (n - 1) / n
    return 1.0


def gpu_Bps(comm: Communicator) -> float:
    """Return what a GPU can send at the most: its links, and its share of the node's NICs."""
    links_Bps = comm.link_Bps if comm.local > 1 else 0.0
    return links_Bps + (comm.node_Bps if comm.nodes > 1 else 0.0)


def least_s(operation: str, size: float, comm: Communicator, adds: tuple[str, ...]) -> float:
    return size * max(
        out_of_a_node(operation, comm, adds) / comm.node_Bps,
        out_of_a_gpu(operation, comm, adds) / gpu_Bps(comm),
    )


@settings(deadline=None, max_examples=400)
@given(communicators(), st.sampled_from(OPERATIONS), st.integers(0, 2**50))
def test_no_way_takes_less_than_its_bytes_over_the_narrowest_cut(comm, operation, size):
    for way in ways(operation, comm):
        least = least_s(operation, size, comm, ALGORITHMS[way[0]].ADDS)
        assert least < time_s(operation, way, size, comm) < math.inf


@settings(deadline=None, max_examples=200)
@given(communicators(), st.sampled_from(OPERATIONS), st.integers(1, 2**50))
def test_no_busbw_is_above_what_the_links_carry(comm, operation, size):
    """nccl-tests' busbw is made to be compared with the hardware: without switches that add, the
    links of a GPU (or its NICs, where it is alone in its node) are never exceeded."""
    if comm.nodes > 1 and comm.local > 1:
        comm = replace(comm, ranks=comm.nodes)
    for algorithm, protocol in ways(operation, comm):
        if not ALGORITHMS[algorithm].ADDS:
            e = ESTIMATOR.estimate(operation, size, comm, algorithm, protocol)
            assert e.busbw_Bps <= (comm.link_Bps if comm.nodes == 1 else comm.node_Bps)


@settings(deadline=None, max_examples=200)
@given(communicators(), st.sampled_from(OPERATIONS), st.integers(0, 2**48), st.floats(1.0, 4.0))
def test_more_bytes_never_take_less_time(comm, operation, size, factor):
    for way in ways(operation, comm):
        small = time_s(operation, way, size, comm)
        assert small <= time_s(operation, way, size * factor, comm)
        assert small < time_s(operation, way, 2 * size + 2**20, comm)


RATES = [f.name for f in fields(Communicator) if f.name.endswith("_Bps")]


@settings(deadline=None, max_examples=200)
@given(
    communicators(),
    st.sampled_from(OPERATIONS),
    st.integers(0, 2**48),
    st.sampled_from(RATES),
    st.floats(1.0, 10.0),
)
def test_no_higher_rate_ever_costs_time(comm, operation, size, rate, factor):
    faster = replace(comm, **{rate: getattr(comm, rate) * factor})
    for way in ways(operation, comm):
        now = time_s(operation, way, size, comm)
        assert time_s(operation, way, size, faster) <= now * (1 + 1e-12)


@settings(deadline=None, max_examples=200)
@given(communicators(), st.sampled_from(OPERATIONS), st.integers(0, 2**48), st.floats(0, 1e-2))
def test_a_longer_way_never_saves_time_and_costs_small_messages_between_nodes(
    comm, operation, size, more_s
):
    farther = replace(comm, network_latency_s=comm.network_latency_s + more_s)
    for way in ways(operation, comm):
        assert time_s(operation, way, size, comm) <= time_s(operation, way, size, farther)
        if comm.nodes > 1:
            waited = time_s(operation, way, 0, replace(farther, network_latency_s=1.0))
            assert waited - time_s(operation, way, 0, comm) > 0.2


@settings(deadline=None, max_examples=200)
@given(communicators(), st.integers(2**20, 2**50))
def test_an_all_reduce_takes_no_less_than_its_two_halves(comm, size):
    """Without switches that add, an all-reduce moves what a reduce-scatter and an all-gather move;
    with them it still contains each."""
    for algorithm, protocol in ways("all_reduce", comm):
        module = ALGORITHMS[algorithm]
        whole_s = size / ESTIMATOR.cost("all_reduce", algorithm, protocol, comm).rate_Bps
        bounds = [least_s(op, size, comm, module.ADDS) for op in HALVES]
        assert whole_s >= (max(bounds) if module.ADDS else sum(bounds)) * (1 - 1e-12)
        if all(op in module.OPERATIONS and not module.refusal(op, comm) for op in HALVES):
            halves = [
                size / ESTIMATOR.cost(op, algorithm, protocol, comm).rate_Bps for op in HALVES
            ]
            assert whole_s >= (max(halves) if module.ADDS else sum(halves)) * (1 - 1e-12)


@settings(deadline=None, max_examples=200)
@given(communicators(), st.sampled_from(OPERATIONS))
def test_optimal_algorithms_reach_one_asymptote_between_nodes(comm, operation):
    """Where only the NICs bind, what must cross them over what NCCL gets of them; a chain through
    the nodes carries at most N/(N-1) of that."""
    comm = replace(
        comm,
        node_Bps=1e6,
        nics=1,  # one that a pair has for itself
        link_Bps=max(comm.link_Bps, 1e10),
        ranks=comm.nodes * comm.local,
    )
    assume(comm.nodes > 1)
    size = 2**60
    got_Bps = ESTIMATOR.know.between_Bps(comm)
    for algorithm, protocol in ways(operation, comm):
        if ALGORITHMS[algorithm].OPTIMAL and protocol == "simple":
            ideal_s = size * out_of_a_node(operation, comm, ()) / got_Bps
            slack = comm.nodes / (comm.nodes - 1) * 1.01
            assert ideal_s * 0.999 <= time_s(operation, (algorithm, protocol), size, comm)
            assert time_s(operation, (algorithm, protocol), size, comm) <= ideal_s * slack


@settings(deadline=None, max_examples=200)
@given(communicators(), st.sampled_from(OPERATIONS))
def test_optimal_algorithms_reach_one_asymptote_inside_a_node(comm, operation):
    """Alone on a node's links, nothing but the tail of the pipeline comes on top."""
    comm = replace(comm, nodes=1, ranks=max(2, comm.local))
    size = 2**60
    for algorithm, protocol in ways(operation, comm):
        if ALGORITHMS[algorithm].OPTIMAL and protocol == "simple":
            busbw = size / time_s(operation, (algorithm, protocol), size, comm)
            busbw *= bus_factor(operation, comm.ranks)
            assert 0.6 * ESTIMATOR.know.inside_Bps(comm) <= busbw
            assert busbw <= ESTIMATOR.know.inside_Bps(comm) * (1 + 1e-12)


@settings(deadline=None, max_examples=200)
@given(communicators(even=st.just(True)), st.integers(0, 2**50))
def test_what_has_phases_takes_the_sum_of_its_phases(comm, size):
    """Each phase is launched with the whole, so the launches of all but one come off; every phase
    ramps up at its own size, which tells only between the ends."""
    launch_s = ESTIMATOR.know.launch_s(comm)
    for name in ALGORITHMS:
        module = ALGORITHMS[name]
        for operation in module.OPERATIONS if hasattr(module, "phases") else ():
            if module.refusal(operation, comm):
                continue
            for protocol in module.PROTOCOLS:
                for bytes_ in (0, size + 2**58):
                    parts = [
                        time_s(op, ("ring", protocol), share * bytes_, who)
                        for op, share, who in module.phases(operation, comm)
                    ]
                    whole = time_s(operation, (name, protocol), bytes_, comm)
                    expected = sum(parts) - (len(parts) - 1) * launch_s
                    assert whole == pytest.approx(expected, rel=1e-6)


@settings(deadline=None, max_examples=300)
@given(communicators(), st.sampled_from(OPERATIONS), st.integers(1, 2**34), st.floats(1.0001, 3.0))
def test_what_nccl_chooses_never_takes_less_time_for_more_bytes(comm, operation, size, factor):
    smaller = ESTIMATOR.estimate(operation, size, comm).time_s
    assert smaller <= ESTIMATOR.estimate(operation, math.ceil(size * factor), comm).time_s * 1.0001


@settings(deadline=None, max_examples=200)
@given(communicators(), st.sampled_from(OPERATIONS), st.integers(1, 2**40))
def test_where_nccl_changes_its_mind_is_where_its_menu_says_so(comm, operation, size):
    menu = ESTIMATOR.menu(operation, comm)
    found = stretches(menu)
    if not menu:
        assert found == ()
        return
    last = [s for s in found if s.from_bytes <= size][-1]
    least = min(o.time_s(size) for o in menu)
    chosen = next(o for o in menu if (o.algorithm, o.protocol) == (last.algorithm, last.protocol))
    assert chosen.time_s(size) == pytest.approx(least, rel=1e-9)
    assert all(a.from_bytes < b.from_bytes for a, b in pairwise(found))


@settings(deadline=None)
@given(communicators(), st.sampled_from(OPERATIONS), st.integers(0, 2**50))
def test_one_rank_is_bounded_by_its_memory(comm, operation, size):
    alone = replace(comm, ranks=1, nodes=1)
    assert ESTIMATOR.estimate(operation, size, alone).time_s > 2 * size / comm.memory_Bps
