"""Figures of a comparison. One idea: one colour a technology on the whole page, and the label
stands above its bar.

Each function returns a ``plotly.graph_objects.Figure``, so a notebook shows it as it is. Text from
the user's file is escaped, as plotly reads a little HTML in labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from eastwest.report import palette, shown
from eastwest.study.compare import Comparison, Option
from eastwest.units import format_size

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from eastwest.table import Table

Stages = Sequence[tuple[str, str, str, float]]  # stage name, place, side, seconds
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'
INK, SOFT, GRID = "#1c2126", "#5d6670", "#dfe3e6"
ROW_PX = 56
OFF_SCALE = 4.0  # a bar beyond this many times the shortest is cut, and says so


def label(text: str) -> str:
    """Return text as plotly shows it literally."""
    return escape(text, quote=False)


def standing(comparison: Comparison) -> list[tuple[int, Option]]:
    """Return the options that can be built, each with its number on the page (its colour)."""
    return [(i, o) for i, o in enumerate(comparison.options) if not o.refused]


def line_rate_Bps(comparison: Comparison) -> float | None:
    """Return the line rate of all compute NICs of a server, if the facts tell of exactly one kind
    of server."""
    found = {
        f.attribute: f.value
        for f in comparison.facts
        if f.kind == "server" and f.attribute in ("nics", "nic_Bps")
    }
    servers = {f.id for f in comparison.facts if f.kind == "server" and f.attribute == "nic_Bps"}
    nics, rate = found.get("nics"), found.get("nic_Bps")
    if len(servers) != 1 or not isinstance(nics, float) or not isinstance(rate, float):
        return None
    return nics * rate


def _figure(height: int, margin: dict[str, int]) -> Figure:
    from plotly import graph_objects as go

    figure = go.Figure()
    figure.update_layout(
        template={},
        height=max(40, height),
        margin=margin,
        font={"family": FONT, "size": 13, "color": INK},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        hoverlabel={"font": {"family": FONT, "size": 13}, "align": "left"},
        hovermode="closest",
        showlegend=True,
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": "#7d8792", "activecolor": "#0072b2"},
        legend={"orientation": "h", "y": -0.15, "x": 0},
        barmode="overlay",
        dragmode=False,
        # Text that does not fit into its bar is left out rather than shrunk to nothing.
        uniformtext={"minsize": 10, "mode": "hide"},
    )
    return figure


def _bars_above(figure: Figure, rows: int, axis: dict[str, Any]) -> None:
    """Set the axes of a chart whose labels stand above the bars: nothing to the left, so it fits a
    phone."""
    figure.update_xaxes(
        zeroline=False, gridcolor=GRID, fixedrange=True, ticks="outside", tickcolor=GRID, **axis
    )
    figure.update_yaxes(visible=False, range=[rows - 0.38, -0.62], fixedrange=True)


def _row_text(figure: Figure, row: int, left: str, right: str, bold: bool = False) -> None:
    """Write a bar's name above it on the left, its figure on the right."""
    for x, anchor, text in ((0, "left", left), (1, "right", right)):
        figure.add_annotation(
            x=x,
            xref="paper",
            xanchor=anchor,
            y=row - 0.43,
            yref="y",
            yanchor="middle",
            showarrow=False,
            text=f"<b>{text}</b>" if bold else text,
            align=anchor,
        )


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

    options = standing(comparison)
    figure = _figure(ROW_PX * len(options) + 46, {"l": 6, "r": 6, "t": 4, "b": 42})
    names = list(dict.fromkeys(name for _, o in options for name, _ in o.parts))
    colours = palette.parts(names)
    before = [0.0] * len(options)
    for name in names:
        seconds = [sum(s for n, s in o.parts if n == name) for _, o in options]
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
                    for (_, o), s in zip(options, seconds, strict=True)
                ],
                hovertemplate="%{customdata[0]}<br>"
                + label(name)
                + ": %{customdata[1]} (%{customdata[2]})<extra></extra>",
            )
        )
        before = [b + s for b, s in zip(before, seconds, strict=True)]
    cap = _cap([o.step_s for _, o in options]) if options else 1.0
    for row, (_, o) in enumerate(options):
        _row_text(figure, row, label(_marked(o)), shown.time(o.step_s), o.chosen)
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
    _bars_above(
        figure,
        len(options),
        {
            "range": [0, cap],
            "title": {"text": "seconds a step", "font": {"size": 13}},
            "ticksuffix": " s",
        },
    )
    return figure


