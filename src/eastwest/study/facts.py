"""What do we know, and from where? One idea: every constant can be looked up by its user."""

from __future__ import annotations

from collections.abc import Iterable

from eastwest.catalog.load import Fact
from eastwest.table import Column, Table


def _range(fact: Fact) -> str:
    return f"{fact.low:g} to {fact.high:g}" if fact.uncertain else ""


def facts_table(facts: Iterable[Fact]) -> Table:
    """Return facts as a table: kind, name, attribute, value, range, unit, source, whether checked,
    note."""
    columns = (
        Column("kind", "kind", right=False),
        Column("id", "name", right=False),
        Column("attribute", "fact", right=False),
        Column("value", "value", lambda v: f"{v:g}" if isinstance(v, float) else str(v)),
        Column("range", "range"),
        Column("unit", "unit", right=False),
        Column("source", "source", right=False),
        Column("checked", "source checked", right=False),
        Column("note", "note", right=False),
    )
    rows = tuple(
        (f.kind, f.id, f.attribute, f.value, _range(f), f.unit, f.source, f.checked, f.note)
        for f in facts
    )
    return Table("", columns, rows)
