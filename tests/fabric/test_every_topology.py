"""What holds for every registered topology, the next one too: nothing here names one.

The oracles are the laws, a breadth-first search and a brute force over all halves of the network.
"""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive_fabric
from eastwest.errors import UserError
from eastwest.fabric import search
from eastwest.fabric.distance import (
    bisection_Bps,
    crossing,
    cuts,
    distances,
    pairs_by_switches,
)
from eastwest.fabric.laws import check_plan, components
from eastwest.fabric.plan import SERVER, TARGET, Demand, Plan, SwitchPorts
from eastwest.fabric.ports import end_names, numbered
from eastwest.fabric.topology import TOPOLOGIES
from eastwest.report.fabric_svg import fabric_svg

every = st.sampled_from(list(TOPOLOGIES))
quick = settings(deadline=None, max_examples=150)
small = st.builds(Demand, st.integers(1, 24), st.integers(1, 3), st.integers(1, 2))
BRUTE = 11  # switches of a part of the network whose halves are all tried


def planned(name: str, demand: Demand, radix: int, port_Bps: float = 1.0) -> Plan:
    """Return the plan with the topology's usual parameters; give up where it cannot be built."""
    topology = TOPOLOGIES[name]
    try:
        return topology.plan(topology.Params(), demand, SwitchPorts("sw", radix, port_Bps), "")
    except UserError:
        assume(False)
        raise


@quick
@given(every, small, st.integers(3, 16), st.integers(0, 6))
def test_plans_obey_the_laws(name: str, demand: Demand, radix: int, targets: int) -> None:
    check_plan(planned(name, demand, radix))
    with_targets = Demand(demand.servers, demand.rails, demand.planes, targets)
    check_plan(planned(name, with_targets, radix))


@quick
@given(every, small, st.integers(3, 12))
def test_distances_are_those_of_a_breadth_first_search(
    name: str, demand: Demand, radix: int
) -> None:
    plan, found = planned(name, demand, radix), Counter[int]()
    for port in range(demand.ports):
        found.update(naive_fabric.switches_from(plan, port).values())
    assert pairs_by_switches(plan) == found
    for distance in (*distances(plan), *search.distances(plan)):
        # A way has a link more than switches.
        assert sum(distance.crossing.links) == distance.crossing.hops + 1
    assert sum(d.pairs for d in search.distances(plan)) == found.total()


@quick
@given(every, small, st.integers(3, 12), st.data())
def test_a_way_is_as_long_as_a_search_finds_it(
    name: str, demand: Demand, radix: int, data: st.DataObject
) -> None:
    plan = planned(name, demand, radix)
    a, b = (data.draw(st.integers(0, plan.demand.ports - 1)) for _ in range(2))
    assume(a != b)
    hops = naive_fabric.switches_on_the_way(plan, a, b)
    searched = search.between(plan, a, b)
    assert (searched and searched.hops) == hops
    if hops is None:
        with pytest.raises(UserError, match="separate parts"):
            crossing(plan, a, b)
    else:
        assert crossing(plan, a, b).hops == hops
        assert sum(crossing(plan, a, b).links) == hops + 1


def _brute_Bps(plan: Plan) -> float:
    """Every division of the switches: links that cross, and a cable for each misplaced port."""
    ends, switches = plan.trunk_ends(), plan.starts()[-1]
    rates = [links.rate_Bps for links in plan.trunks for _ in range(links.count)]
    ports = np.bincount(plan.attach_switch(), minlength=switches)
    part, total = components(switches, ends), 0.0
    for number in sorted(set(part[ports > 0].tolist())):
        own = [i for i in range(switches) if part[i] == number]
        assume(len(own) <= BRUTE)
        half, best = int(ports[own].sum()) / 2, float("inf")
        for chosen in itertools.product((False, True), repeat=len(own)):
            side = dict(zip(own, chosen, strict=True))
            cut = sum(
                rate
                for (a, b), rate in zip(ends.tolist(), rates, strict=True)
                if side.get(a, False) != side.get(b, False)
            )
            wrong = abs(sum(int(ports[i]) for i in own if side[i]) - half)
            best = min(best, cut + int(wrong) * plan.attach.rate_Bps)
        total += best
    return total