def _marked(option: Option) -> str:
    return option.label + (" ✓" if option.chosen else "")


def busbw_figure(comparison: Comparison, nics_Bps: float | None = None) -> Figure:
    """Return bus bandwidth against message size, both logarithmic; the reference line is the
    server's NICs."""
    figure = _figure(430, {"l": 62, "r": 14, "t": 30, "b": 46})
    number = {o.label: i for i, o in enumerate(comparison.options)}
    chosen = {o.label for o in comparison.options if o.chosen}
    sizes = comparison.busbw_sizes_bytes
    for name, rates in comparison.busbw_Bps:
        _curve(figure, name, number.get(name, len(number)), name in chosen, sizes, rates)
    line_Bps = nics_Bps if nics_Bps is not None else line_rate_Bps(comparison)
    if line_Bps:
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
    low, high = _rate_range(
        [r for _, rates in comparison.busbw_Bps for r in rates] + [line_Bps or 0.0]
    )
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


def stages_of(comparison: Comparison) -> list[tuple[str, list[tuple[str, str, str, float]]]]:
    """Return each standing technology's stages for the waterfall's message: name, place, side,
    seconds."""
    return [
        (
            o.label,
            [
                (s.name, str(s.place), s.side, t)
                for s, t in o.path.timeline(comparison.waterfall_bytes)
            ],
        )
        for _, o in standing(comparison)
        if o.path is not None
    ]


def waterfall_figure(comparison: Comparison) -> Figure:
    """Return one message's time by place for each technology of a comparison; see
    :func:`latency_figure`."""
    numbers = {o.label: i for i, o in standing(comparison)}
    chosen = next((o.label for _, o in standing(comparison) if o.chosen), "")
    return latency_figure(stages_of(comparison), numbers, chosen)


def latency_figure(
    paths: Sequence[tuple[str, Stages]], numbers: dict[str, int] | None = None, chosen: str = ""
) -> Figure:
    """Return two bars a technology: the thick one shares out its own time by place, the thin one is
    all on one scale.

    Microseconds of RDMA beside a hundred of TCP would be a hair on one linear scale, and lengths on
    a logarithmic scale cannot be added; so each thick bar is the whole of its own message.
    """
    from plotly import graph_objects as go

    rows = [(name, [s for s in stages if s[3] > 0]) for name, stages in paths]
    totals = [sum(s[3] for s in stages) for _, stages in rows]
    longest, shortest = max(totals, default=1.0), min(totals, default=1.0)
    figure = _figure(62 * len(rows) + 8, {"l": 6, "r": 6, "t": 4, "b": 4})
    for place in _places(rows):
        figure.add_trace(_place_bars(rows, totals, place))
    colours = [palette.technology((numbers or {}).get(name, i)) for i, (name, _) in enumerate(rows)]
    figure.add_trace(
        go.Bar(
            name="all on one scale",
            orientation="h",
            x=[t / longest for t in totals],
            y=list(range(len(rows))),
            width=0.08,
            offset=0.16,
            marker={"color": colours, "line": {"width": 0}},
            showlegend=False,
            customdata=[[label(n), shown.time(t)] for (n, _), t in zip(rows, totals, strict=True)],
            hovertemplate="%{customdata[0]}: %{customdata[1]}<extra></extra>",
        )
    )
    for row, (name, _) in enumerate(rows):
        ratio = "" if totals[row] == shortest else f" · {shown.times(totals[row] / shortest)}"
        _row_text(
            figure,
            row,
            label(name) + (" ✓" if name == chosen else ""),
            shown.time(totals[row]) + ratio,
            name == chosen,
        )
    _bars_above(figure, len(rows), {"range": [0, 1], "visible": False})
    return figure


