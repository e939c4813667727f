"""Results as tables. One idea: every verb's answer is a Table, and a Table knows how to show itself
anywhere.

Values stay numbers in base units (bytes, seconds, bytes per second); a column's ``show`` turns them
into text at the edge. Exports cannot carry spreadsheet formulas: text that starts with ``= + - @``
or a control character is quoted with an apostrophe.
"""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Value = str | int | float | bool | None
FORMATS = ("table", "json", "csv", "md")


def plain(value: Value) -> str:
    """Show a value as it stands: six significant digits, a dash for nothing."""
    if value is None:
        return "–"
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its key in JSON and CSV (with unit, such as ``latency_s``), its heading, how it
    is shown.

    Where a terminal is too narrow, columns are left out, those with the highest ``spare`` first; 0
    always stays.
    """

    key: str
    label: str
    show: Callable[[Any], str] = plain
    right: bool = True
    spare: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values under columns, with a title and notes."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"{self.title}: a row has {len(row)} values for {len(self.columns)} columns"
                )

    def records(self) -> list[dict[str, Value]]:
        """Return the rows as dictionaries by column key, values unformatted."""
        return [dict(zip((c.key for c in self.columns), row, strict=True)) for row in self.rows]

    def shown(self) -> list[list[str]]:
        """Return the rows as text, as a person reads them."""
        return [
            [
                plain(None) if v is None else c.show(v)
                for c, v in zip(self.columns, row, strict=True)
            ]
            for row in self.rows
        ]

    def to_json(self) -> str:
        """Return ``{"title", "rows", "notes"}`` as JSON text."""
        return dump_json({"title": self.title, "rows": self.records(), "notes": list(self.notes)})

    def to_csv(self) -> str:
        """Return comma-separated values with the column keys as header."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([c.key for c in self.columns])
        writer.writerows([[without_formula(v) for v in row] for row in self.rows])
        return out.getvalue()

    def to_markdown(self) -> str:
        """Return a Markdown table, cells escaped."""
        lines = [_md_row(c.label for c in self.columns)]
        lines.append("|" + "|".join("--:" if c.right else ":--" for c in self.columns) + "|")
        lines += [_md_row(row) for row in self.shown()]
        return "\n".join(lines + [f"\n{note}" for note in self.notes]) + "\n"

    def fitted(self, width: int) -> Table:
        """Return the table without its most spare columns, as far as it takes to fit a terminal;
        says what is missing."""
        kept = list(range(len(self.columns)))
        widths = [
            max(len(line) for cell in (c.label, *column) for line in cell.split("\n"))
            for c, column in zip(self.columns, zip(*self.shown(), strict=True), strict=False)
        ]
        while widths and sum(widths[i] + 3 for i in kept) > width:
            most = max(kept, key=lambda i: self.columns[i].spare)
            if not self.columns[most].spare:
                break
            kept.remove(most)
        if len(kept) == len(self.columns):
            return self
        missing = ", ".join(
            c.label.replace("\n", " ") for i, c in enumerate(self.columns) if i not in kept
        )
        note = f"Left out, for the terminal is narrow: {missing}."
        rows = tuple(tuple(row[i] for i in kept) for row in self.rows)
        return Table(self.title, tuple(self.columns[i] for i in kept), rows, (*self.notes, note))

    def to_rich(self) -> Any:
        """Return a ``rich.table.Table`` with aligned columns."""
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            title=self.title or None, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False
        )
        for c in self.columns:
            # A number that is folded would be read as another one: text gives way first.
            table.add_column(
                c.label, justify="right" if c.right else "left", overflow="fold", no_wrap=c.right
            )
        for row in self.shown():
            table.add_row(*[Text(cell) for cell in row])
        return table

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(c.label)}</th>" for c in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.shown()
        )
        notes = "".join(f"<p>{html.escape(n)}</p>" for n in self.notes)
        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def _md_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def without_formula(value: Value) -> Value:
    """Return a value that a spreadsheet takes as text, not as a formula."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value


def dump_json(data: object) -> str:
    """Write JSON with stable layout; refuses what is not finite."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_text(tables: Sequence[Table], form: str) -> str:
    """Return one or more tables in a machine format (``json``, ``csv`` or ``md``)."""
    if form == "json":
        parts = [json.loads(t.to_json()) for t in tables]
        return dump_json(parts[0] if len(parts) == 1 else parts)
    if form == "csv":
        return "\n".join(t.to_csv() for t in tables)
    return "\n".join((f"**{t.title}**\n\n" if t.title else "") + t.to_markdown() for t in tables)
