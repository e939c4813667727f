"""The kernels against their naive twins."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eastwest.kernels
from eastwest.kernels import heap, maxmin, order, walks
from eastwest.traffic import csr
from naive_flows import Flow, max_min


@given(st.lists(st.tuples(st.integers(0, 7), st.sampled_from([0.0, 1.0, 2.0, 2.5, np.inf]))))
def test_the_heap_gives_items_by_time_then_number_also_after_times_have_moved(moves):
    h, expected = heap.empty_heap(8), {}
    for item, time in moves:
        heap.set_time(h, item, time)
        expected[item] = time
        assert heap.earliest(h) == min(expected.values())
    assert h["who"][-1] == len(expected)
    popped = [heap.pop(h) for _ in range(len(expected))]
    assert popped == sorted(expected, key=lambda item: (expected[item], item))
    assert heap.earliest(h) == np.inf


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=10, max_size=10))
def test_levels_are_the_longest_chains_of_needs_and_circles_have_none(needs):
    first = np.cumsum([0, *map(len, needs)])
    level = np.empty(10, np.int64)
    done = order.levels(first, np.array([n for need in needs for n in need], np.int64), level)

    expected: dict[int, int] = {}
    for _ in range(10):
        for item, need in enumerate(needs):
            if all(n in expected for n in need):
                expected[item] = max((expected[n] + 1 for n in need), default=0)
    assert level.tolist() == [expected.get(item, -1) for item in range(10)]
    assert done == len(expected)


FLOWS = st.lists(
    st.builds(
        Flow,
        use=st.dictionaries(st.integers(0, 5), st.sampled_from([0.25, 0.5, 1.0, 2.0]), min_size=1),
        size=st.just(1.0),
        cap=st.sampled_from([np.inf, 0.1, 1.0, 3.0]),
        weight=st.sampled_from([0.5, 1.0, 2.0]),
    ),
    min_size=1,
    max_size=12,
)
CAPACITY = st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0, 7.0]), min_size=6, max_size=6)


def net_of(flows: list[Flow], capacity: list[float]) -> maxmin.Net:
    return maxmin.new_net(
        np.cumsum([0, *(len(f.use) for f in flows)]),
        np.array([link for f in flows for link in f.use], np.int64),
        np.array([use for f in flows for use in f.use.values()]),
        np.array([f.weight for f in flows]),
        np.array([f.cap for f in flows]),
        np.array(capacity),
    )


@given(FLOWS, CAPACITY, st.lists(st.integers(0, 11), max_size=30))
@settings(max_examples=300)
def test_rates_solved_in_part_equal_progressive_filling_of_the_whole(flows, capacity, turns):
    net, there = net_of(flows, capacity), []
    for turn in turns:
        flow = turn % len(flows)
        if flow in there:
            there.remove(flow)
            maxmin.leave(net, flow)
        else:
            there.append(flow)
            maxmin.enter(net, flow)
        maxmin.resolve(net)
        maxmin.release(net)
        expected = max_min([flows[f] for f in there], capacity)
        assert net.flow["rate"][there] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(FLOWS, CAPACITY)
@settings(max_examples=300)
def test_every_flow_is_at_its_cap_or_has_a_bottleneck(flows, capacity):
    net = net_of(flows, capacity)
    for flow in range(len(flows)):
        maxmin.enter(net, flow)
    maxmin.resolve(net)
    rate = net.flow["rate"].tolist()
    level = [r / f.weight for r, f in zip(rate, flows, strict=True)]
    load = [sum(r * f.use.get(k, 0) for r, f in zip(rate, flows, strict=True)) for k in range(6)]
    for k in range(6):
        assert load[k] <= capacity[k] * (1 + 1e-9)
    for i, flow in enumerate(flows):
        held = [
            k
            for k in flow.use
            if load[k] >= capacity[k] * (1 - 1e-9)
            and all(level[j] <= level[i] * (1 + 1e-9) for j, f in enumerate(flows) if k in f.use)
        ]
        bottleneck = net.flow["bottleneck"][i]
        assert rate[i] == pytest.approx(flow.cap) if bottleneck < 0 else bottleneck in held


LINKS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda ends: ends[0] != ends[1]),
    min_size=1,
    max_size=25,
).map(sorted)


def hops(links: list[tuple[int, int]], root: int) -> dict[int, int]:
    """Hops to the root; ways go on through even nodes only."""
    found = {root: 0}
    for _ in range(7):
        for a, b in links:
            if b in found and (b == root or b % 2 == 0):
                found[a] = min(found.get(a, 99), found[b] + 1)
    return found


def spread(links: list[tuple[int, int]], source: int, root: int) -> dict[int, float]:
    """The share of each link if every node hands on equal parts over all that lead nearer."""
    found, share, carried = hops(links, root), {source: 1.0}, dict[int, float]()
    for node in sorted(found, key=lambda n: -found[n]):
        nearer = [
            i
            for i, (a, b) in enumerate(links)
            if a == node and found.get(b, 99) == found[node] - 1 and (b % 2 == 0 or b == root)
        ]
        for i in nearer if share.get(node) and node != root else []:
            carried[i] = share[node] / len(nearer)
            share[links[i][1]] = share.get(links[i][1], 0.0) + carried[i]
    return carried


@given(LINKS, st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=8))
@settings(max_examples=200)
def test_ways_are_the_shortest_and_sprayed_ones_take_equal_shares(links, pairs):
    pairs.sort(key=lambda pair: pair[1])
    source, target = (np.array(column) for column in zip(*links, strict=True))
    number = np.arange(len(links))
    graph = walks.Graph(
        source, target, *csr(source, number, 7), *csr(target, number, 7), np.arange(7) % 2 == 0
    )
    starts, roots = (np.array(column) for column in zip(*pairs, strict=True))
    ends = walks.Ends(starts, roots, starts * 7 + roots, roots)
    for law in (walks.HASH, walks.SHARED_HASH, walks.MODULO, walks.ALL):
        first, link, share = walks.walk_all(graph, ends, law, 1)
        for i, (start, root) in enumerate(pairs):
            row, shares = link[first[i] : first[i + 1]], share[first[i] : first[i + 1]]
            expected = spread(links, start, root)
            if law == walks.ALL:
                assert dict(zip(row.tolist(), shares, strict=True)) == pytest.approx(expected)
            else:
                assert len(row) == hops(links, root).get(start, 0)
                assert set(row.tolist()) <= set(expected)
                assert shares.tolist() == [1.0] * len(row)


def test_kernels_import_nothing_but_numbers_and_each_other():
    for path in Path(eastwest.kernels.__path__[0]).glob("[!_]*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                allowed = ("numpy", "numba", "typing", "__future__", "eastwest.kernels")
                assert name.startswith(allowed), f"{path.name} imports {name}"
