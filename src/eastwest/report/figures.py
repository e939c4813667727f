"""Figures of a comparison. One idea: one colour a technology on the whole page.

Each function returns a ``plotly.graph_objects.Figure``, so a notebook shows it as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eastwest.design.bom import Bill
from eastwest.report import palette, shown
from eastwest.report.chart import CHOSEN, GRID, SOFT, bars_above, blank, label, row_text
from eastwest.study.comparison import Comparison
from eastwest.units import format_size

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROW_PX = 56
OFF_SCALE = 4.0  # a bar beyond this many times the shortest is cut, and says so


def _cap(values: Sequence[float]) -> float:
    """Return where the axis ends: at the longest bar, or just beyond those that stay comparable
    with the shortest."""
    near = [v for v in values if v <= OFF_SCALE * min(values)]
    return max(near) * (1.02 if len(near) == len(values) else 1.12)


def _off_scale(figure: Figure, row: int, y: float = 0.08) -> None:
    figure.add_annotation(
        x=1,
        xref="paper",
        xanchor="right",
        y=row + y,
        yref="y",
        showarrow=False,
        text="<b>off the scale ▶</b>",
        font={"size": 11, "color": "#ffffff"},
        bgcolor="#1c2126",
        borderpad=2,
        name="badge",
    )


def step_figure(comparison: Comparison) -> Figure:
    """Return where the step goes: one bar a technology, its parts in seconds; bars far off the
    scale are cut and say so."""
    from plotly import graph_objects as go

    options = comparison.options
    figure = blank(ROW_PX * len(options) + 46, {"l": 6, "r": 6, "t": 4, "b": 42})
    names = list(dict.fromkeys(name for o in options for name, _ in o.parts))
    colours = palette.parts(names)
    before = [0.0] * len(options)
    for name in names:
        seconds = [sum(s for n, s in o.parts if n == name) for o in options]
        figure.add_trace(
            go.Bar(
                name=label(name),
                orientation="h",
                base=list(before),
                x=seconds,
                y=list(range(len(options))),
                width=0.4,
                offset=-0.16,
                marker={"color": colours[name], "line": {"width": 1, "color": "#ffffff"}},
                customdata=[
                    [label(o.label), shown.time(s), shown.share(s / o.step_s)]
                    for o, s in zip(options, seconds, strict=True)
                ],
                hovertemplate="%{customdata[0]}<br>"
                + label(name)
                + ": %{customdata[1]} (%{customdata[2]})<extra></extra>",
            )
        )
        before = [b + s for b, s in zip(before, seconds, strict=True)]
    cap = _cap([o.step_s for o in options]) if options else 1.0
    for row, o in enumerate(options):
        chosen = o.technology == comparison.best
        name = label(o.label) + (CHOSEN if chosen else "")
        row_text(figure, row, name, shown.time(o.step_s), chosen)
        if o.step_band:
            figure.add_shape(
                type="line",
                x0=min(cap, o.step_band.low),
                x1=min(cap, o.step_band.high),
                y0=row + 0.31,
                y1=row + 0.31,
                line={"color": "#7d8792", "width": 2},
                name="band",
            )
        if o.step_s > cap:
            _off_scale(figure, row)
    bars_above(
        figure,
        len(options),
        {
            "range": [0, cap],
            "title": {"text": "seconds a step", "font": {"size": 13}},
            "ticksuffix": " s",
        },
    )
    return figure


def busbw_figure(comparison: Comparison) -> Figure:
    """Return bus bandwidth against message size, both logarithmic; the reference line is the
    server's NICs."""
    figure = blank(430, {"l": 62, "r": 14, "t": 30, "b": 46})
    number = {o.label: i for i, o in enumerate(comparison.options)}
    chosen = comparison.option(comparison.best).label
    sizes = comparison.busbw_sizes_bytes
    for name, rates in comparison.busbw_Bps:
        _curve(figure, name, number.get(name, len(number)), name == chosen, sizes, rates)
    line_Bps = comparison.line_Bps
    _line_rate(figure, line_Bps)
    if sizes and sizes[0] <= comparison.gradient_bytes <= sizes[-1]:
        _gradients(figure, comparison.gradient_bytes)
    ticks = [
        2**p
        for p in range(0, 61, 5)
        if sizes and sizes[0] <= 2**p * 1.01 and 2**p <= sizes[-1] * 1.01
    ]
    span = [math.log10(sizes[0]) - 0.1, math.log10(sizes[-1]) + 0.1] if sizes else [0, 1]
    title = {"text": "all-reduce size", "font": {"size": 13}}
    figure.update_xaxes(
        type="log",
        tickvals=ticks,
        ticktext=[format_size(t) for t in ticks],
        tickangle=0,
        range=span,
        title=title,
        gridcolor=GRID,
        zeroline=False,
    )
    low, high = _rate_range([r for _, rates in comparison.busbw_Bps for r in rates] + [line_Bps])
    decades = [10.0**d for d in range(math.floor(low), math.ceil(high) + 1)]
    figure.update_yaxes(
        type="log",
        range=[low, high],
        gridcolor=GRID,
        zeroline=False,
        tickvals=decades,
        ticktext=[shown.rate(d * 1e9) for d in decades],
    )
    return figure


