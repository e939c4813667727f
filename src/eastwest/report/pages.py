"""Whole pages. One idea: the answer first, then what it rests on, down to the last constant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eastwest.catalog.load import Fact
from eastwest.report import figures, html, palette, shown
from eastwest.report.fabric_svg import caption, fabric_svg
from eastwest.report.fabric_view import view
from eastwest.study.compare import Comparison, Option
from eastwest.table import Table
from eastwest.units import format_size


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a legend: a colour, and for lines the marker and the dash."""

    name: str
    colour: str
    marker: str = ""
    dash: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A piece of a bar in percent of its width."""

    left: float
    width: float
    colour: str


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage of a waterfall as text and bar."""

    name: str
    place: str
    side: str
    time: str
    share: str
    bar: Bar
    why: str = ""


@dataclass(frozen=True, slots=True)
class Waterfall:
    """One technology's stages, each bar beginning where the one before it ended."""

    name: str
    seconds: float
    total: str
    rows: tuple[StageRow, ...]


def waterfall(name: str, stages: figures.Stages, why: Sequence[str] = ()) -> Waterfall:
    """Return a waterfall from stages (name, place, side, seconds) and a sentence for each, where
    there is one."""
    total = math.fsum(s[3] for s in stages)
    whole, at, rows = total or 1.0, 0.0, []
    for i, (stage, place, side, seconds) in enumerate(stages):
        bar = Bar(round(100 * at / whole, 3), round(100 * seconds / whole, 3), palette.place(place))
        reason = why[i] if i < len(why) else ""
        rows.append(
            StageRow(
                stage, place, side, shown.time(seconds), shown.share(seconds / whole), bar, reason
            )
        )
        at += seconds
    return Waterfall(name, total, shown.time(total), tuple(rows))


def _technology_keys(comparison: Comparison) -> dict[str, Key]:
    return {
        o.label: Key(o.label, palette.technology(i), palette.marker(i), palette.dash(i))
        for i, o in enumerate(comparison.options)
    }


def rival(comparison: Comparison) -> Option | None:
    """Return the option that the study compares with; where it names none, the fastest of another
    kind of transport.

    Two transports are of one kind if the host does the same in both: nothing at all for RDMA from
    GPU memory, say.
    """
    chosen = next((o for o in comparison.options if o.chosen), None)
    if chosen is None:
        return None
    others = [o for o in comparison.options if not o.refused and not o.chosen]
    named = [o for o in others if comparison.against and o.label == comparison.against]
    return min(
        named or [o for o in others if _kind(o) != _kind(chosen)],
        key=lambda o: o.step_s,
        default=None,
    )


def _kind(option: Option) -> object:
    if option.path is None:
        return option.technology
    host = {str(s.place) for s in option.path.stages} & {"memory", "device"}
    switches = any(s.context_switches or s.interrupts for s in option.path.stages)
    copies = any(s.copies for s in option.path.stages)
    return frozenset(host), switches, copies


