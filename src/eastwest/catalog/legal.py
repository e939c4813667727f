"""What a fact may be. One idea: each attribute is declared once, as a row of ``attributes.csv``.

That holds for the catalog itself and for all that users set in its place.

A row has a kind and an attribute, each a name or a pattern (``*_Bps``; the first row that matches
counts), a type with its bounds or values, the unit, and what it means::

    number    from low to high              choice   one of the values
    count     a whole number, the same      choices  some of the values
    flag      0 or 1                        entry    an entry of a kind in values
    numbers   as many as the catalog has    entries  some of those
    pairs     0-1:4 0-2:4 …                 text, json
"""

from __future__ import annotations

import csv
import functools
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import resources

from eastwest.errors import InternalError, UserError, nearest

MOST_CHARACTERS = 2000
_PAIRS = re.compile(r"\d{1,3}-\d{1,3}:\d{1,3}( \d{1,3}-\d{1,3}:\d{1,3})*")

Value = float | str
Entries = Mapping[str, Iterable[str]]


@dataclass(frozen=True, slots=True)
class Attribute:
    """What is declared of an attribute: type, bounds (in its unit) or values, unit, meaning."""

    kind: str
    attribute: str
    type: str
    low: float
    high: float
    values: tuple[str, ...]
    unit: str
    description: str

    @property
    def expected(self) -> str:
        """What is legal, in words: ``a whole number from 1 to 16``."""
        unit = f" {self.unit}" if self.unit not in ("", "1") else ""
        bounds = f"from {_plain(self.low)} to {_plain(self.high)}{unit}"
        listed = f"from the catalog (eastwest facts {' '.join(self.values[:1])})"
        return {
            "number": f"a number {bounds}",
            "count": f"a whole number {bounds}",
            "flag": "0 or 1",
            "numbers": f"numbers {bounds}, as many as the catalog has",
            "choice": f"one of {', '.join(self.values)}",
            "choices": f"some of {', '.join(self.values)}",
            "entry": f"a name {listed}",
            "entries": f"names {listed}",
            "pairs": "pairs of GPUs with their links, such as 0-1:4 0-2:4",
            "text": f"text of 1 to {MOST_CHARACTERS:,} characters",
            "json": "a JSON object as text",
        }[self.type]


def attribute(kind: str, name: str) -> Attribute:
    """Return what is declared of an attribute.

    Raises InternalError for one that is not: every attribute needs its row.

    Parameters
    ----------
    kind, name : of the fact, such as ``switch`` and ``port_Bps``.
    """
    found = _found(kind, name)
    if found is None:
        raise InternalError(f"attributes.csv declares no {name} of a {kind}")
    return found


@functools.lru_cache(maxsize=4096)
def _found(kind: str, name: str) -> Attribute | None:
    return next(
        (a for a in _declared() if fnmatchcase(kind, a.kind) and fnmatchcase(name, a.attribute)),
        None,
    )


@functools.cache
def _declared() -> tuple[Attribute, ...]:
    text = resources.files("eastwest.catalog").joinpath("attributes.csv").read_text("utf-8")
    return tuple(
        Attribute(
            row["kind"],
            row["attribute"],
            row["type"],
            float(row["low"] or math.nan),
            float(row["high"] or math.nan),
            tuple(row["values"].split()),
            row["unit"],
            row["description"],
        )
        for row in csv.DictReader(text.splitlines())
    )


def require_legal(kind: str, name: str, value: Value, old: Value, entries: Entries) -> None:
    """Raise UserError, saying what was expected, if a value is none that the attribute can have.

    Parameters
    ----------
    kind, name : the kind and the attribute.
    value : a number in the attribute's unit, or text.
    old : the value that stands in the catalog, whose length a list of numbers must have.
    entries : the names of each kind, for attributes that name an entry.
    """
    declared = attribute(kind, name)
    if not _TYPES[declared.type](declared, value, old):
        raise UserError(f"expected {declared.expected}, not {_shown(value)}")
    if declared.type in ("entry", "entries"):
        _require_entries(declared, str(value), entries)


def _require_entries(declared: Attribute, value: str, entries: Entries) -> None:
    known = [name for kind in declared.values for name in entries.get(kind, (kind,))]
    for word in [value] if declared.type == "entry" else value.split():
        if word not in known:
            close = nearest(word, known)
            hint = f"did you mean '{close}'?" if close else ""
            raise UserError(f"expected {declared.expected}, not {_shown(word)}", hint=hint)


def _number(declared: Attribute, value: Value, old: Value) -> bool:
    return not isinstance(value, str) and declared.low <= value <= declared.high


def _count(declared: Attribute, value: Value, old: Value) -> bool:
    return _number(declared, value, old) and float(value).is_integer()


def _flag(declared: Attribute, value: Value, old: Value) -> bool:
    return value in (0.0, 1.0)


def _text(declared: Attribute, value: Value, old: Value) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= MOST_CHARACTERS


def _choice(declared: Attribute, value: Value, old: Value) -> bool:
    return value in declared.values


def _choices(declared: Attribute, value: Value, old: Value) -> bool:
    words = value.split() if isinstance(value, str) else []
    return 0 < len(set(words)) == len(words) and set(words) <= set(declared.values)


def _words(declared: Attribute, value: Value, old: Value) -> bool:
    return _text(declared, value, old) and len(set(str(value).split())) == len(str(value).split())


def _numbers(declared: Attribute, value: Value, old: Value) -> bool:
    try:
        numbers = [float(word) for word in str(value).split()]
    except ValueError:
        return False
    return len(numbers) == len(str(old).split()) and all(
        declared.low <= number <= declared.high for number in numbers
    )


def _pairs(declared: Attribute, value: Value, old: Value) -> bool:
    return isinstance(value, str) and _PAIRS.fullmatch(value) is not None


def _json(declared: Attribute, value: Value, old: Value) -> bool:
    try:
        return isinstance(value, str) and isinstance(json.loads(value), dict)
    except (ValueError, RecursionError):
        return False


_TYPES: dict[str, Callable[[Attribute, Value, Value], bool]] = {
    "number": _number,
    "count": _count,
    "flag": _flag,
    "text": _text,
    "choice": _choice,
    "choices": _choices,
    "entry": _text,
    "entries": _words,
    "numbers": _numbers,
    "pairs": _pairs,
    "json": _json,
}


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number.is_integer() and abs(number) < 1e7 else f"{number:g}"


def _shown(value: Value) -> str:
    if isinstance(value, str):
        return f"'{value if len(value) <= 40 else value[:39] + '…'}'"
    return _plain(value) if math.isfinite(value) else str(value)
