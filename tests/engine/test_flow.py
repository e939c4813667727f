"""The flow engine against its naive twin, and what it promises beyond the contract."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.traffic import NO_CHANGES, Changes, messages
from laws import simulated
from naive_flows import Flow, run
from networks import leaf_spine, way

LEAVES, HOSTS, SPINES = 2, 2, 2
ENDS = st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda e: e[0] != e[1])
SOME = st.sampled_from([0.0, 0.5, 1.0, 2.0])


@st.composite
def traffic(draw):
    """Flows between hosts, with what each may have; a flow needs only earlier ones."""
    net = leaf_spine(LEAVES, HOSTS, SPINES, 1.0, draw(st.sampled_from([0.5, 1.0])))
    ends = draw(st.lists(ENDS, min_size=1, max_size=8))
    ways = [way(a, b, LEAVES, HOSTS, draw(st.integers(0, 1))) for a, b in ends]
    flows = [
        Flow(
            {net.ends.index(hop): 1.0 for hop in pairwise(w)},
            size=draw(st.sampled_from([0.0, 0.25, 1.0, 3.0])),
            start=draw(SOME),
            delay=draw(SOME),
            latency=draw(SOME),
            cap=draw(st.sampled_from([np.inf, 0.3, 0.75])),
            weight=draw(st.sampled_from([1.0, 3.0])),
            needs=draw(st.lists(st.integers(0, i - 1), max_size=2, unique=True)) if i else [],
        )
        for i, w in enumerate(ways)
    ]
    times = draw(st.lists(st.sampled_from([0.0, 0.7, 1.5, 4.0]), max_size=3, unique=True))
    changes = [
        (time, draw(st.integers(0, len(net.ends) - 1)), draw(st.sampled_from([0.1, 0.5, 2.0])))
        for time in sorted(times)
    ]
    return net, ends, ways, flows, changes


@given(traffic())
@settings(max_examples=200)
def test_times_equal_those_of_the_naive_event_loop(case):
    net, ends, ways, flows, changes = case
    work = messages(
        [a for a, _ in ends],
        [b for _, b in ends],
        [f.size for f in flows],
        [f.start for f in flows],
        [f.delay for f in flows],
        [f.latency for f in flows],
        [f.cap for f in flows],
        [f.weight for f in flows],
        needs=[(i, n) for i, f in enumerate(flows) for n in f.needs],
    )
    columns = [np.array(column) for column in zip(*changes, strict=True)]
    change = Changes(columns[0], columns[1], columns[2]) if changes else NO_CHANGES
    time = simulated("flow", net.links, work, net.through(*ways), change)
    expected = run(flows, net.rates, changes)
    assert time.start_s == pytest.approx([e[0] for e in expected], rel=1e-9)
    assert time.sent_s == pytest.approx([e[1] for e in expected], rel=1e-9)
    assert time.finish_s == pytest.approx([e[2] for e in expected], rel=1e-9)


def test_equal_messages_are_one_flow_to_the_solver():
    net = leaf_spine(2, 2, 1, 1.0, 1.0)
    ways = [way(0, 2, 2, 2, 0)] * 1000
    time = simulated("flow", net.links, messages([0] * 1000, 2, 1.0), net.through(*ways))
    assert time.finish_s == pytest.approx(1000.0)
    assert (time.events, time.solved) == (2, 1)


def test_an_event_solves_only_those_whom_it_touches():
    net = leaf_spine(8, 2, 1, 1.0, 8.0)
    pairs = [(2 * leaf, 2 * leaf + 1) for leaf in range(8)]
    work = messages([a for a, _ in pairs], [b for _, b in pairs], 1.0, start_s=np.arange(8.0) / 16)
    time = simulated("flow", net.links, work, net.through(*[way(a, b, 8, 2, 0) for a, b in pairs]))
    assert time.finish_s == pytest.approx(1.0 + np.arange(8.0) / 16)
    assert time.solved == 8
