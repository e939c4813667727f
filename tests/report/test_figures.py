"""Figures: what they draw is what the comparison says."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from eastwest.report import figures, palette
from eastwest.report.waterfall import latency_figure, pieces, waterfalls
from report.comparisons import OPTIONS, bill, comparison


def test_the_parts_of_each_bar_add_up_to_its_step() -> None:
    figure = figures.step_figure(comparison())
    for row, option in enumerate(OPTIONS):
        assert math.isclose(
            sum(trace.x[row] for trace in figure.data), option.step_s, rel_tol=1e-12
        )


def test_bars_far_off_the_scale_are_cut_and_say_so() -> None:
    figure = figures.step_figure(comparison())
    end = figure.layout.xaxis.range[1]
    badges = [a for a in figure.layout.annotations if "off the scale" in a.text]
    assert len(badges) == sum(o.step_s > end for o in OPTIONS) == 2


def test_a_chosen_bar_is_not_lost_beside_an_hour_of_gigabit_ethernet() -> None:
    chosen = comparison().option(comparison().best)
    assert chosen.step_s / figures.step_figure(comparison()).layout.xaxis.range[1] > 0.2


def test_a_technology_has_one_colour_on_the_whole_page() -> None:
    curves = {t.name: t.line.color for t in figures.busbw_figure(comparison()).data}
    thin = latency_figure(waterfalls(comparison())).data[-1]
    names = [o.label for o in OPTIONS]
    assert dict(zip(names, thin.marker.color, strict=True)) == curves


def test_each_thick_bar_is_a_whole_and_the_thin_ones_share_a_scale() -> None:
    figure = latency_figure(waterfalls(comparison()))
    *places, thin = figure.data
    for row, option in enumerate(OPTIONS):
        share = sum(
            x for trace in places for x, y in zip(trace.x, trace.y, strict=True) if y == row
        )
        assert math.isclose(share, 1.0, rel_tol=1e-9)
        assert math.isclose(
            thin.x[row],
            option.latency_s / max(o.latency_s for o in OPTIONS),
            rel_tol=1e-9,
        )


def test_the_line_rate_is_the_comparisons_own() -> None:
    shapes = figures.busbw_figure(comparison()).layout.shapes
    assert 400.0 in [shape.y0 for shape in shapes]


def test_sizes_are_powers_of_two_with_binary_labels() -> None:
    axis = figures.busbw_figure(comparison()).layout.xaxis
    assert list(axis.ticktext) == ["1 KiB", "32 KiB", "1 MiB", "32 MiB", "1 GiB"]
    assert axis.type == "log"


def test_the_costs_add_up_to_the_bill() -> None:
    assert sum(amount for _, amount in figures.costs(bill())) == bill().total_USD
    assert len(figures.cost_figure(bill()).data[0].x) == len(bill().lines)


def test_each_stage_begins_where_the_one_before_it_ended() -> None:
    made = pieces([("a", "CPU", "sender", 1e-6, ""), ("b", "NIC", "receiver", 2e-6, "why")])
    assert [(p.start_s, p.seconds, p.why) for p in made] == [(0.0, 1e-6, ""), (1e-6, 2e-6, "why")]


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", palette.TECHNOLOGY)
def test_every_technologys_colour_stands_out_on_white_and_on_the_dark_page(colour: str) -> None:
    dark = luminance("#1b1f24")
    assert 1.05 / (luminance(colour) + 0.05) >= 2.9
    assert (luminance(colour) + 0.05) / (dark + 0.05) >= 2.9


def test_no_two_technologies_share_colour_or_marker() -> None:
    for a, b in combinations(range(len(palette.TECHNOLOGY)), 2):
        assert palette.technology(a) != palette.technology(b)
        assert palette.marker(a) != palette.marker(b)
    pairs = {(palette.technology(i), palette.marker(i)) for i in range(81)}
    assert len(pairs) == 81


def test_ink_is_readable_on_every_place() -> None:
    for colour in palette.PLACE.values():
        ink = luminance(palette.ink_on(colour))
        high, low = max(ink, luminance(colour)), min(ink, luminance(colour))
        assert (high + 0.05) / (low + 0.05) >= 4.5
