"""Links that fail, flap, degrade and carry others' traffic; windows that open."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastwest.engine import ENGINES
from eastwest.errors import UserError
from eastwest.traffic import messages
from eastwest.traffic.conditions import (
    Condition,
    at_node,
    background,
    changes,
    degraded,
    failed,
    flapping,
)
from eastwest.traffic.delays import slow_start_s
from laws import simulated
from networks import chain, leaf_spine, star, way

engines = pytest.mark.parametrize("engine", list(ENGINES))


def end_s(engine: str, conditions: list[Condition], size: float = 4.0) -> float:
    """When a message over one link of 1 B/s has arrived."""
    net = chain(1)
    befalls = changes(net.links, conditions)
    time = simulated(engine, net.links, messages(0, 1, size), net.through([0, 1]), befalls)
    return time.end_s


@engines
@pytest.mark.parametrize(
    ("conditions", "end"),
    [
        ([], 4.0),
        (failed([0], 1.0, 3.0), 6.0),
        (degraded([0], 0.5), 8.0),
        (degraded([0], 0.25, 2.0, 6.0), 7.0),
        (background([0], 0.75), 16.0),
        (flapping([0], 1.0, 0.5, 2.0, times=5), 5.0),
        ([*degraded([0], 0.5), *background([0], 0.25)], 16.0),
        ([*failed([0], 0.0, 1.0), *degraded([0], 0.5, 0.0, 3.0)], 6.0),
        ([*background([0], 0.5, 0.0, 2.0), *background([0], 0.5, 0.0, 2.0)], 6.0),
        (failed([1]), 4.0),
    ],
)
def test_a_message_takes_as_long_as_its_link_lets_it(engine, conditions, end):
    assert end_s(engine, conditions) == pytest.approx(end)


@engines
def test_a_failed_switch_is_felt_by_those_who_cross_it(engine):
    net = leaf_spine(2, 2, 2, 1.0, 1.0)
    ways = [way(0, 2, 2, 2, spine=0), way(1, 3, 2, 2, spine=1)]
    spine = 4 + 2
    befalls = changes(net.links, failed(at_node(net.links, spine), 0.5, 2.5))
    work = messages([0, 1], [2, 3], 1.0)
    time = simulated(engine, net.links, work, net.through(*ways), befalls)
    assert time.finish_s == pytest.approx([3.0, 1.0])


@engines
def test_a_straggler_slows_all_who_move_in_lock_step_with_it(engine):
    ranks = 4
    net = star(ranks)
    ways = [[r, ranks, (r + 1) % ranks] for r in range(ranks)]
    work = messages(range(ranks), [w[-1] for w in ways], 1.0, group=0)
    slow = degraded([net.ends.index((2, ranks))], 0.5)
    time = simulated(engine, net.links, work, net.through(*ways), changes(net.links, slow))
    assert time.finish_s == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"share": 1.5}, "link 0 cannot have 1.5 of its rate; 0 to 1 can be"),
        ({"share": np.nan}, "link 0 cannot have nan of its rate; 0 to 1 can be"),
        ({"taken_Bps": -1.0}, "link 0 cannot lose -1.0 B/s"),
        ({"taken_Bps": np.inf}, "link 0 cannot lose inf B/s"),
        ({"from_s": 2.0, "until_s": 1.0}, "link 0: 2.0 s to 1.0 s is no time"),
        ({"from_s": -1.0}, "link 0: -1.0 s to inf s is no time"),
    ],
)
def test_an_impossible_condition_is_refused(arguments, message):
    with pytest.raises(UserError) as caught:
        Condition(0, **arguments)
    assert str(caught.value) == message


def test_what_cannot_befall_is_refused():
    with pytest.raises(UserError, match="there is no link 7 of 2"):
        changes(chain(1).links, failed([7]))
    with pytest.raises(UserError, match=r"down for 2\.0 s cannot flap every 1\.0 s"):
        flapping([0], 0.0, 2.0, 1.0, 3)


def waited_s(size: float, rtt: float, rate: float, window: float) -> float:
    """Slow start round by round, less the time at the full rate."""
    time = left = 0.0
    left = size
    while window < rate * rtt and left > window:
        left, time, window = left - window, time + rtt, 2 * window
    return time + left / rate - size / rate


@given(
    size=st.floats(1, 1e9),
    rtt=st.floats(1e-6, 0.1),
    rate=st.floats(1e6, 1e11),
    window=st.just(14600),
)
def test_slow_start_loses_what_its_rounds_leave_idle(size, rtt, rate, window):
    found = slow_start_s(np.array([size]), np.array([rtt]), np.array([rate]), window)[0]
    assert found == pytest.approx(waited_s(size, rtt, rate, window), rel=1e-6, abs=1e-9)


def test_a_message_of_one_window_and_a_short_network_lose_nothing():
    few = slow_start_s(np.array([1e4, 1e9]), np.array([0.1, 1e-6]), np.full(2, 1e9), 14600.0)
    assert few.tolist() == [0.0, 0.0]
