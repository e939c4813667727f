"""What any engine must do: closed forms, laws, and one message for what cannot be."""

from __future__ import annotations

from typing import get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.engine import ENGINES, Engine
from eastwest.errors import UserError
from eastwest.traffic import Changes, Links, RouteSet, messages, single_paths
from laws import simulated
from networks import Drawn, chain, leaf_spine, star, way

GB = 1e9
engines = pytest.mark.parametrize("engine", list(ENGINES))


@engines
def test_an_engine_has_the_functions_of_the_contract(engine: str):
    assert get_type_hints(ENGINES[engine].simulate) == get_type_hints(Engine.simulate)


@engines
@pytest.mark.parametrize("hops", [1, 2, 5])
def test_one_message_takes_its_bytes_over_the_slowest_link_plus_all_latencies(engine, hops):
    net = chain(hops, 4 * GB, 2e-6)
    net.rates[0] = 1 * GB
    work = messages(0, hops, 1e6, start_s=1.0, delay_s=3e-6, latency_s=5e-6)
    time = simulated(engine, net.links, work, net.through(list(range(hops + 1))))
    assert time.start_s[0] == 1.0
    assert time.sent_s[0] - 1.0 == pytest.approx(3e-6 + 1e-3)
    assert time.finish_s[0] - 1.0 == pytest.approx(3e-6 + 1e-3 + 5e-6 + hops * 2e-6)


@engines
def test_the_sender_is_done_before_the_receiver(engine):
    net = star(2, 1.0, latency_s=10.0)
    time = simulated(engine, net.links, messages(0, 1, 1.0), net.through([0, 2, 1]))
    assert (time.sent_s[0], time.finish_s[0]) == (1.0, 21.0)


@engines
def test_a_message_without_bytes_takes_the_latency_alone(engine):
    net = star(2, 1.0, latency_s=2.0)
    work = messages(0, 1, 0.0, start_s=1.0, delay_s=0.5)
    time = simulated(engine, net.links, work, net.through([0, 2, 1]))
    assert time.finish_s[0] == 5.5


@engines
@pytest.mark.parametrize("n", [1, 2, 7, 64])
def test_n_messages_on_one_link_share_it(engine, n):
    net = chain(1, 1 * GB)
    work = messages([0] * n, 1, 1e6)
    time = simulated(engine, net.links, work, net.through(*[[0, 1]] * n))
    assert time.finish_s == pytest.approx(n * 1e-3)
    assert time.link_peak_flows.tolist() == [n, 0]
    assert time.link_held_s[0] == pytest.approx(n * n * 1e-3)
    assert time.link_lost_bytes[0] == pytest.approx(n * (n - 1) * 1e6)


@engines
def test_weights_divide_a_link_and_caps_leave_room_to_others(engine):
    net = chain(1, 6.0)
    two = simulated(
        engine,
        net.links,
        messages([0, 0], 1, [2.0, 4.0], weight=[1, 2]),
        net.through([0, 1], [0, 1]),
    )
    assert two.finish_s == pytest.approx(1.0)
    capped = simulated(
        engine,
        net.links,
        messages([0, 0], 1, [1.0, 5.0], cap_Bps=[1.0, np.inf]),
        net.through([0, 1], [0, 1]),
    )
    assert capped.finish_s == pytest.approx(1.0)


@engines
@pytest.mark.parametrize("hops", [1, 2, 3, 10])
def test_in_a_parking_lot_the_long_flow_gets_half_of_every_link(engine, hops):
    net = chain(hops)
    ways = [list(range(hops + 1)), *([a, a + 1] for a in range(hops))]
    work = messages([w[0] for w in ways], [w[-1] for w in ways], [1.0] + [0.5] * hops)
    time = simulated(engine, net.links, work, net.through(*ways))
    # All get a half; when the short ones have ended, the long one has half its bytes left.
    assert time.finish_s[1:] == pytest.approx(1.0)
    assert time.finish_s[0] == pytest.approx(1.5)


@engines
@pytest.mark.parametrize("pairs", [2, 3, 8])
def test_a_dumbbell_is_shared_by_its_pairs(engine, pairs):
    net = leaf_spine(2, pairs, 1, 10.0, up_Bps=10.0)
    ways = [way(i, pairs + i, 2, pairs, 0) for i in range(pairs)]
    work = messages(range(pairs), range(pairs, 2 * pairs), 10.0)
    time = simulated(engine, net.links, work, net.through(*ways))
    assert time.finish_s == pytest.approx(float(pairs))


@engines
@pytest.mark.parametrize("senders", [1, 2, 16])
def test_incast_is_as_slow_as_the_receivers_link(engine, senders):
    net = star(senders + 1, 1 * GB)
    ways = [[i + 1, senders + 1, 0] for i in range(senders)]
    time = simulated(engine, net.links, messages(range(1, senders + 1), 0, 1e6), net.through(*ways))
    assert time.finish_s == pytest.approx(senders * 1e-3)


