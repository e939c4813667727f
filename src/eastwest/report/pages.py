"""Whole pages. One idea: the answer first, then what it rests on, down to the last constant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eastwest.catalog.load import Fact
from eastwest.design.bom import Bill
from eastwest.report import figures, html, palette, shown
from eastwest.report.fabric_svg import caption, fabric_svg
from eastwest.report.fabric_view import view
from eastwest.report.waterfall import Waterfall, latency_figure, places, waterfalls
from eastwest.study.comparison import Comparison, Option
from eastwest.units import format_size


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a legend: a colour, and for lines the marker and the dash."""

    name: str
    colour: str
    marker: str = ""
    dash: str = ""


def _technology_keys(comparison: Comparison) -> list[Key]:
    """Return the legend's entries: of the options, then of the refused."""
    names = [o.label for o in comparison.options] + [r.label for r in comparison.refused]
    return [
        Key(name, palette.technology(i), palette.marker(i), palette.dash(i))
        for i, name in enumerate(names)
    ]


def _key_figures(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Return the three figures that matter most: value, what it is, remark."""
    best = comparison.option(comparison.best)
    cards = [
        (shown.time(best.step_s), "a training step", shown.band(best.step_band, shown.time)),
        (
            shown.share(best.idle_share),
            "of the GPUs' time idle",
            "not computing: it waits for peers and the network",
        ),
    ]
    if comparison.foil:
        foil = comparison.option(comparison.foil)
        saved = foil.step_s - best.step_s
        part = f"{shown.share(saved / foil.step_s)} of its step"
        cards.append((shown.time(saved), f"saved a step against {foil.label}", part))
    return cards


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure of the comparison with its heading and its band."""

    heading: str
    value: str
    band: str = ""


def _cells(option: Option) -> list[Cell]:
    return [
        Cell(
            "8 B latency", shown.time(option.latency_s), shown.band(option.latency_band, shown.time)
        ),
        Cell("all-reduce", shown.rate(option.busbw_Bps), shown.band(option.busbw_band, shown.rate)),
        Cell("step", shown.time(option.step_s), shown.band(option.step_band, shown.time)),
        Cell("GPU idle", shown.share(option.idle_share)),
        Cell("CPU cores", f"{option.cpu_cores:.1f}"),
        Cell("host memory", shown.rate(option.memory_Bps) if option.memory_Bps else "none"),
        Cell(
            "network a GPU",
            shown.money(option.network_USD_per_gpu),
            shown.band(option.cost_band, shown.money),
        ),
        Cell("power a GPU", f"{shown.number(option.network_W_per_gpu)} W"),
    ]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table as text: headings, rows of cells, and which columns are numbers."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]


def _figures_sheet(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Sheet:
    """Return a sheet of a name and numbers."""
    return Sheet(tuple(heads), tuple(map(tuple, rows)), (False,) + (True,) * (len(heads) - 1))


def _parts_sheet(comparison: Comparison) -> Sheet:
    options = comparison.options
    names = list(dict.fromkeys(name for o in options for name, _ in o.parts))
    rows = [
        [
            o.label,
            *[shown.time(s) if s else shown.NOTHING for s in map(dict(o.parts).get, names)],
            shown.time(o.step_s),
        ]
        for o in options
    ]
    return _figures_sheet(["technology", *names, "step"], rows)


def _busbw_sheet(comparison: Comparison) -> Sheet:
    rows = [
        [format_size(size), *[shown.rate(rates[i]) for _, rates in comparison.busbw_Bps]]
        for i, size in enumerate(comparison.busbw_sizes_bytes)
    ]
    return _figures_sheet(["size", *[name for name, _ in comparison.busbw_Bps]], rows)


def _bill_sheet(bill: Bill) -> Sheet:
    """Return the bill as text, its total in the last row."""
    table = bill.table()
    rows = tuple(tuple("" if c == shown.NOTHING else c for c in row) for row in table.shown())
    return Sheet(tuple(c.label for c in table.columns), rows, tuple(c.right for c in table.columns))


@dataclass(frozen=True, slots=True)
class FactRow:
    """One constant as people read it."""

    name: str
    value: str
    range: str
    source: str
    checked: str
    note: str


def _fact(fact: Fact) -> FactRow:
    limits = (
        f"{shown.quantity(fact.low, fact.unit)} – {shown.quantity(fact.high, fact.unit)}"
        if fact.uncertain
        else ""
    )
    name = f"{fact.id} {fact.attribute}"
    return FactRow(
        name, shown.quantity(fact.value, fact.unit), limits, fact.source, fact.checked, fact.note
    )


def facts_by_kind(facts: Iterable[Fact]) -> list[tuple[str, list[FactRow]]]:
    """Return the facts as rows, grouped by kind in the order of their first appearance."""
    groups: dict[str, list[FactRow]] = {}
    for fact in facts:
        groups.setdefault(fact.kind, []).append(_fact(fact))
    return list(groups.items())


@dataclass(frozen=True, slots=True)
class Drawing:
    """A fabric's drawing with what it counts."""

    svg: str
    caption: str
    complete: bool
    rails: list[Key]
    notes: tuple[str, ...]


def _drawing(comparison: Comparison) -> Drawing | None:
    plan = comparison.plan
    if plan is None:
        return None
    seen = view(plan)
    rails = [
        Key(f"rail {r + 1}", palette.RAIL[r % len(palette.RAIL)]) for r in range(plan.demand.rails)
    ]
    return Drawing(
        fabric_svg(plan), caption(plan), seen.complete, rails if len(rails) > 1 else [], plan.notes
    )


def comparison_page(comparison: Comparison, made: str = "") -> str:
    """Return the report of a comparison as one self-contained HTML file.

    Parameters
    ----------
    comparison : the result of the study.
    made : how and when it was made, for the footer; without it the page holds no date and is the
        same each time.
    """
    options, refused = comparison.options, comparison.refused
    slowest = max((abs(r.seconds) for r in comparison.reasons), default=0.0) or 1.0
    parts = palette.parts(name for o in options for name, _ in o.parts)
    keys, falls = _technology_keys(comparison), waterfalls(comparison)
    charts = {
        "step": figures.step_figure(comparison),
        "busbw": figures.busbw_figure(comparison),
        "latency": latency_figure(falls),
        "cost": figures.cost_figure(comparison.bill),
    }
    return html.render(
        "comparison.html",
        charts=True,
        title=f"Network comparison: {comparison.cluster_line}",
        made=made,
        comparison=comparison,
        cards=_key_figures(comparison),
        reasons=[(r, round(100 * abs(r.seconds) / slowest, 2)) for r in comparison.reasons],
        options=[(key, o, _cells(o)) for key, o in zip(keys, options, strict=False)],
        refused=list(zip(keys[len(options) :], refused, strict=True)),
        headings=[cell.heading for cell in _cells(options[0])],
        figures={name: html.figure_json(figure) for name, figure in charts.items()},
        parts_keys=[Key(name, colour) for name, colour in parts.items()],
        parts_sheet=_parts_sheet(comparison),
        has_bands=any(o.step_band for o in options),
        busbw_keys=keys[: len(options)],
        busbw_sheet=_busbw_sheet(comparison),
        place_keys=[Key(name, palette.place(name)) for name in places(falls)],
        waterfalls=falls,
        gradients=shown.size(comparison.gradient_bytes),
        message=format_size(comparison.waterfall_bytes),
        drawing=_drawing(comparison),
        bill=_bill_sheet(comparison.bill),
        has_cost=bool(figures.costs(comparison.bill)),
        facts=facts_by_kind(comparison.facts),
        counts={"facts": len(comparison.facts), "worlds": comparison.uncertainty_worlds},
    )


def explain_page(
    line: str,
    size_bytes: int,
    falls: Sequence[Waterfall],
    remarks: Sequence[str] = (),
    facts: Sequence[Fact] = (),
    made: str = "",
) -> str:
    """Return what happens to one message, stage by stage, as one self-contained HTML file.

    It needs no drawing library, so it is small and prints as it is.

    Parameters
    ----------
    line : what is explained, such as the cluster's line.
    size_bytes : the size of the message.
    falls : the stages on each technology.
    remarks : sentences below them.
    facts : the constants that it rests on.
    made : how and when it was made, for the footer.
    """
    longest = max((fall.total_s for fall in falls), default=0.0) or 1.0
    return html.render(
        "explain.html",
        charts=False,
        title=f"One message of {format_size(size_bytes)}, stage by stage",
        line=line,
        made=made,
        totals=[(fall, round(100 * fall.total_s / longest, 2)) for fall in falls],
        waterfalls=falls,
        remarks=remarks,
        facts=facts_by_kind(facts),
        count=len(facts),
    )
