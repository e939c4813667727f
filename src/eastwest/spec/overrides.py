"""Facts that a file sets in place of the catalog's. One idea: an override names a fact that exists,
and gives it a value that it can have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eastwest.catalog.legal import Attribute, attribute, require_legal
from eastwest.catalog.load import Catalog, Fact, catalog
from eastwest.errors import UserError, nearest
from eastwest.spec.quantities import describe
from eastwest.units import parse_rate, parse_size, parse_time

if TYPE_CHECKING:
    from eastwest.spec.problems import Collector

NUMBERS = ("number", "count", "flag")
READ = {"B/s": parse_rate, "B": parse_size, "s": parse_time}  # quantities with a unit of their own
# Of anything that is not zero: smaller numbers are slips, and their quotients overflow.
LEAST = 1e-30


@dataclass(frozen=True, slots=True)
class Override:
    """A fact of the catalog and the value that stands in its place, in the attribute's unit."""

    kind: str
    id: str
    attribute: str
    value: float | str

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, entry and attribute."""
        return self.kind, self.id, self.attribute


def read_overrides(
    values: Mapping[str, Any],
    collector: Collector | None = None,
    facts: Catalog | None = None,
) -> tuple[Override, ...]:
    """Read the mapping ``kind.id.attribute: value`` against a catalog (the package's if left out);
    mistakes go to the collector, or are raised without one.

    Parameters
    ----------
    values : facts and their values, as they stand in the file.
    collector : takes what is wrong.
    facts : the catalog that the keys mean.

    Raises UserError for the first mistake where there is no collector.
    """
    facts, found = facts or catalog(), dict[tuple[str, str, str], Override]()
    for key, value in values.items():
        fact = None
        try:
            fact = find(key, facts)
            if fact.key in found:
                raise UserError("the same fact is set twice")
            found[fact.key] = Override(*fact.key, read_value(fact, value, facts))
        except UserError as error:
            if collector is None:
                raise error.at(f"overrides.{key}") from None
            collector.add(("overrides", key), error.what, error.hint, at_key=fact is None)
            if collector.full:
                break
    return tuple(found.values())


def find(key: str, facts: Catalog) -> Fact:
    """Return the fact that a key means. Raises UserError with the nearest names.

    ``switch.qm9700.price_USD`` also finds the price list's ``price.qm9700.price_USD``; the kind may
    be left out where one fact only is meant.

    Parameters
    ----------
    key : ``kind.name.attribute``, or without the kind.
    facts : the catalog that is searched.
    """
    kind, _, rest = key.partition(".")
    known = kind in facts.entries
    entry, _, attribute = (rest if known else key).rpartition(".")
    if not entry or not attribute:
        raise UserError("expected kind.name.attribute", hint="such as switch.qm9700.price_USD")
    kinds = [kind, "price"] if known else sorted(facts.entries)
    found = [
        facts.facts[k, entry, attribute] for k in kinds if (k, entry, attribute) in facts.facts
    ]
    if not found:
        raise _unknown(entry, attribute, kinds, facts)
    if len(found) > 1 and not known:
        names = " or ".join(f"{f.kind}.{key[:80]}" for f in found)
        raise UserError(f"'{key[:80]}' is ambiguous", hint=f"write {names}")
    return found[0]


def _unknown(entry: str, attribute: str, kinds: list[str], facts: Catalog) -> UserError:
    names = {id for k in kinds for id in facts.entries.get(k, ())}
    if entry not in names:
        close = nearest(entry, names)
        hint = f"did you mean '{close}'?" if close else "see eastwest facts"
        return UserError(f"the catalog has no '{entry[:80]}'", hint=hint)
    attributes = {f.attribute for f in facts.facts.values() if f.id == entry and f.kind in kinds}
    close = nearest(attribute, attributes)
    hint = f"did you mean '{close}'?" if close else f"see eastwest facts {entry}"
    return UserError(f"the catalog has no {attribute[:80]} of '{entry}'", hint=hint)


def read_value(fact: Fact, value: object, facts: Catalog) -> float | str:
    """Read a value for a fact: a number in the attribute's unit, a quantity with its own unit, or
    text.

    Raises UserError, saying what was expected, for what the attribute cannot be
    (:mod:`eastwest.catalog.legal`).

    Parameters
    ----------
    fact : the one that stands in the catalog, which has the unit.
    value : as YAML has it.
    facts : the catalog whose entries a text may name.
    """
    declared = attribute(fact.kind, fact.attribute)
    if isinstance(value, bool):
        value = _truth(declared, value)
    elif isinstance(value, str) and declared.type in NUMBERS:
        value = _quantity(declared, value)
    if not isinstance(value, int | float | str):
        raise UserError(f"expected {declared.expected}, not {describe(value)}")
    if not isinstance(value, str):
        value = _finite(value)
        if 0 < abs(value) < LEAST:
            raise UserError(f"expected zero or at least {LEAST:g}, not {describe(value)}")
    require_legal(fact.kind, fact.attribute, value, fact.value, facts.entries)
    return value


def _truth(declared: Attribute, value: bool) -> float | str:
    """Return true or false as the attribute has it: 1 or 0, or the word."""
    word = str(value).lower()
    if declared.type == "flag":
        return float(value)
    if word not in declared.values:
        raise UserError(f"expected {declared.expected}, not {word}")
    return word


def _finite(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _quantity(declared: Attribute, text: str) -> float:
    read = READ.get(declared.unit)
    if read is None:
        raise UserError(f"expected {declared.expected}, not {describe(text)}")
    return read(text)
