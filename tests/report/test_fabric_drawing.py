"""Drawings of fabrics: the switches that they show or count are those of the plan."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.fabric.plan import Plan
from eastwest.report.fabric_svg import caption, fabric_svg, line_width
from eastwest.report.fabric_view import view
from report import plans

SVG = "{http://www.w3.org/2000/svg}"
PLANS = {
    "one leaf": plans.one_leaf(),
    "one unit": plans.two_tiers(1, 4),
    "128 servers": plans.two_tiers(),
    "512 servers": plans.two_tiers(16, 32),
    "rails apart": plans.rail_only(),
    "servers that straddle leaves": plans.unaligned(),
    "two pods": plans.three_tiers(2),
    "16,384 servers": plans.three_tiers(128),
}


def groups(svg: str, kind: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(svg)
    return [g for g in root.iter(f"{SVG}g") if g.get("class", "").split()[0] == kind]


def counted(svg: str, tier: str) -> tuple[int, int]:
    """Return how many switches of a tier are drawn, and how many are counted in gaps."""
    drawn = sum(g.get("data-tier") == tier for g in groups(svg, "switch"))
    return drawn, sum(
        int(g.get("data-count", "")) for g in groups(svg, "gap") if g.get("data-tier") == tier
    )


@pytest.mark.parametrize("name", PLANS)
def test_a_drawing_is_well_formed_and_counts_every_switch_and_server(name: str) -> None:
    plan = PLANS[name]
    svg = fabric_svg(plan)
    for role in plan.roles:
        assert sum(counted(svg, role.name)) == role.count
    drawn = sum(int(g.get("data-members", "")) for g in groups(svg, "unit"))
    hidden = sum(
        int(g.get("data-count", "")) for g in groups(svg, "gap") if g.get("data-tier") == "servers"
    )
    assert drawn + hidden == plan.demand.servers
    assert fabric_svg(plan) == svg


@pytest.mark.parametrize(
    ("name", "leaves", "spines"),
    [("one leaf", 1, 0), ("one unit", 8, 4), ("128 servers", 32, 16), ("rails apart", 16, 8)],
)
def test_small_fabrics_are_drawn_whole(name: str, leaves: int, spines: int) -> None:
    svg = fabric_svg(PLANS[name])
    assert counted(svg, "leaf") == (leaves, 0)
    assert counted(svg, "spine") == (spines, 0)
    assert view(PLANS[name]).complete


def test_all_cables_of_a_fabric_that_is_drawn_whole_are_in_its_lines() -> None:
    plan = plans.two_tiers()
    for tier, cables in enumerate(plan.cables):
        assert sum(b.cables for b in view(plan).bundles if b.rows == (tier, tier + 1)) == cables


def test_four_servers_are_drawn_one_by_one_with_a_line_a_nic() -> None:
    svg = fabric_svg(plans.one_leaf())
    assert len(groups(svg, "unit")) == 4
    assert svg.count('class="cables') == 32


def test_sixteen_thousand_servers_say_their_counts_and_stay_small() -> None:
    svg = fabric_svg(PLANS["16,384 servers"])
    texts = [t.text for t in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert {"4,096 switches", "2,048 switches", "16,384", "131,072 cables", "in 126 pods"} <= set(
        texts
    )
    assert "pod 1 of 128" in texts
    assert "pod 128 of 128" in texts
    assert len(groups(svg, "switch")) < 60
    assert len(svg) < 100_000


@pytest.mark.parametrize("name", PLANS)
def test_no_drawn_boxes_of_a_row_overlap(name: str) -> None:
    rows: dict[str, list[tuple[float, float]]] = {}
    for group in groups(fabric_svg(PLANS[name]), "switch"):
        box = group.find(f"{SVG}rect")
        assert box is not None
        left = float(box.get("x", ""))
        rows.setdefault(group.get("data-tier", ""), []).append(
            (left, left + float(box.get("width", "")))
        )
    for spans in rows.values():
        spans.sort()
        assert all(a[1] <= b[0] + 0.11 for a, b in pairwise(spans))


@pytest.mark.parametrize("name", PLANS)
def test_everything_lies_inside_the_drawing(name: str) -> None:
    svg = fabric_svg(PLANS[name])
    width = float(ElementTree.fromstring(svg).get("width", ""))
    for x in re.findall(r' (?:x|cx)="([-0-9.]+)"', svg):
        assert 0 <= float(x) <= width


def test_wider_bundles_have_wider_lines() -> None:
    assert line_width(1) < line_width(2) < line_width(32) <= line_width(10_000) == 5.0


def test_a_hostile_switch_name_stays_text() -> None:
    plan = plans.one_leaf()
    hostile = replace(plan, switch=replace(plan.switch, id="</title><script>alert(1)</script>\x00"))
    svg = fabric_svg(hostile)
    assert "<script" not in svg
    title = ElementTree.fromstring(svg).find(f"{SVG}title")
    assert title is not None
    assert "<script>alert(1)</script>" in (title.text or "")


def test_the_caption_counts_the_network() -> None:
    assert caption(plans.two_tiers()) == (
        "Rail-optimised: 128 servers with 8 NICs each; 32 leaf, 16 spine switches of 64 ports "
        "(qm9700); "
        "1,024 + 1,024 cables."
    )


@settings(deadline=None, max_examples=40)
@given(
    units=st.integers(1, 30),
    rails=st.sampled_from([1, 2, 4, 8, 16]),
    spines=st.sampled_from([1, 2, 8, 32]),
)
def test_any_two_tier_fabric_adds_up(units: int, rails: int, spines: int) -> None:
    plan: Plan = plans.two_tiers(units, spines, rails)
    view(plan).check()
    ElementTree.fromstring(fabric_svg(plan))
