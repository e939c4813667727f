"""The catalog: what is known of the world, a row a fact. One idea: no constant lives in code; each
has unit and source.

A fact belongs to an entry (``switch`` ``qm9700``), and has an attribute whose name ends in its unit
(``port_to_port_s``), a central value, a range where sources disagree or do not know, a source, and
a mark that tells whether somebody checked the source. One CSV file a kind, all with the same
columns::

    id,attribute,value,low,high,unit,source,checked,note
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from types import MappingProxyType

from eastwest.errors import InternalError, UserError, unknown_name

CHECKED = ("checked", "partly", "unchecked", "derived", "fitted")
COLUMNS = ["id", "attribute", "value", "low", "high", "unit", "source", "checked", "note"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One constant of the world: central value, range, unit, source. Text facts have no range."""

    kind: str
    id: str
    attribute: str
    value: float | str
    low: float
    high: float
    unit: str
    source: str
    checked: str
    note: str

    @property
    def uncertain(self) -> bool:
        """Whether the fact has a range."""
        return self.low < self.high

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, entry and attribute."""
        return self.kind, self.id, self.attribute


@dataclass(frozen=True, slots=True)
class Catalog:
    """All facts, by kind, entry and attribute; what it is made from is copied and never changes."""

    facts: Mapping[tuple[str, str, str], Fact]
    entries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("facts", "entries"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def ids(self, kind: str) -> tuple[str, ...]:
        """Return the entries of a kind, in the order of the file."""
        return self.entries[kind]

    def require(self, kind: str, id: str) -> str:
        """Return the entry's id, or raise UserError with the nearest valid one.

        Parameters
        ----------
        kind : the kind of entry, such as ``switch``.
        id : the entry's name.
        """
        if id not in self.entries[kind]:
            raise unknown_name(kind, id, self.entries[kind])
        return id

    def fact(self, kind: str, id: str, attribute: str) -> Fact:
        """Return a fact. Raises UserError for an unknown entry or an attribute that it does not
        have.

        Parameters
        ----------
        kind, id, attribute : of the fact, such as ``switch``, ``qm9700``, ``radix``.
        """
        found = self.facts.get((kind, id, attribute))
        if found is None:
            self.require(kind, id)
            raise UserError(
                f"the catalog has no {attribute} for {kind} '{id}'", hint="set it under overrides:"
            )
        return found

    def has(self, kind: str, id: str, attribute: str) -> bool:
        """Whether the fact is known.

        Parameters
        ----------
        kind, id, attribute : of the fact.
        """
        return (kind, id, attribute) in self.facts

    def search(self, pattern: str) -> Iterator[Fact]:
        """Yield the facts whose kind, entry or attribute contains every word of the pattern."""
        words = pattern.lower().replace("_", "-").split()
        for fact in self.facts.values():
            text = f"{fact.kind} {fact.id} {fact.attribute}".lower().replace("_", "-")
            if all(word in text for word in words):
                yield fact

    def with_facts(self, added: Iterable[Fact]) -> Catalog:
        """Return a catalog with further facts; entries that are new stand behind the others."""
        facts, entries = dict(self.facts), dict(self.entries)
        for fact in added:
            facts[fact.key] = fact
            if fact.id not in entries[fact.kind]:
                entries[fact.kind] = (*entries[fact.kind], fact.id)
        return Catalog(facts, entries)

    def with_overrides(self, overrides: Mapping[tuple[str, str, str], float | str]) -> Catalog:
        """Return a catalog in which the user's values stand instead; each keeps its unit and loses
        its range."""
        facts = dict(self.facts)
        for (kind, id, attribute), value in overrides.items():
            old = self.fact(kind, id, attribute)
            number = float(value) if isinstance(value, (int, float)) else math.nan
            facts[old.key] = Fact(
                kind,
                id,
                attribute,
                value,
                number,
                number,
                old.unit,
                "the cluster file",
                "user",
                f"catalog: {old.value}",
            )
        return Catalog(facts, self.entries)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def parse_fact(kind: str, row: dict[str, str], where: str) -> Fact:
    """Turn one CSV row into a Fact.

    Properties, checked in this order: the unit, source and mark are given; a range holds the value;
    numbers are finite.

    Parameters
    ----------
    kind : the file's name, which is the kind of its entries.
    row : the cells by column (``COLUMNS``), as text.
    where : file and line, for messages.

    Raises InternalError for a row that breaks a property.
    """
    value = _number(row["value"])
    low, high = _number(row["low"] or row["value"]), _number(row["high"] or row["value"])
    # Property: unit, source and mark are given.
    if (
        not row["source"]
        or row["checked"] not in CHECKED
        or (value is not None and not row["unit"])
    ):
        raise InternalError(f"{where}: a fact needs unit, source and one of {', '.join(CHECKED)}")
    if value is None or low is None or high is None:
        return Fact(
            kind,
            row["id"],
            row["attribute"],
            row["value"],
            math.nan,
            math.nan,
            row["unit"],
            row["source"],
            row["checked"],
            row["note"],
        )
    # Property: a range holds the value, and all are finite.
    if not (low <= value <= high and math.isfinite(low) and math.isfinite(high)):
        raise InternalError(f"{where}: {row['attribute']}: {value} is not within [{low}, {high}]")
    return Fact(
        kind,
        row["id"],
        row["attribute"],
        value,
        low,
        high,
        row["unit"],
        row["source"],
        row["checked"],
        row["note"],
    )


@functools.cache
def catalog() -> Catalog:
    """Read the package's catalog (once a process)."""
    facts: dict[tuple[str, str, str], Fact] = {}
    entries: dict[str, tuple[str, ...]] = {}
    for file in sorted(
        resources.files("eastwest.catalog").joinpath("data").iterdir(), key=lambda f: f.name
    ):
        if not file.name.endswith(".csv"):
            continue
        kind = file.name.removesuffix(".csv")
        lines = file.read_text(encoding="utf-8").splitlines()
        for number, row in enumerate(csv.DictReader(lines), start=2):
            fact = parse_fact(kind, row, f"{file.name}:{number}")
            if fact.key in facts:
                raise InternalError(
                    f"{file.name}:{number}: {fact.id} {fact.attribute} stands twice"
                )
            facts[fact.key] = fact
        entries[kind] = tuple(dict.fromkeys(f.id for f in facts.values() if f.kind == kind))
    return Catalog(facts, entries)
