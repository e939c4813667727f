"""A fabric as a drawing. One idea: tiers are rows, servers below; rails are colours; a line's width
is its number of cables.

The positions are known, so no layout is searched. The result is one SVG element that stands alone
or inside a page, follows the reader's dark mode, and prints on white.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from eastwest.fabric.plan import Plan
from eastwest.report import palette
from eastwest.report.fabric_view import SERVERS, Box, Bundle, Gap, Item, Row, View, view

LEFT, RIGHT, TOP, BOTTOM = 150.0, 14.0, 20.0, 12.0
PITCH = 122.0  # from row to row
WIDEST = 1000.0  # of the boxes
SWITCH_HEIGHT, SERVER_HEIGHT = 24.0, 44.0
ARC_HEIGHT = 34.0  # of links within a row, at the most
SWITCH_WIDTH, SWITCH_GAP = 34.0, 9.0
COLUMN_GAP, ROOM = 26.0, 14.0  # between columns; inside a column's frame

_STYLE = """
.fabric{--ink:#1c2126;--soft:#5d6670;--card:#fff;--line:#8b949e;--frame:#d5dade}
.fabric{font-family:system-ui,"DejaVu Sans",sans-serif}
.fabric text{fill:var(--ink);font-size:11px;text-anchor:middle;dominant-baseline:central}
.fabric .row{font-size:14px;font-weight:600;text-anchor:start}
.fabric .soft{fill:var(--soft);font-size:11px;text-anchor:start}
.fabric .more{fill:var(--soft);font-size:11px}
.fabric .dots{fill:var(--soft);font-size:16px}
.fabric .more,.fabric .dots{paint-order:stroke;stroke:var(--card);stroke-width:4px}
.fabric .more,.fabric .dots{stroke-linejoin:round}
.fabric .pod{fill:none;stroke:var(--frame);stroke-dasharray:4 3}
.fabric .switch rect,.fabric .unit rect{fill:var(--card);stroke:var(--line);stroke-width:1.6}
.fabric .cables{fill:none;stroke:var(--line)}
.fabric .nic{stroke:none;fill:var(--line)}
@media (prefers-color-scheme:dark){
.fabric{--ink:#e8eaed;--soft:#a2abb5;--card:#1b1f24;--line:#7d8792;--frame:#3d454e}}
@media print{.fabric{--ink:#1c2126;--soft:#5d6670;--card:#fff;--line:#8b949e;--frame:#d5dade}}
"""


def _style(rails: int) -> str:
    """Return the style with one colour a rail."""
    colours = [
        f".fabric .r{i} rect{{stroke:{c}}}.fabric .cables.r{i}{{stroke:{c}}}.fabric "
        f".nic.r{i}{{fill:{c}}}"
        for i, c in enumerate(palette.RAIL[: max(1, rails)])
    ]
    return _STYLE.strip() + "\n" + "\n".join(colours)


def _rail_class(rail: int) -> str:
    return f" r{rail % len(palette.RAIL)}" if rail >= 0 else ""


def _natural(item: Item, servers: bool, rails: int) -> float:
    """Return the width that an item wants."""
    if isinstance(item, Gap):
        return 74.0
    return max(84.0, 9.0 * rails + 16.0) if servers else SWITCH_WIDTH


def _width(items: Sequence[Item], servers: bool, rails: int) -> float:
    return sum(_natural(i, servers, rails) for i in items) + SWITCH_GAP * max(0, len(items) - 1)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an item stands: its middle and its width."""

    item: Item
    x: float
    width: float


def _spread(
    items: Sequence[Item], left: float, width: float, servers: bool, rails: int
) -> list[_Place]:
    """Place items in a row, centred in the width; where they do not fit, boxes shrink and gaps keep
    their width."""
    fixed = sum(_natural(i, servers, rails) for i in items if isinstance(i, Gap))
    boxes = sum(_natural(i, servers, rails) + SWITCH_GAP for i in items if isinstance(i, Box))
    scale = min(1.0, (width - fixed) / boxes) if boxes else 1.0
    step = [_natural(i, servers, rails) * (scale if isinstance(i, Box) else 1.0) for i in items]
    between = SWITCH_GAP * scale
    x = left + (width - sum(step) - between * (len(items) - 1)) / 2
    places = []
    for item, wide in zip(items, step, strict=True):
        places.append(_Place(item, x + wide / 2, wide))
        x += wide + between
    return places


@dataclass(frozen=True, slots=True)
class _Layout:
    """Places by row, the frames of the columns (left, width), the whole width of the boxes."""

    rows: list[list[_Place]]
    frames: list[tuple[float, float]]
    width: float


def _layout(seen: View) -> _Layout:
    split = len(seen.columns)
    rails = seen.rails
    wants = [
        max(
            _width(row.columns[c], False, rails)
            for row in seen.rows
            if len(row.columns) == split and row.name != SERVERS
        )
        + (2 * ROOM if split > 1 else 0)
        for c in range(split)
    ]
    across = [
        _width(r.columns[0], r.name == SERVERS, rails)
        for r in seen.rows
        if len(r.columns) != split or split == 1
    ]
    natural = sum(wants) + COLUMN_GAP * (split - 1)
    width = min(WIDEST, max([natural, *across, 300.0]))
    scale = (width - COLUMN_GAP * (split - 1)) / sum(wants)
    frames, x = [], LEFT
    for want in wants:
        frames.append((x, want * scale))
        x += want * scale + COLUMN_GAP
    rows = []
    for row in seen.rows:
        servers = row.name == SERVERS
        if len(row.columns) == split and split > 1:
            rows.append(
                [
                    place
                    for column, (left, wide) in zip(row.columns, frames, strict=True)
                    for place in _spread(column, left + ROOM, wide - 2 * ROOM, servers, rails)
                ]
            )
        else:
            rows.append(_evenly(row.columns[0], width, servers, rails))
    return _Layout(rows, frames, width)


def _evenly(items: Sequence[Item], width: float, servers: bool, rails: int) -> list[_Place]:
    """Place items over the whole width, with equal space between their middles where there is
    room."""
    tight = _spread(items, LEFT, width, servers, rails)
    slot = width / len(items)
    if any(p.width > slot - 4 for p in tight):
        return tight
    return [_Place(p.item, LEFT + slot * (i + 0.5), p.width) for i, p in enumerate(tight)]


def _text(x: float, y: float, kind: str, text: str) -> str:
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _gap(place: _Place, gap: Gap, y: float, kind: str, noun: str) -> str:
    count = f"{gap.count:,} more"
    lines = [_text(place.x, y - 8, "dots", "···"), _text(place.x, y + 7, "more", count)]
    if gap.blocks:
        lines.append(_text(place.x, y + 21, "more", f"in {gap.blocks:,} {noun}"))
    return (
        f'<g class="gap" data-tier="{escape(kind)}" data-count="{gap.count}">{"".join(lines)}</g>'
    )


def _switch(place: _Place, box: Box, y: float, tier: str, labelled: bool) -> str:
    label = _text(place.x, y, "", box.label) if labelled else ""
    return (
        f'<g class="switch{_rail_class(box.rail)}" '
        f'data-tier="{escape(tier)}"><title>{escape(box.title)}</title>'
        f'<rect x="{place.x - place.width / 2:.1f}" y="{y - SWITCH_HEIGHT / 2:.1f}" '
        f'width="{place.width:.1f}"'
        f' height="{SWITCH_HEIGHT:g}" rx="3"/>{label}</g>'
    )


def _nic_x(place: _Place, rail: int, rails: int) -> float:
    """Return where the NIC of a rail stands on a server's upper edge."""
    return place.x + ((rail + 0.5) / rails - 0.5) * (place.width - 8)


def _unit(place: _Place, box: Box, y: float, rails: int) -> str:
    top = y - SERVER_HEIGHT / 2
    radius = max(1.2, min(3.2, (place.width - 8) / rails * 0.38))
    dots = "".join(
        f'<circle class="nic{_rail_class(r)}" cx="{_nic_x(place, r, rails):.1f}" '
        f'cy="{top + 7:.1f}" r="{radius:.1f}"/>'
        for r in range(rails)
    )
    # A second sheet behind tells that the box stands for many.
    stack = _sheet(place, top, 4.0) if box.members > 1 else ""
    short = f"{box.members:,}" if box.members > 1 else str(box.index + 1)
    label = box.label if place.width >= 6 * len(box.label) + 4 else short
    return (
        f'<g class="unit" data-members="{box.members}"><title>{escape(box.title)}</title>{stack}'
        f"{_sheet(place, top, 0.0)}{dots}{_text(place.x, y + 7, '', label)}</g>"
    )


def _sheet(place: _Place, top: float, shift: float) -> str:
    x = place.x - place.width / 2 + shift
    return (
        f'<rect x="{x:.1f}" y="{top + shift:.1f}" width="{place.width:.1f}" '
        f'height="{SERVER_HEIGHT:g}" rx="4"/>'
    )


def line_width(cables: int) -> float:
    """Return the width of a bundle: its area grows with the cables, up to a width that still leaves
    gaps."""
    return min(5.0, 0.85 * math.sqrt(cables))


def _bundle(
    bundle: Bundle, places: list[dict[int, _Place]], y: list[float], rails: int, opacity: float
) -> str:
    lower, upper = bundle.rows
    low, up = places[lower][bundle.lower], places[upper][bundle.upper]
    if lower == upper:
        way = _arc(low.x, up.x, y[lower] - SWITCH_HEIGHT / 2)
    else:
        servers = lower == 0
        x1 = _nic_x(low, bundle.rail, rails) if servers else low.x
        y1 = y[lower] - (SERVER_HEIGHT / 2 - 7 if servers else SWITCH_HEIGHT / 2)
        way = f"M{x1:.1f} {y1:.1f}L{up.x:.1f} {y[upper] + SWITCH_HEIGHT / 2:.1f}"
    return (
        f'<path class="cables{_rail_class(bundle.rail)}" d="{way}"'
        f' stroke-width="{line_width(bundle.cables):.2f}" opacity="{opacity:.2f}"'
        f' data-cables="{bundle.cables}"/>'
    )


def _arc(x1: float, x2: float, y: float) -> str:
    """Return a curve over a row; the farther its ends, the higher it goes."""
    height = min(ARC_HEIGHT, 8.0 + abs(x2 - x1) * 0.12)
    return f"M{x1:.1f} {y:.1f}Q{(x1 + x2) / 2:.1f} {y - 2 * height:.1f} {x2:.1f} {y:.1f}"


def _lines(seen: View, places: list[dict[int, _Place]], y: list[float]) -> list[str]:
    many: dict[tuple[int, int], int] = defaultdict(int)
    for bundle in seen.bundles:
        many[bundle.rows] += 1
    opacity = {
        rows: max(0.22, min(0.9, 1.25 - 0.115 * math.log2(max(2, n)))) for rows, n in many.items()
    }
    return [_bundle(b, places, y, seen.rails, opacity[b.rows]) for b in seen.bundles]


def _row_label(row: Row, y: float) -> str:
    name = "Servers" if row.name == SERVERS else row.name.capitalize()
    count = f"{row.total:,}" if row.name == SERVERS else _many(row.total, "switch", "switches")
    return (
        _text(4, y - 16, "row", name)
        + _text(4, y, "soft", count)
        + _text(4, y + 15, "soft", row.note)
    )


def _per_line(seen: View, rows: tuple[int, int]) -> str:
    counts = sorted({b.cables for b in seen.bundles if b.rows == rows})
    if not counts:
        return ""
    return f"{counts[0]} a line" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} a line"


def _cable_labels(plan: Plan, seen: View, y: list[float]) -> list[str]:
    """Count the cables between two rows, or within one, at their height."""
    lines, counts = [], defaultdict[tuple[int, int], int](int)
    for links in (plan.attach, *plan.trunks):
        lower = 0 if links is plan.attach else plan.role(links.lower) + 1
        counts[lower, plan.role(links.upper) + 1] += links.count
    for (lower, upper), count in counts.items():
        middle = (y[lower] + y[upper]) / 2 if lower != upper else y[lower] - PITCH / 2
        lines.append(_text(4, middle - 6, "soft", _many(count, "cable", "cables")))
        if per_line := _per_line(seen, (lower, upper)):
            lines.append(_text(4, middle + 8, "soft", per_line))
    return lines


def _frames(seen: View, layout: _Layout, y: list[float]) -> tuple[list[str], list[str]]:
    """Draw the frame of each pod or plane, and apart from it its name, which goes over the
    cables."""
    if len(seen.columns) < 2:
        return [], []
    tall = [
        i
        for i, row in enumerate(seen.rows)
        if len(row.columns) == len(seen.columns) and row.name != SERVERS
    ]
    top, bottom = y[max(tall)] - SWITCH_HEIGHT / 2 - 24, y[min(tall)] + SWITCH_HEIGHT / 2 + 8
    frames, names = [], []
    for name, (left, width) in zip(seen.columns, layout.frames, strict=True):
        if name:
            frames.append(
                f'<rect class="pod" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" '
                f'height="{bottom - top:.1f}" rx="6"/>'
            )
            if width >= 6 * len(name):
                names.append(_text(left + width / 2, top + 11, "more", name))
    return frames, names


def _many(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def caption(plan: Plan) -> str:
    """Return one sentence that counts the network."""
    demand = plan.demand
    nics = (
        f"{_many(demand.servers, 'server', 'servers')} with "
        f"{_many(demand.rails, 'NIC', 'NICs')} each"
    )
    others = (
        f" and {_many(demand.target_ports, 'port', 'ports')} of other devices"
        if demand.target_ports
        else ""
    )
    roles = ", ".join(f"{role.count:,} {role.name}" for role in plan.roles)
    cables = " + ".join(f"{c:,}" for c in plan.cables)
    reserved = (
        f" ({plan.reserved_links} of them for the fabric manager)" if plan.reserved_links else ""
    )
    return (
        f"{plan.topology.capitalize()}: {nics}{others}; {roles} "
        f"{'switch' if plan.switches == 1 else 'switches'} "
        f"of {plan.switch.radix} ports ({plan.switch.id}); {cables} cables{reserved}."
    )


def _plain(text: str) -> str:
    """Return text that XML can hold."""
    return "".join(c for c in text if c >= " " or c in "\t\n")


def fabric_svg(plan: Plan) -> str:
    """Return the drawing of a network as one SVG element: crisp at any size, well-formed XML, the
    same for the same plan."""
    seen = view(plan)
    layout = _layout(seen)
    rows = len(seen.rows)
    arcs = any(b.rows == (rows - 1, rows - 1) for b in seen.bundles)
    top = TOP + (18 if len(seen.columns) > 1 else 0) + (PITCH / 2 if arcs else 0)
    y = [top + PITCH * (rows - 1 - i) + SWITCH_HEIGHT / 2 for i in range(rows)]
    height, width = y[0] + SERVER_HEIGHT / 2 + BOTTOM, LEFT + layout.width + RIGHT
    places = [{p.item.index: p for p in row if isinstance(p.item, Box)} for row in layout.rows]
    frames, names = _frames(seen, layout, y)
    parts = [*frames, *_lines(seen, places, y), *names]
    for i, row in enumerate(seen.rows):
        parts.append(_row_label(row, y[i]))
        labelled = all(
            p.width >= 6.5 * len(p.item.label) + 3
            for p in places[i].values()
            if isinstance(p.item, Box)
        )
        for place in layout.rows[i]:
            if isinstance(place.item, Gap):
                parts.append(_gap(place, place.item, y[i], row.name, seen.noun))
            elif row.name == SERVERS:
                parts.append(_unit(place, place.item, y[i], seen.rails))
            else:
                parts.append(_switch(place, place.item, y[i], row.name, labelled))
    parts += _cable_labels(plan, seen, y)
    about = escape(caption(plan))
    return _plain(
        '<svg xmlns="http://www.w3.org/2000/svg" class="fabric" role="img" '
        f'style="--natural:{width:.0f}px"'
        f' viewBox="0 0 {width:.0f} {height:.0f}"'
        f' width="{width:.0f}" '
        f'height="{height:.0f}"><title>{about}</title><style>{_style(seen.rails)}</style>'
        + "".join(parts)
        + "</svg>"
    )
