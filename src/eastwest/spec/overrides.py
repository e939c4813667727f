"""Facts that a file sets in place of the catalog's. One idea: an override must name a fact that
exists, in its unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eastwest.catalog.load import Catalog, Fact, catalog
from eastwest.errors import UserError, nearest
from eastwest.spec.quantities import describe
from eastwest.units import parse_rate, parse_size, parse_time

if TYPE_CHECKING:
    from eastwest.spec.problems import Collector

COUNTED = ("gpu", "server", "switch", "nic", "model")  # kinds whose whole numbers are counts
LEAST = (
    1e-30  # of anything that is not zero: smaller numbers are slips, and their quotients overflow
)
MOST_COUNTED = 100_000


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
    mistakes go to the collector, or are raised without one."""
    facts, found = facts or catalog(), dict[tuple[str, str, str], Override]()
    for key, value in values.items():
        fact = None
        try:
            fact = find(key, facts)
            if fact.key in found:
                raise UserError("the same fact is set twice")
            found[fact.key] = Override(*fact.key, read_value(fact, value))
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


def read_value(fact: Fact, value: object) -> float | str:
    """Read a value for a fact: a number in the attribute's unit, or a quantity with its own unit,
    or text for text."""
    if isinstance(fact.value, str):
        if isinstance(value, str) and 0 < len(value) <= 2000:
            return value
        raise UserError(f"expected text such as {describe(fact.value)}, not {describe(value)}")
    if isinstance(value, str):
        value = _quantity(fact, value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"expected {_kind(fact)}, not {describe(value)}")
    rate = fact.attribute.endswith(("_Bps", "_FLOPs"))
    if not 0 <= value <= 1e30 or (rate and value == 0):
        raise UserError(
            f"expected a {'positive' if rate else 'non-negative'} number, not {describe(value)}"
        )
    if 0 < value < LEAST:
        raise UserError(f"expected zero or at least {LEAST:g}, not {describe(value)}")
    if fact.unit == "1" and fact.kind in COUNTED and float(fact.value).is_integer():
        most = max(MOST_COUNTED, 100 * fact.value)
        if not (float(value).is_integer() and min(1, fact.value) <= value <= most):
            raise UserError(
                f"expected a whole number from {min(1, fact.value):.0f} to {most:,.0f}, not "
                f"{describe(value)}"
            )
    return float(value)


def _quantity(fact: Fact, text: str) -> float:
    if fact.attribute.endswith("_Bps"):
        return parse_rate(text)
    if fact.attribute.endswith("_bytes"):
        return parse_size(text)
    if fact.attribute.endswith("_s"):
        return parse_time(text)
    raise UserError(f"expected {_kind(fact)}, not {describe(text)}")


def _kind(fact: Fact) -> str:
    return "a number" if fact.unit == "1" else f"a number in {fact.unit}"