def _key_figures(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Return the three figures that matter most: value, what it is, remark."""
    chosen = next((o for o in comparison.options if o.chosen), None)
    if chosen is None or chosen.refused:
        return []
    cards = [
        (shown.time(chosen.step_s), "a training step", shown.band(chosen.step_band, shown.time)),
        (
            shown.share(chosen.idle_share),
            "of the GPUs' time idle",
            "not computing: it waits for peers and the network",
        ),
    ]
    other = rival(comparison)
    if other is not None:
        saved = other.step_s - chosen.step_s
        part = shown.share(saved / other.step_s) if other.step_s else ""
        cards.append(
            (shown.time(saved), f"saved a step against {other.label}", f"{part} of its step")
        )
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


def _parts_table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    standing = figures.standing(comparison)
    names = list(dict.fromkeys(name for _, o in standing for name, _ in o.parts))
    rows = []
    for _, o in standing:
        seconds = [sum(s for n, s in o.parts if n == name) for name in names]
        rows.append(
            [
                o.label,
                *[shown.time(s) if s else shown.NOTHING for s in seconds],
                shown.time(o.step_s),
            ]
        )
    return ["technology", *names, "step"], rows


def _busbw_table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    heads = ["size", *[name for name, _ in comparison.busbw_Bps]]
    rows = [
        [format_size(size), *[shown.rate(rates[i]) for _, rates in comparison.busbw_Bps]]
        for i, size in enumerate(comparison.busbw_sizes_bytes)
    ]
    return heads, rows


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
class Bill:
    """The bill as text: headings, rows (and whether each adds up the others), which columns are
    numbers."""

    heads: list[str]
    rows: list[tuple[bool, list[str]]]
    right: list[bool]
    notes: tuple[str, ...]


def _bill(table: Table) -> Bill:
    rows = [
        (figures.is_total(row[0]), [cell if cell != "–" else "" for cell in row])
        for row in table.shown()
    ]
    return Bill(
        [c.label for c in table.columns], rows, [c.right for c in table.columns], table.notes
    )


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


def comparison_page(comparison: Comparison, made: str = "", nics_Bps: float | None = None) -> str:
    """Return the report of a comparison as one self-contained HTML file.

    Parameters
    ----------
    comparison : the result of the study.
    made : how and when it was made, for the footer; without it the page holds no date and is the
        same each time.
    nics_Bps : line rate of all compute NICs of a server, for the reference line; else taken from
        the facts.
    """
    standing = figures.standing(comparison)
    slowest = max((abs(r.seconds) for r in comparison.reasons), default=0.0) or 1.0
    parts = palette.parts(name for _, o in standing for name, _ in o.parts)
    keys = _technology_keys(comparison)
    paths = figures.stages_of(comparison)
    why = {o.label: [s.why for s in o.path.stages] for _, o in standing if o.path is not None}
    charts = {
        "step": figures.step_figure(comparison),
        "busbw": figures.busbw_figure(comparison, nics_Bps),
        "latency": figures.waterfall_figure(comparison),
        "cost": figures.cost_figure(comparison.bill),
    }
    places = [str(trace.name) for trace in charts["latency"].data if trace.showlegend is not False]
    return html.render(
        "comparison.html",
        charts=True,
        title=f"Network comparison: {comparison.cluster_line}",
        made=made,
        comparison=comparison,
        cards=_key_figures(comparison),
        reasons=[
            (shown.time(r.seconds), round(100 * abs(r.seconds) / slowest, 2), r.text)
            for r in comparison.reasons
        ],
        options=[(keys[o.label], o, [] if o.refused else _cells(o)) for o in comparison.options],
        headings=[cell.heading for cell in _cells(comparison.options[0])]
        if comparison.options
        else [],
        figures={name: html.figure_json(figure) for name, figure in charts.items()},
        parts_keys=[Key(name, colour) for name, colour in parts.items()],
        parts_table=_parts_table(comparison),
        has_bands=any(o.step_band for _, o in standing),
        busbw_keys=[
            keys.get(name) or Key(name, palette.technology(len(keys)))
            for name, _ in comparison.busbw_Bps
        ],
        busbw_table=_busbw_table(comparison),
        place_keys=[Key(name, palette.place(name)) for name in places],
        waterfalls=[waterfall(name, stages, why.get(name, ())) for name, stages in paths],
        gradients=shown.size(comparison.gradient_bytes),
        message=format_size(comparison.waterfall_bytes),
        drawing=_drawing(comparison),
        bill=_bill(comparison.bill),
        has_cost=bool(figures.cost_rows(comparison.bill)),
        facts=facts_by_kind(comparison.facts),
        counts={"facts": len(comparison.facts), "worlds": comparison.uncertainty_worlds},
    )


def explain_page(
    line: str,
    size_bytes: int,
    paths: Sequence[tuple[str, figures.Stages]],
    why: Mapping[str, Sequence[str]] | None = None,
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
    paths : label and stages (name, place, side, seconds) of each technology.
    why : by label, one sentence for each stage (empty where there is none).
    """
    falls = [waterfall(name, stages, (why or {}).get(name, ())) for name, stages in paths]
    longest = max((fall.seconds for fall in falls), default=0.0) or 1.0
    return html.render(
        "explain.html",
        charts=False,
        title=f"One message of {format_size(size_bytes)}, stage by stage",
        line=line,
        made=made,
        totals=[(fall, round(100 * fall.seconds / longest, 2)) for fall in falls],
        waterfalls=falls,
        remarks=remarks,
        facts=facts_by_kind(facts),
        count=len(facts),
    )