@engines
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_a_permutation_on_a_full_fat_tree_runs_at_line_rate_if_spines_are_chosen_well(engine, seed):
    leaves, hosts = 4, 4
    net, total = leaf_spine(leaves, hosts, hosts, 1.0, 1.0), leaves * hosts
    # Shifting whole leaves, the i-th host of each over the i-th spine: no two share a link.
    shift = np.random.default_rng(seed).integers(1, leaves)
    ways = [way(h, (h + shift * hosts) % total, leaves, hosts, h % hosts) for h in range(total)]
    work = messages(range(total), [w[-1] for w in ways], 1.0)
    time = simulated(engine, net.links, work, net.through(*ways))
    assert time.finish_s == pytest.approx(1.0)
    # All over the first spine, they share its links.
    ways = [way(h, (h + shift * hosts) % total, leaves, hosts, 0) for h in range(total)]
    time = simulated(engine, net.links, work, net.through(*ways))
    assert time.finish_s == pytest.approx(float(hosts))


@engines
def test_a_message_split_over_two_ways_has_the_rate_of_both(engine):
    net = Drawn()
    for middle in (1, 2):
        net.link(0, middle, 1.0)
        net.link(middle, 3, 1.0)
    routes = RouteSet(np.array([0, 4]), np.arange(4), np.full(4, 0.5))
    time = simulated(engine, net.links, messages(0, 3, 2.0), routes)
    assert time.finish_s[0] == pytest.approx(1.0)
    assert time.link_bytes.tolist() == [1.0] * 4


@engines
def test_a_message_waits_for_what_it_needs_to_arrive(engine):
    net = star(3, 1.0, latency_s=1.0)
    work = messages([0, 1], [1, 2], 1.0, needs=[(1, 0)])
    time = simulated(engine, net.links, work, net.through([0, 3, 1], [1, 3, 2]))
    assert time.start_s.tolist() == [0.0, 3.0]
    assert time.finish_s.tolist() == [3.0, 6.0]


@engines
def test_a_group_moves_at_the_pace_of_its_slowest_edge(engine):
    net = chain(2, 1.0)
    net.rates[2] = 0.5
    work = messages([0, 1], [1, 2], 1.0, group=7)
    time = simulated(engine, net.links, work, net.through([0, 1], [1, 2]))
    assert time.finish_s == pytest.approx(2.0)


@engines
def test_a_lock_step_ring_takes_as_long_as_its_steps_written_out(engine):
    ranks, size = 6, 1.0
    net = star(ranks, 1.0)
    ways = [[r, ranks, (r + 1) % ranks] for r in range(ranks)]
    total = 2 * (ranks - 1) / ranks * size
    fluid = messages(range(ranks), [w[-1] for w in ways], total, group=0)
    once = simulated(engine, net.links, fluid, net.through(*ways)).end_s
    steps = 2 * (ranks - 1)
    needs = [
        (s * ranks + r, (s - 1) * ranks + (r - 1) % ranks)
        for s in range(1, steps)
        for r in range(ranks)
    ]
    ends = np.array([(w[0], w[-1]) for w in ways] * steps)
    work = messages(ends[:, 0], ends[:, 1], size / ranks, needs=needs)
    written = simulated(engine, net.links, work, net.through(*ways * steps)).end_s
    assert written == pytest.approx(once, rel=1e-9)


@engines
def test_a_link_that_fails_and_returns_holds_its_messages_meanwhile(engine):
    net = chain(1, 1.0)
    changes = Changes(np.array([1.0, 3.0, 4.0]), np.zeros(3, np.int64), np.array([0.0, 0.5, 1.0]))
    time = simulated(engine, net.links, messages(0, 1, 3.0), net.through([0, 1]), changes)
    assert time.finish_s[0] == pytest.approx(5.5)


@engines
@given(factor=st.sampled_from([2.0, 3.0, 10.0]), seed=st.integers(0, 99))
@settings(max_examples=20)
def test_slower_links_never_make_a_permutation_faster(engine, factor, seed):
    leaves, hosts = 3, 3
    target = np.random.default_rng(seed).permutation(9)
    source = np.flatnonzero(target != np.arange(9))
    ways = [way(int(s), int(target[s]), leaves, hosts, int(s) % 2) for s in source]
    work = messages(source, target[source], 1.0)
    ends = []
    for up in (1.0, 1.0 / factor):
        net = leaf_spine(leaves, hosts, 2, 1.0, up)
        ends.append(simulated(engine, net.links, work, net.through(*ways)).end_s)
    assert ends[1] >= ends[0] * (1 - 1e-9)


def _one(**fields: object):
    return messages(**({"source": 0, "target": 1, "size_bytes": 1.0} | fields))  # type: ignore[arg-type]


