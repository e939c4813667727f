"""One message's stages, each beginning where the one before it ended. One idea: the same waterfall
is drawn as a table of bars and, beside others, as a chart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eastwest.report import palette, shown
from eastwest.report.chart import CHOSEN, bars_above, blank, label, row_text
from eastwest.study.comparison import Comparison

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True, slots=True)
class Piece:
    """One stage: what is done, where, on which side, when it begins, how long it takes, and why."""

    name: str
    place: str
    side: str  # sender, network, receiver
    start_s: float
    seconds: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Waterfall:
    """One technology's stages of one message; ``colour`` is the technology's on the page."""

    name: str
    pieces: tuple[Piece, ...]
    colour: str = palette.OTHER_PLACE
    chosen: bool = False

    @property
    def total_s(self) -> float:
        """The latency: the sum over the stages."""
        return math.fsum(p.seconds for p in self.pieces)

    def percent(self, seconds: float) -> float:
        """Return seconds as percent of the whole, as widths in the page have it."""
        return round(100 * seconds / (self.total_s or 1.0), 3)


def pieces(stages: Iterable[tuple[str, str, str, float, str]]) -> tuple[Piece, ...]:
    """Return stages (name, place, side, seconds, why) one after the other."""
    at, found = 0.0, []
    for name, place, side, seconds, why in stages:
        found.append(Piece(name, place, side, at, seconds, why))
        at += seconds
    return tuple(found)


def waterfalls(comparison: Comparison) -> list[Waterfall]:
    """Return the stages of the comparison's message on each option."""
    return [
        Waterfall(
            o.label,
            pieces(
                (s.name, str(s.place), s.side, seconds, s.why)
                for s, seconds in o.path.timeline(comparison.waterfall_bytes)
            ),
            palette.technology(i),
            o.technology == comparison.best,
        )
        for i, o in enumerate(comparison.options)
    ]


def places(falls: Sequence[Waterfall]) -> list[str]:
    """Return the places that occur: known ones in their fixed order, then any other."""
    present = dict.fromkeys(p.place for fall in falls for p in fall.pieces if p.seconds > 0)
    return [p for p in palette.PLACE if p in present] + [
        p for p in present if p not in palette.PLACE
    ]


def latency_figure(falls: Sequence[Waterfall]) -> Figure:
    """Return two bars a technology: the thick one shares out its own time by place, the thin one is
    all on one scale.

    Microseconds of RDMA beside a hundred of TCP would be a hair on one linear scale, and lengths on
    a logarithmic scale cannot be added; so each thick bar is the whole of its own message.
    """
    from plotly import graph_objects as go

    totals = [fall.total_s for fall in falls]
    longest, shortest = max(totals, default=1.0), min(totals, default=1.0)
    figure = blank(62 * len(falls) + 8, {"l": 6, "r": 6, "t": 4, "b": 4})
    for place in places(falls):
        figure.add_trace(_place_bars(falls, place))
    figure.add_trace(
        go.Bar(
            name="all on one scale",
            orientation="h",
            x=[t / longest for t in totals],
            y=list(range(len(falls))),
            width=0.08,
            offset=0.16,
            marker={"color": [fall.colour for fall in falls], "line": {"width": 0}},
            showlegend=False,
            customdata=[[label(fall.name), shown.time(fall.total_s)] for fall in falls],
            hovertemplate="%{customdata[0]}: %{customdata[1]}<extra></extra>",
        )
    )
    for row, fall in enumerate(falls):
        total_s = totals[row]
        ratio = "" if total_s == shortest else f" · {shown.times(total_s / shortest)}"
        name = label(fall.name) + (CHOSEN if fall.chosen else "")
        row_text(figure, row, name, shown.time(total_s) + ratio, fall.chosen)
    bars_above(figure, len(falls), {"range": [0, 1], "visible": False})
    return figure


def _place_bars(falls: Sequence[Waterfall], place: str) -> Any:
    """Return the pieces of all bars in which one place works, each as a share of its bar."""
    from plotly import graph_objects as go

    there = [
        (row, fall, p)
        for row, fall in enumerate(falls)
        for p in fall.pieces
        if p.place == place and p.seconds > 0
    ]
    colour = palette.place(place)
    return go.Bar(
        name=label(place),
        orientation="h",
        base=[p.start_s / fall.total_s for _, fall, p in there],
        x=[p.seconds / fall.total_s for _, fall, p in there],
        y=[row for row, _, _ in there],
        width=0.36,
        offset=-0.24,
        text=[label(p.name) for _, _, p in there],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        customdata=[
            [
                label(fall.name),
                label(p.name),
                f"{label(place)}, {label(p.side)}",
                shown.time(p.seconds),
                shown.share(p.seconds / fall.total_s),
            ]
            for _, fall, p in there
        ],
        insidetextfont={"color": palette.ink_on(colour), "size": 11},
        marker={"color": colour, "line": {"width": 1, "color": "#ffffff"}},
        hovertemplate="%{customdata[0]}<br><b>%{customdata[1]}</b> (%{customdata[2]})<br>"
        "%{customdata[3]}, %{customdata[4]} of the whole<extra></extra>",
    )
