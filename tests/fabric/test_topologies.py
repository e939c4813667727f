"""What holds for every leaf-spine network, whatever its size; and what is refused."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive_fabric
from eastwest.errors import InternalError, UserError
from eastwest.fabric.distance import (
    bisection_Bps,
    mean_switches,
    pairs_by_switches,
    switches_between,
    worst_switches,
)
from eastwest.fabric.laws import check_plan
from eastwest.fabric.plan import Demand, Plan, SwitchPorts
from eastwest.fabric.topology import TOPOLOGIES, star
from eastwest.spec.marks import Marks
from eastwest.spec.parse import parse

NAIVE = {
    "rail-optimised": naive_fabric.rail_optimised,
    "fat-tree": naive_fabric.fat_tree,
    "rail-only": naive_fabric.rail_only,
}
RATIOS = [1.0, 4 / 3, 1.5, 2.0, 3.0, 0.5]
quick = settings(deadline=None, max_examples=60)
names = st.sampled_from(sorted(NAIVE))
radices = st.integers(4, 40)
ratios = st.sampled_from(RATIOS)


def make(name: str, demand: Demand, radix: int, **says: Any) -> Plan:
    topology = TOPOLOGIES[name]
    return topology.plan(
        topology.Params(**says), demand, SwitchPorts("sw", radix), "c.yaml:4:3: networks.compute"
    )


def make_or_skip(name: str, demand: Demand, radix: int, **says: Any) -> Plan:
    try:
        return make(name, demand, radix, **says)
    except UserError:
        assume(False)
        raise


def leaf_spine(name: str, demand: Demand, radix: int, ratio: float, **says: Any) -> Plan:
    """A network with spines even where one switch would do: what is asked of leaves is said, so
    none is left out."""
    down, up = naive_fabric.split(radix, ratio)
    return make_or_skip(name, demand, radix, leaf_down=down, uplinks=up, **says)


@quick
@given(names, st.integers(1, 90), st.integers(1, 4), st.integers(1, 2), radices, ratios)
def test_the_plan_equals_its_naive_twin(
    name: str, servers: int, rails: int, planes: int, radix: int, ratio: float
) -> None:
    twin = NAIVE[name](servers, rails, planes, radix, ratio)
    demand = Demand(servers, rails, planes)
    if twin is None:
        with pytest.raises(UserError, match=r"holds at most|a pod of"):
            leaf_spine_or_error(name, demand, radix, ratio)
        return
    plan = leaf_spine_or_error(name, demand, radix, ratio)
    found = [role.count for role in plan.roles] + [0, 0]
    assert found[:3] == [twin.leaves, twin.spines, twin.cores]
    for links, cables in zip(plan.links, twin.cables, strict=False):
        assert Counter(map(tuple, links.ends.tolist())) == cables


def leaf_spine_or_error(name: str, demand: Demand, radix: int, ratio: float) -> Plan:
    down, up = naive_fabric.split(radix, ratio)
    return make(name, demand, radix, leaf_down=down, uplinks=up)


@quick
@given(
    names,
    st.integers(1, 300),
    st.integers(1, 8),
    st.integers(1, 2),
    radices,
    ratios,
    st.booleans(),
    st.booleans(),
    st.integers(0, 20),
)
def test_every_plan_holds_its_properties_and_conserves_ports(
    name: str,
    servers: int,
    rails: int,
    planes: int,
    radix: int,
    ratio: float,
    equal: bool,
    by_rail: bool,
    targets: int,
) -> None:
    says: dict[str, Any] = {"oversubscription": ratio, "equal_links": equal}
    if name == "rail-optimised":
        says["rail_spines"] = by_rail
    demand = Demand(servers, rails, planes, 0 if name == "rail-only" else targets)
    plan = make_or_skip(name, demand, radix, **says)
    check_plan(plan)
    assert plan.attach.count == servers * rails * planes
    assert plan.switches == sum(role.count for role in plan.roles)
    for links in plan.links:  # cables counted below equal cables counted above
        upper = plan.roles[plan.role(links.upper)]
        assert np.bincount(links.ends[:, 1], minlength=upper.count).sum() == links.count
        assert np.bincount(links.ends[:, 1]).max() <= radix


@quick
@given(names, st.integers(1, 150), st.integers(1, 150), st.integers(1, 8), radices, ratios)
def test_more_servers_never_need_fewer_switches_or_cables(
    name: str, few: int, more: int, rails: int, radix: int, ratio: float
) -> None:
    few, more = sorted((few, more))
    large = leaf_spine(name, Demand(more, rails), radix, ratio)
    small = leaf_spine(name, Demand(few, rails), radix, ratio)
    for small_tier, large_tier in itertools.zip_longest(small.roles, large.roles):
        assert small_tier is None or small_tier.count <= large_tier.count
    for small_count, large_count in itertools.zip_longest(small.cables, large.cables, fillvalue=0):
        assert small_count <= large_count


@quick
@given(names, st.integers(1, 6), st.integers(2, 4), st.integers(2, 16), st.sampled_from([1, 2, 3]))
def test_bisection_of_a_full_network_is_what_the_ratio_says(
    name: str, units: int, rails: int, up: int, ratio: int
) -> None:
    radix = up * (1 + ratio)
    demand = Demand(2 * units * up * ratio, rails)  # two halves of whole leaves
    plan = leaf_spine(name, demand, radix, ratio)
    assume(len(plan.roles) == 2 or plan.ports(1)[0] == plan.ports(1)[1])
    assert bisection_Bps(plan) == pytest.approx(demand.ports / 2 / ratio)


@quick
@given(names, st.integers(1, 40), st.integers(1, 4), st.integers(4, 12), st.booleans(), st.data())
def test_switches_between_ports_are_those_that_a_search_finds(
    name: str, servers: int, rails: int, radix: int, by_rail: bool, data: st.DataObject
) -> None:
    says = {"rail_spines": by_rail} if name == "rail-optimised" else {}
    plan = make_or_skip(name, Demand(servers, rails), radix, **says)
    a, b = (data.draw(st.integers(0, plan.demand.ports - 1)) for _ in range(2))
    found = naive_fabric.switches_on_the_way(plan, a, b)
    if found is None:
        with pytest.raises(UserError, match="separate parts"):
            switches_between(plan, a, b)
    else:
        assert switches_between(plan, a, b) == found


@pytest.mark.parametrize("name", sorted(NAIVE))
def test_mean_and_worst_distance_equal_those_over_all_pairs(name: str) -> None:
    plan = make(name, Demand(40, 2), 8)
    pairs = []
    for a, b in itertools.permutations(range(plan.demand.ports), 2):
        if naive_fabric.switches_on_the_way(plan, a, b) is not None:
            pairs.append(switches_between(plan, a, b))
    assert mean_switches(plan) == pytest.approx(np.mean(pairs))
    assert worst_switches(plan) == max(pairs)
    assert pairs_by_switches(plan) == Counter(pairs)


def test_distances_of_a_three_tier_rail_optimised_network() -> None:
    plan = make("rail-optimised", Demand(512, 8), 64)
    assert switches_between(plan, 0, 0) == 0
    assert switches_between(plan, 0, 8) == 1  # rail 0 of servers 0 and 1: one leaf
    assert switches_between(plan, 0, 1) == 3  # rails 0 and 1 of server 0
    assert switches_between(plan, 0, 32 * 8) == 3  # the next unit, in the same pod of four
    assert switches_between(plan, 0, 128 * 8) == 5  # the next pod


def test_rails_of_rail_only_do_not_reach_each_other() -> None:
    plan = make("rail-only", Demand(64, 8), 64)
    with pytest.raises(UserError) as caught:
        switches_between(plan, 0, 1)
    assert str(caught.value) == (
        "ports 0 and 1 are in separate parts of a rail-only network: no switch joins them"
        " (send within one rail and plane; NVLink joins the rails of a server)"
    )
    with pytest.raises(UserError, match="there is no port 512; the network has ports 0 to 511"):
        switches_between(plan, 0, 512)


@pytest.mark.parametrize(
    ("radix", "servers"), [(4, 4 * 4), (8, 8 * 16), (16, 16 * 64), (64, 64 * 1024)]
)
def test_a_fat_tree_of_three_tiers_holds_a_quarter_of_the_cube(radix: int, servers: int) -> None:
    """k³/4 hosts, and 5k²/4 switches (Al-Fares et al., SIGCOMM 2008)."""
    topology = TOPOLOGIES["fat-tree"]
    assert (
        topology.largest(topology.Params(), Demand(1, 1), SwitchPorts("sw", radix))
        == servers
        == radix**3 // 4
    )
    assert make("fat-tree", Demand(servers, 1), radix).switches == 5 * radix**2 // 4


@pytest.mark.parametrize("name", sorted(NAIVE))
@pytest.mark.parametrize("radix", [8, 20, 64])
def test_the_largest_number_fits_and_one_more_is_refused_with_that_number(
    name: str, radix: int
) -> None:
    topology = TOPOLOGIES[name]
    most = topology.largest(topology.Params(), Demand(1, 4), SwitchPorts("sw", radix))
    check_plan(make(name, Demand(most, 4), radix))
    with pytest.raises(UserError, match=f"holds at most {most:,} servers, not {most + 1:,}"):
        make(name, Demand(most + 1, 4), radix)


def test_small_networks_are_one_switch_unless_tiers_are_stated() -> None:
    for name in ("fat-tree", "rail-optimised"):
        assert make(name, Demand(8, 8), 64).switches == 1
        assert make(name, Demand(8, 8), 64, oversubscription="2:1").switches == 1
        assert len(make(name, Demand(8, 8), 64, tiers=2).roles) == 2


def test_an_odd_radix_leaves_a_port_unused() -> None:
    plan = make("fat-tree", Demand(60, 1), 13)
    assert plan.ports(0) == (6, 6, 0)
    check_plan(plan)


def test_spines_of_another_switch_are_named() -> None:
    plan = make("fat-tree", Demand(64, 8), 64, spine_switch="big", spine_radix=576)
    assert plan.roles[0].switch == plan.switch
    assert plan.roles[1].switch == SwitchPorts("big", 576)


def test_unequal_links_need_the_fewest_spines() -> None:
    assert make("rail-optimised", Demand(96, 8), 64).roles[1].count == 16
    plan = make("rail-optimised", Demand(96, 8), 64, equal_links=False)
    check_plan(plan)
    assert plan.roles[1].count == 12


def test_rails_with_spines_of_their_own_meet_in_the_core() -> None:
    plan = make("rail-optimised", Demand(140, 8), 40, servers_per_unit=20, rail_spines=True)
    assert switches_between(plan, 0, 20 * 8) == 3  # the same rail of the next unit
    assert switches_between(plan, 0, 1) == 5  # the next rail
    # Ten spines a rail in two groups of five, each group on 14 of the 28 cores with one link to
    # each.
    spine, core = plan.links[2].ends.T
    cores_of = [sorted(core[spine == number].tolist()) for number in range(80)]
    assert cores_of == [
        list(range(14)) if spine % 10 < 5 else list(range(14, 28)) for spine in range(80)
    ]
    apart = make(
        "rail-optimised", Demand(140, 8), 40, servers_per_unit=20, rail_spines=True, tiers=2
    )
    check_plan(apart)
    assert "no cores: rails are apart, and spines keep ports free for cores" in apart.notes


REFUSED: list[tuple[str, Demand, dict[str, Any], str]] = [
    (
        "fat-tree",
        Demand(64, 8),
        {"tiers": 2, "cores": 8},
        "cores is stated, but a network of tiers: 2 has no use for it",
    ),
    (
        "fat-tree",
        Demand(4, 8),
        {"tiers": 1, "spines": 8},
        "spines is stated, but a network of tiers: 1 has no use for it",
    ),
    (
        "rail-optimised",
        Demand(512, 8),
        {"rail_spines": True, "leaves_per_pod": 32},
        "with rail_spines a pod is a rail (leave leaves_per_pod out)",
    ),
    (
        "rail-optimised",
        Demand(10_000, 8),
        {},
        "rail-optimised with sw (64 ports) holds at most 8,192 servers, not 10,000"
        " (a switch with 72 ports or topology rail-only would do)",
    ),
    (
        "rail-optimised",
        Demand(300, 8),
        {"tiers": 2},
        "rail-optimised with sw (64 ports) holds at most 256 servers, not 300"
        " (more tiers or topology rail-only would do)",
    ),
    (
        "rail-optimised",
        Demand(64, 72),
        {},
        "a pod of 72 leaves is more than spines with 32 ports down hold"
        " (a switch with 128 ports or topology rail-only would do)",
    ),
    (
        "rail-optimised",
        Demand(128, 8),
        {"spines": 12},
        "32 leaves with 32 uplinks each are 1,024 cables, but 12 spines with 64 ports each "
        "take 768 (spines: 16, 32)",
    ),
    (
        "rail-optimised",
        Demand(128, 8),
        {"spines": 20},
        "32 uplinks of a leaf do not divide equally over 20 spines (spines: 16, 32, or "
        "equal_links: false)",
    ),
    (
        "rail-optimised",
        Demand(128, 8),
        {"spines": 64},
        "a leaf with 32 uplinks cannot reach each of 64 spines (spines: 16, 32)",
    ),
    (
        "fat-tree",
        Demand(64, 8, 2),
        {"spines": 5},
        "5 spines are no whole number for each of 2 separate islands (spines: 16, 32, 64)",
    ),
    (
        "rail-optimised",
        Demand(1024, 8),
        {"spines": 24},
        "24 spines cannot serve 8 pods of 32 leaves with 32 uplinks each (spines: 256)",
    ),
    (
        "rail-optimised",
        Demand(1024, 8),
        {"cores": 100},
        "100 cores do not join 8 pods equally (cores: 128, 256, 512, 1024)",
    ),
    (
        "fat-tree",
        Demand(128, 8),
        {"leaf_down": 40, "uplinks": 32},
        "40 server ports and 32 uplinks of a leaf are more than the 64 ports of sw"
        " (with 40 server ports at most 24 uplinks are left)",
    ),
    (
        "fat-tree",
        Demand(128, 8),
        {"leaf_down": 40, "uplinks": 20, "oversubscription": 1},
        "40 server ports and 20 uplinks of a leaf are 2:1, not 1:1 as stated"
        " (leave uplinks out (then 40), or the oversubscription)",
    ),
    (
        "rail-optimised",
        Demand(128, 8),
        {"leaf_down": 40, "servers_per_unit": 20},
        "a unit of 20 servers needs as many ports of a leaf, not 40 (leave out leaf_down)",
    ),
    (
        "rail-optimised",
        Demand(64, 8),
        {"leaves": 10},
        "10 leaves are not whole sets of 8 (a unit of 32 servers has 8 leaves)",
    ),
    (
        "rail-optimised",
        Demand(64, 8),
        {"leaves": 8},
        "8 leaves are too few; the servers need 16 (a unit of 32 servers has 8 leaves)",
    ),
    ("fat-tree", Demand(64, 8), {"spine_ports": 80}, "spine_ports is 80, but a spine has 64 ports"),
    (
        "fat-tree",
        Demand(64, 8),
        {"uplinks": 64},
        "a leaf of sw has no port for servers with 64 uplinks",
    ),
    (
        "fat-tree",
        Demand(64, 8),
        {"spine_switch": "big"},
        "the ports of spine switch 'big' are missing (state spine_radix)",
    ),
    (
        "rail-only",
        Demand(64, 8, 1, 4),
        {},
        "rail-only has no place for targets that all rails reach (use fat-tree for storage)",
    ),
    (
        "fat-tree",
        Demand(64, 8, 1, 100),
        {"target_leaves": 2},
        "2 target leaves have 64 ports at 1:1 for 100 target ports (4 are enough)",
    ),
    (
        "fat-tree",
        Demand(64, 8),
        {"target_leaves": 2},
        "leaves for targets are stated, but there are no targets",
    ),
]


@pytest.mark.parametrize(("name", "demand", "says", "message"), REFUSED)
def test_what_cannot_be_built_is_refused_with_the_reason_and_a_way_out(
    name: str, demand: Demand, says: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        make(name, demand, 64, **says)
    assert str(caught.value) == f"c.yaml:4:3: networks.compute: {message}"


def test_parameters_read_ratios_and_name_misspelt_keys() -> None:
    topology = TOPOLOGIES["rail-optimised"]
    assert parse(
        topology.Params, {"oversubscription": "4:3"}, Marks()
    ).oversubscription == pytest.approx(4 / 3)  # type: ignore[attr-defined]
    with pytest.raises(UserError, match="did you mean 'servers_per_unit'"):
        parse(topology.Params, {"server_per_unit": 16}, Marks())
    with pytest.raises(UserError, match="is not a ratio"):
        parse(topology.Params, {"oversubscription": "two"}, Marks())


@pytest.mark.parametrize("name", [*NAIVE, "star"])
def test_every_parameter_is_described_and_has_a_schema(name: str) -> None:
    params = star.Params if name == "star" else TOPOLOGIES[name].Params
    assert all(info.description for info in params.model_fields.values())
    assert json.dumps(params.model_json_schema())
    assert params.model_config["extra"] == "forbid"
    assert params.model_config["frozen"]


def test_a_plan_with_a_doubled_port_fails_its_check() -> None:
    plan = make("fat-tree", Demand(64, 8), 64)
    plan.attach.ends[1, 0] = 0
    with pytest.raises(InternalError, match="not every server port has exactly one cable"):
        check_plan(plan)


def test_a_plan_with_a_moved_uplink_fails_its_check() -> None:
    plan = make("fat-tree", Demand(64, 8), 64)
    ends = plan.links[1].ends
    ends[0, 1] = (ends[0, 1] + 1) % plan.roles[1].count
    with pytest.raises(InternalError, match=r"cables|unequal"):
        check_plan(plan)


def test_a_star_without_uplinks_has_separate_switches() -> None:
    plan = star.plan(star.Params(uplinks=0), Demand(100, 1), SwitchPorts("sn2201", 48), "")
    check_plan(plan)
    assert plan.switches == 3
    assert worst_switches(plan) == 1
