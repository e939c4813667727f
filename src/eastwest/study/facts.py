"""What do we know, and from where? One idea: every constant can be looked up by its user, a kind by
its entries, an entry by its facts."""

from __future__ import annotations

import csv
import itertools
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import resources

from eastwest.catalog.legal import attribute
from eastwest.catalog.load import Catalog, Fact
from eastwest.errors import UserError, nearest
from eastwest.table import Column, Table, Value
from eastwest.units import (
    format_bits_rate,
    format_bytes_rate,
    format_count,
    format_money,
    format_size,
    format_time,
)

_IN_BITS = ("nic_Bps", "port_Bps", "rate_Bps", "least_Bps")  # as network people say them
_KEPT = 2  # columns that a list keeps on the narrowest terminal
_LEAST = 20  # columns that text must have beside a value, else it begins anew
_WIDEST_VALUE = 24  # a longer one moves what follows it
_SHOW: dict[str, Callable[[float], str]] = {
    "B": lambda v: f"{v / 1e9:,.4g} GB" if v >= 1e9 and v % 1e8 == 0 else _bytes(v),
    "s": format_time,
    "FLOP/s": lambda v: f"{v / 1e12:,.4g} TFLOP/s",
    "USD": format_money,
    "1": lambda v: format_count(v) if abs(v) >= 1e6 else f"{v:,.6g}",
}


def _bytes(size_bytes: float) -> str:
    return format_size(size_bytes) if size_bytes >= 10_000 else f"{size_bytes:,.0f} B"


def find(words: str, facts: Catalog) -> list[Fact]:
    """Return the facts that words mean: of the entry that one names, else those that contain all.

    Raises UserError with the nearest name if there are none.
    """
    found = list(facts.search(words))
    exact = [fact for fact in found if fact.id in words.split()]
    if not found:
        close = nearest(words, {id for ids in facts.entries.values() for id in ids})
        hint = f"did you mean '{close}'?" if close else "eastwest facts lists the kinds"
        raise UserError(f"no fact matches '{words[:80]}'", hint=hint)
    return exact or found


def kinds_table(facts: Catalog) -> Table:
    """Return the kinds: how many entries, and what they are."""
    said = _kinds()
    rows = tuple(
        (kind, len(ids), said[kind][1] if kind in said else "")
        for kind, ids in facts.entries.items()
    )
    columns = (
        Column("kind", "kind", right=False),
        Column("entries", "entries"),
        Column("what", "what they are", right=False),
    )
    return Table("", columns, rows, ("eastwest facts KIND lists its entries, NAME shows one.",))


def entries_table(facts: Catalog, kind: str) -> Table:
    """Return the entries of a kind, one a row, with the facts that one chooses by."""
    wanted = _kinds().get(kind, ((), ""))[0]
    columns = [Column("id", kind, right=False)]
    columns += [
        Column(a, a, right=_is_number(kind, a), spare=max(0, i - _KEPT))
        for i, a in enumerate(wanted, 1)
    ]
    rows = tuple(
        (id, *(_shown(facts.facts.get((kind, id, a))) for a in wanted)) for id in facts.ids(kind)
    )
    example = facts.ids(kind)[0]
    return Table("", tuple(columns), rows, (f"eastwest facts {example} shows all of one.",))


def lines(facts: Iterable[Fact], width: int | None, sources: bool = False) -> Iterator[str]:
    """Yield facts as lines of text, entry by entry.

    Parameters
    ----------
    facts : those of an entry one after the other.
    width : columns of the terminal; None where nothing is wrapped.
    sources : whether a line with the source follows each fact.
    """
    for (kind, id), group in itertools.groupby(facts, key=lambda fact: (fact.kind, fact.id)):
        yield f"{kind} {id}"
        yield from _entry(list(group), width, sources)
        yield ""


def facts_table(facts: Iterable[Fact]) -> Table:
    """Return facts as a table with all that is known of each, for machines: kind, name, attribute,
    value, range, unit, source, whether it was checked, note."""
    keys = ("kind", "id", "attribute", "value", "range", "unit", "source", "checked", "note")
    rows = tuple(
        (f.kind, f.id, f.attribute, f.value, _range(f), f.unit, f.source, f.checked, f.note)
        for f in facts
    )
    return Table("", tuple(Column(key, key, right=False) for key in keys), rows)


def _entry(facts: Sequence[Fact], width: int | None, sources: bool) -> Iterator[str]:
    values = [_shown(fact) or "" for fact in facts]
    names = max(len(fact.attribute) for fact in facts)
    wide = min(_WIDEST_VALUE, max(len(value) for value in values))
    for fact, value in zip(facts, values, strict=True):
        meaning = attribute(fact.kind, fact.attribute).description
        between = f"{_shown(fact, fact.low)} to {_shown(fact, fact.high)}; "
        said = f"{between if fact.uncertain else ''}{meaning}"
        line = f"  {fact.attribute:<{names}}  {value:<{wide}}  {said}"
        yield from _wrapped(line, width, 2 + names + 2 + wide + 2)
        if sources:
            note = f"; {fact.note}" if fact.note else ""
            yield from _wrapped(f"      {fact.source} ({fact.checked}){note}", width, 8)


def _wrapped(line: str, width: int | None, indent: int) -> list[str]:
    if width is None or len(line) <= width:
        return [line.rstrip()]
    indent = indent if indent <= width - _LEAST else 4
    return textwrap.wrap(line, width, subsequent_indent=" " * indent, drop_whitespace=True)


def _shown(fact: Fact | None, value: Value = None) -> str | None:
    """Return a fact's value, or another in its place, as a person reads it."""
    if fact is None:
        return None
    value = fact.value if value is None else value
    if isinstance(value, str):
        return value
    number = float(value or 0)
    if fact.unit == "B/s":
        bits = fact.attribute.endswith(_IN_BITS)
        return format_bits_rate(number) if bits else format_bytes_rate(number)
    show = _SHOW.get(fact.unit)
    if fact.attribute == "year" or show is None:
        return f"{number:.6g} {fact.unit}".removesuffix(" 1")
    return show(number)


def _is_number(kind: str, name: str) -> bool:
    return attribute(kind, name).type in ("number", "count")


def _range(fact: Fact) -> str:
    return f"{fact.low:g} to {fact.high:g}" if fact.uncertain else ""


def _kinds() -> dict[str, tuple[tuple[str, ...], str]]:
    """Return each kind's attributes that one chooses by, and what its entries are."""
    text = resources.files("eastwest.catalog").joinpath("kinds.csv").read_text("utf-8")
    return {
        row["kind"]: (tuple(row["columns"].split()), row["description"])
        for row in csv.DictReader(text.splitlines())
    }