@engines
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"target": 0}, "message 0 goes from node 0 to itself"),
        (
            {"size_bytes": np.nan},
            "message 0 has a size of nan; expected a finite number, not negative",
        ),
        (
            {"size_bytes": np.inf},
            "message 0 has a size of inf; expected a finite number, not negative",
        ),
        (
            {"start_s": -1.0},
            "message 0 has a start of -1.0; expected a finite number, not negative",
        ),
        (
            {"delay_s": np.inf},
            "message 0 has a delay of inf; expected a finite number, not negative",
        ),
        (
            {"latency_s": -1.0},
            "message 0 has a latency of -1.0; expected a finite number, not negative",
        ),
        ({"cap_Bps": 0.0}, "message 0 is limited to 0.0 B/s; expected above 0"),
        ({"weight": 0.0}, "message 0 has a weight of 0.0; expected above 0 and finite"),
        ({"needs": [(0, 1)]}, "message 0 needs message 1, which does not exist; there are 1"),
        ({"needs": [(0, 0)]}, "messages wait for each other in a circle: 0 needs 0"),
    ],
)
def test_an_impossible_message_is_named(engine, fields, message):
    net = chain(1)
    with pytest.raises(UserError) as caught:
        ENGINES[engine].simulate(net.links, _one(**fields), net.through([0, 1]))
    assert str(caught.value) == message


@engines
def test_messages_that_wait_in_a_circle_are_all_named(engine):
    net = chain(1)
    work = messages([0] * 4, 1, 1.0, needs=[(1, 0), (1, 3), (2, 1), (3, 2)])
    with pytest.raises(UserError) as caught:
        ENGINES[engine].simulate(net.links, work, net.through(*[[0, 1]] * 4))
    assert str(caught.value) == (
        "messages wait for each other in a circle: 1 needs 3 needs 2 needs 1"
    )


@engines
def test_a_group_that_needs_itself_is_refused(engine):
    net = chain(2)
    work = messages([0, 1], [1, 2], 1.0, group=0, needs=[(1, 0)])
    with pytest.raises(UserError, match="in a circle: 0 needs 0"):
        ENGINES[engine].simulate(net.links, work, net.through([0, 1], [1, 2]))


@engines
def test_a_pair_without_a_route_is_named(engine):
    net = chain(2)
    for routes, why in (
        (single_paths([[0], []]), "message 1 has no route from node 0 to node 2"),
        (
            single_paths([[0], [0]]),
            "message 1 has a route that does not lead from node 0 to node 2",
        ),
    ):
        with pytest.raises(UserError) as caught:
            ENGINES[engine].simulate(net.links, messages([0, 0], [1, 2], 1.0), routes)
        assert str(caught.value) == why


@engines
@pytest.mark.parametrize(
    ("links", "message"),
    [
        (
            Links(np.array([0]), np.array([1]), np.array([0.0]), np.zeros(1)),
            "link 0 has a rate of 0.0 B/s; expected above 0 and finite",
        ),
        (
            Links(np.array([0]), np.array([1]), np.array([np.nan]), np.zeros(1)),
            "link 0 has a rate of nan B/s; expected above 0 and finite",
        ),
        (
            Links(np.array([1]), np.array([1]), np.ones(1), np.zeros(1)),
            "link 0 leads from node 1 to itself",
        ),
        (
            Links(np.array([0]), np.array([1]), np.ones(1), np.array([np.inf])),
            "link 0 has a latency of inf; expected a finite number, not negative",
        ),
    ],
)
def test_an_impossible_link_is_named(engine, links, message):
    with pytest.raises(UserError) as caught:
        ENGINES[engine].simulate(links, messages(0, 1, 1.0), single_paths([[0]]))
    assert str(caught.value) == message


@engines
def test_a_message_that_never_ends_is_named_with_its_link(engine):
    net = chain(2)
    changes = Changes(np.array([0.5]), np.array([2]), np.array([0.0]))
    work = messages([0, 0], [1, 2], 1.0)
    with pytest.raises(UserError) as caught:
        ENGINES[engine].simulate(net.links, work, net.through([0, 1], [0, 1, 2]), changes)
    assert str(caught.value) == "message 1 never ends: link 2 stays at rate 0"


@engines
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((0.0, 9, 1.0), "change 0 is of link 9, which does not exist of 2"),
        ((0.0, 0, -1.0), "change 0 has a rate of -1.0; expected a finite number, not negative"),
        ((np.inf, 0, 1.0), "change 0 has a time of inf; expected a finite number, not negative"),
    ],
)
def test_an_impossible_change_is_named(engine, change, message):
    net, (time, link, rate) = chain(1), change
    changes = Changes(np.array([time]), np.array([link]), np.array([rate]))
    with pytest.raises(UserError) as caught:
        ENGINES[engine].simulate(net.links, messages(0, 1, 1.0), net.through([0, 1]), changes)
    assert str(caught.value) == message