def _curve(
    figure: Figure,
    name: str,
    number: int,
    bold: bool,
    sizes_bytes: Sequence[int],
    rates_Bps: Sequence[float],
) -> None:
    from plotly import graph_objects as go

    figure.add_trace(
        go.Scatter(
            name=label(name),
            x=list(sizes_bytes),
            y=[r / 1e9 for r in rates_Bps],
            mode="lines+markers",
            line={
                "color": palette.technology(number),
                "dash": palette.dash(number),
                "width": 4 if bold else 2,
            },
            marker={"symbol": palette.marker(number), "size": 7, "maxdisplayed": 12},
            customdata=[
                [format_size(s), shown.rate(r)] for s, r in zip(sizes_bytes, rates_Bps, strict=True)
            ],
            hovertemplate=label(name) + "<br>%{customdata[0]}: %{customdata[1]}<extra></extra>",
        )
    )


def _line_rate(figure: Figure, line_Bps: float) -> None:
    figure.add_hline(y=line_Bps / 1e9, line={"color": "#7d8792", "width": 1.5, "dash": "4px,4px"})
    figure.add_annotation(
        x=0.01,
        xref="paper",
        xanchor="left",
        y=math.log10(line_Bps / 1e9),
        yanchor="bottom",
        showarrow=False,
        text=f"line rate of a server's NICs, {shown.rate(line_Bps)}",
        font={"size": 12, "color": SOFT},
    )


def _gradients(figure: Figure, size_bytes: int) -> None:
    figure.add_vline(x=size_bytes, line={"color": "#7d8792", "width": 1.5, "dash": "2px,3px"})
    figure.add_annotation(
        y=0.01,
        yref="paper",
        yanchor="bottom",
        x=math.log10(size_bytes),
        xanchor="right",
        showarrow=False,
        align="right",
        font={"size": 12, "color": SOFT},
        text=f"this job's gradients,<br>{shown.size(size_bytes)}",
    )


def _rate_range(rates_Bps: Sequence[float]) -> tuple[float, float]:
    """Return the logarithmic range in GB/s that shows all positive rates, with a little room."""
    positive = [math.log10(r / 1e9) for r in rates_Bps if r > 0 and math.isfinite(r)]
    return (min(positive) - 0.1, max(positive) + 0.22) if positive else (0.0, 1.0)


def costs(bill: Bill) -> list[tuple[str, float]]:
    """Return what each kind of part of a bill costs in dollars, the free ones left out."""
    merged: dict[str, float] = {}
    for line in bill.lines:
        merged[line.what] = merged.get(line.what, 0.0) + line.sum_USD
    return [(what, amount) for what, amount in merged.items() if amount > 0]


def cost_figure(bill: Bill) -> Figure:
    """Return the bill as bars, the dearest part first."""
    from plotly import graph_objects as go

    merged = dict(costs(bill))
    rows = sorted(merged.items(), key=lambda r: -r[1])
    whole = sum(merged.values()) or 1.0
    figure = blank(46 * len(rows) + 8, {"l": 6, "r": 6, "t": 4, "b": 4})
    figure.add_trace(
        go.Bar(
            orientation="h",
            x=[v for _, v in rows],
            y=list(range(len(rows))),
            width=0.3,
            offset=-0.16,
            marker={"color": palette.PLACE["switch"]},
            showlegend=False,
            customdata=[[label(n), shown.money(v), shown.share(v / whole)] for n, v in rows],
            hovertemplate="%{customdata[0]}: %{customdata[1]} (%{customdata[2]})<extra></extra>",
        )
    )
    for row, (name, amount) in enumerate(rows):
        row_text(
            figure, row, label(name), f"{shown.money_short(amount)} · {shown.share(amount / whole)}"
        )
    bars_above(
        figure, len(rows), {"range": [0, max(merged.values(), default=1.0)], "visible": False}
    )
    return figure