@settings(deadline=None, max_examples=60)
@given(
    every,
    st.builds(Demand, st.integers(1, 12), st.integers(1, 2), st.integers(1, 2)),
    st.integers(3, 8),
)
def test_bisection_is_the_least_over_all_halves(name: str, demand: Demand, radix: int) -> None:
    plan = planned(name, demand, radix, 50e9)
    assert bisection_Bps(plan) == pytest.approx(_brute_Bps(plan))
    assert bisection_Bps(plan) <= demand.ports * 50e9 / 2 * (1 + 1e-9)


@quick
@given(every, small, st.integers(3, 12))
def test_no_part_sends_more_than_the_links_that_leave_it(
    name: str, demand: Demand, radix: int
) -> None:
    plan = planned(name, demand, radix, 50e9)
    rates = [links.rate_Bps for links in plan.trunks for _ in range(links.count)]
    whole_Bps = 2 * sum(rates)
    for cut in cuts(plan):
        assert len(cut.part) == demand.ports
        assert int(cut.part.max(initial=0)) < len(cut.out_Bps)
        assert 0 <= float(cut.out_Bps.sum()) <= whole_Bps * (1 + 1e-9)


@quick
@given(every, small, st.integers(3, 16))
def test_every_cable_has_a_port_of_its_own_at_both_ends(
    name: str, demand: Demand, radix: int
) -> None:
    plan = planned(name, demand, radix)
    taken: set[tuple[str, int, int]] = set()
    for links, (lower, upper) in zip(plan.links, numbered(plan), strict=True):
        for end, (role, ports) in enumerate(((links.lower, lower), (links.upper, upper))):
            if role in (SERVER, TARGET):
                continue
            keys = {
                (role, int(switch), int(port))
                for switch, port in zip(links.ends[:, end], ports, strict=True)
            }
            assert len(keys) == links.count
            assert not keys & taken
            assert all(1 <= port <= radix for _, _, port in keys)
            taken |= keys


@quick
@given(every, small, st.integers(1, 24), st.integers(3, 16))
def test_a_network_that_grows_in_its_shape_moves_no_server_cable(
    name: str, demand: Demand, more: int, radix: int
) -> None:
    before = planned(name, demand, radix)
    larger = Demand(demand.servers + more, demand.rails, demand.planes)
    after = planned(name, larger, radix)
    assume([role.name for role in before.roles] == [role.name for role in after.roles])
    assume(before.ports(0) == after.ports(0))
    old, new = (numbered(plan)[0][1] for plan in (before, after))
    for cable in range(before.attach.count):
        assert end_names(before, before.attach, cable) == end_names(after, after.attach, cable)
        assert old[cable] == new[cable]


@settings(deadline=None, max_examples=40)
@given(every, small, st.integers(3, 16))
def test_a_drawing_shows_or_counts_every_switch(name: str, demand: Demand, radix: int) -> None:
    plan = planned(name, demand, radix)
    svg = fabric_svg(plan)
    assert svg.startswith("<svg")
    for role in plan.roles:
        assert f"{role.count:,} {role.name}" in svg


@pytest.mark.parametrize("name", list(TOPOLOGIES))
@pytest.mark.parametrize("radix", [4, 8, 20])
def test_the_largest_network_can_be_built_and_a_larger_one_is_refused(
    name: str, radix: int
) -> None:
    topology, switch = TOPOLOGIES[name], SwitchPorts("sw", radix)
    most = topology.largest(topology.Params(), Demand(1, 2), switch)
    if most:
        check_plan(topology.plan(topology.Params(), Demand(most, 2), switch, ""))
    with pytest.raises(UserError):
        topology.plan(topology.Params(), Demand(most + 1, 2), switch, "")