def _place_bars(rows: Sequence[tuple[str, Stages]], totals: Sequence[float], place: str) -> Any:
    """Return the pieces of all bars in which one place works, each as a share of its bar."""
    from plotly import graph_objects as go

    base, x, y, text, about = [], [], [], [], []
    for row, (name, stages) in enumerate(rows):
        at = 0.0
        for stage, where, side, seconds in stages:
            if where == place:
                part = seconds / totals[row]
                base.append(at / totals[row])
                x.append(part)
                y.append(row)
                text.append(label(stage))
                about.append(
                    [
                        label(name),
                        label(stage),
                        f"{label(where)}, {label(side)}",
                        shown.time(seconds),
                        shown.share(part),
                    ]
                )
            at += seconds
    colour = palette.place(place)
    return go.Bar(
        name=label(place),
        orientation="h",
        base=base,
        x=x,
        y=y,
        width=0.36,
        offset=-0.24,
        text=text,
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        customdata=about,
        insidetextfont={"color": palette.ink_on(colour), "size": 11},
        marker={"color": colour, "line": {"width": 1, "color": "#ffffff"}},
        hovertemplate="%{customdata[0]}<br><b>%{customdata[1]}</b> (%{customdata[2]})<br>"
        "%{customdata[3]}, %{customdata[4]} of the whole<extra></extra>",
    )


def _places(rows: Sequence[tuple[str, Stages]]) -> list[str]:
    """Return the places that occur: known ones in their fixed order, then any other."""
    present = dict.fromkeys(s[1] for _, stages in rows for s in stages)
    return [p for p in palette.PLACE if p in present] + [
        p for p in present if p not in palette.PLACE
    ]


def stages_figure(name: str, stages: Stages) -> Figure:
    """Return the waterfall of one technology: each stage starts where the one before it ended, in
    microseconds."""
    from plotly import graph_objects as go

    figure = _figure(30 * len(stages) + 70, {"l": 6, "r": 6, "t": 30, "b": 42})
    at = 0.0
    for row, (stage, place, side, seconds) in enumerate(stages):
        figure.add_trace(
            go.Bar(
                orientation="h",
                base=[at * 1e6],
                x=[seconds * 1e6],
                y=[row],
                marker={"color": palette.place(place)},
                width=0.5,
                showlegend=False,
                text=f"{label(stage)} · {shown.time(seconds)}",
                textposition="outside",
                hovertemplate=f"{label(stage)}<br>{label(place)}, "
                f"{label(side)}<br>{shown.time(seconds)}<extra></extra>",
            )
        )
        at += seconds
    figure.update_layout(
        title={"text": f"{label(name)}: {shown.time(at)}", "font": {"size": 15}, "x": 0}
    )
    figure.update_layout(uniformtext=None)
    # Room for the labels of the last bars, which stand to the right of them.
    figure.update_xaxes(
        range=[0, at * 1e6 * 1.5],
        title={"text": "µs", "font": {"size": 13}},
        gridcolor=GRID,
        zeroline=False,
        fixedrange=True,
    )
    figure.update_yaxes(visible=False, range=[len(stages) - 0.5, -0.5], fixedrange=True)
    return figure


def cost_rows(bill: Table) -> list[tuple[str, float]]:
    """Return part and sum of each row of a bill, without its total; empty if the table has no sum
    in dollars."""
    keys = [c.key for c in bill.columns]
    sums = [k for k in keys if k.endswith("_USD") and k.startswith(("sum", "total"))] or [
        k for k in keys if k.endswith("_USD")
    ]
    if not sums:
        return []
    at, what = keys.index(sums[-1]), keys.index("what") if "what" in keys else 0
    rows = [(str(row[what] or row[0]), row[at]) for row in bill.rows]
    return [
        (name, float(v))
        for name, v in rows
        if isinstance(v, (int, float)) and v > 0 and not is_total(name)
    ]


def is_total(name: str) -> bool:
    """Whether a row of a bill adds up the others."""
    return name.strip().lower().startswith(("total", "sum", "all together"))


def cost_figure(bill: Table) -> Figure:
    """Return the bill as bars, the dearest part first."""
    from plotly import graph_objects as go

    merged: dict[str, float] = {}
    for name, amount in cost_rows(bill):
        merged[name] = merged.get(name, 0.0) + amount
    rows = sorted(merged.items(), key=lambda r: -r[1])
    whole = sum(merged.values()) or 1.0
    figure = _figure(46 * len(rows) + 8, {"l": 6, "r": 6, "t": 4, "b": 4})
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
        _row_text(
            figure, row, label(name), f"{shown.money_short(amount)} · {shown.share(amount / whole)}"
        )
    _bars_above(
        figure, len(rows), {"range": [0, max(merged.values(), default=1.0)], "visible": False}
    )
    return figure
