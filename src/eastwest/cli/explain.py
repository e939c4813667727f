"""``eastwest explain``: one message from GPU to GPU, stage by stage, as a waterfall for each
technology."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eastwest.cli.common import ClusterFile, Format, Json, Overlays, command
from eastwest.cli.ending import say

if TYPE_CHECKING:
    from eastwest.study.explain import Explained, Explanation

# By name: a terminal's own palette keeps them readable on light and on dark.
_STYLES = {
    "CPU": "red",
    "GPU": "green",
    "NIC": "blue",
    "PCIe": "cyan",
    "memory": "yellow",
    "wire": "white",
    "switch": "bright_black",
    "device": "magenta",
}
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_WIDE = 130  # columns from which the reasons fit beside the bars


@command
def explain(
    file: ClusterFile,
    source: Annotated[
        str, typer.Option("--from", metavar="gpuG.nodeN", help="The sending GPU.")
    ] = "",
    target: Annotated[
        str, typer.Option("--to", metavar="gpuG.nodeN", help="The receiving GPU.")
    ] = "",
    size: Annotated[str, typer.Option("--size", help="The payload, such as 8B or 1MiB.")] = "8B",
    technologies: Annotated[
        str,
        typer.Option(
            "--technologies",
            metavar="A,B,…",
            help="Only these (eastwest facts technology lists them).",
        ),
    ] = "",
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Also write a report that opens without a network."),
    ] = None,
    overlay: Overlays = None,
    format: Format = "table",
    json: Json = False,
) -> None:
    """Show what happens to one message: each stage, who works, how long, and why.

    Example: eastwest explain cluster.yaml --from gpu0.node0 --to gpu0.node1 --size 8B
    """
    from eastwest.cli.common import chosen_format
    from eastwest.files import check_output
    from eastwest.spec.cluster import load_cluster
    from eastwest.study.explain import default_ends
    from eastwest.study.explain import explain as study
    from eastwest.units import parse_size

    form = chosen_format(format, json)
    cluster = load_cluster(file, overlay or ())
    if html is not None:
        check_output(html)
    ends = default_ends(cluster)
    names = [name.strip() for name in technologies.split(",") if name.strip()]
    found = study(cluster, source or ends[0], target or ends[1], parse_size(size), names)
    if html is not None:
        _write_page(found, html)
    _print(found, form)


def _write_page(found: Explanation, file: Path) -> None:
    from eastwest.files import write_text
    from eastwest.report.pages import explain_page
    from eastwest.report.waterfall import Waterfall, pieces

    falls = [
        Waterfall(e.label, pieces((s.name, s.place, s.side, s.seconds, s.why) for s in e.steps))
        for e in found.explained
    ]
    notes = [f"{e.label}: {_note(e)}." for e in found.explained]
    page = explain_page(found.line, found.size_bytes, falls, (*notes, *found.remarks), found.facts)
    write_text(file, page)
    say(f"eastwest: wrote {file}")


def _print(found: Explanation, form: str) -> None:
    from eastwest.cli.common import console, emit
    from eastwest.table import dump_json

    if form == "json":
        sys.stdout.write(dump_json(found.record()))
        return
    if form != "table":
        emit(found.tables(), form)
        return
    out = console()
    for explained in found.explained:
        out.print(_waterfall(explained, out.width))
    emit([found.brief()], form)


def _note(explained: Explained) -> str:
    """Return what the message leaves on the hosts, in words."""
    from eastwest.units import format_time

    counts = [
        ("copies", "copy", "copies"),
        ("context_switches", "context switch", "context switches"),
        ("interrupts", "interrupt", "interrupts"),
    ]
    words = [
        f"{n} {one if n == 1 else many}" for key, one, many in counts if (n := explained.count(key))
    ]
    return ", ".join([f"{format_time(explained.cpu_s)} of CPU", *words])


def _waterfall(explained: Explained, width: int) -> Any:
    """Return a table of bars, each beginning where the one before it ended."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from eastwest.units import format_time

    table = Table(box=None, show_header=False, pad_edge=False)
    wide = width >= _WIDE
    names = max((len(s.name) for s in explained.steps), default=0)
    whys = max((len(s.why) for s in explained.steps), default=0) if wide else 0
    cells = max(10, min(60, width - names - whys - 34))
    for column in ("left", "left", "right", "left"):
        table.add_column(justify=column, no_wrap=True)
    if wide:
        table.add_column(style="dim", no_wrap=True)
    at, whole, full = 0.0, explained.seconds or 1.0, _full_blocks()
    for s in explained.steps:
        mark = Text(bar(at / whole, s.seconds / whole, cells, full), style=_STYLES.get(s.place, ""))
        where = f"{s.side} {s.place}" if s.side != "network" else s.place
        row = [Text(s.name), Text(where), Text(format_time(s.seconds)), mark]
        table.add_row(*row, *([Text(s.why)] if wide else []))
        at += s.seconds
    title = Text.assemble(
        (explained.label, "bold"), f" ({explained.technology}): {format_time(explained.seconds)}"
    )
    return Group(title, Text(_note(explained), style="dim"), table, Text(""))


def _full_blocks() -> bool:
    """Whether stdout's encoding has block characters."""
    try:
        _EIGHTHS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def bar(start: float, length: float, cells: int, blocks: bool = True) -> str:
    """Return a bar in text: ``start`` and ``length`` are shares of the whole, ``cells`` its width;
    something always shows.

    A bar begins at a whole cell and ends at an eighth of one; without block characters it is made
    of ``#``.
    """
    first = min(int(start * cells), cells - 1)
    if not blocks:
        return " " * first + "#" * max(1, round((start + length) * cells) - first)
    eighths = max(1, min(round((start + length) * cells * 8), cells * 8) - first * 8)
    return " " * first + _EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
