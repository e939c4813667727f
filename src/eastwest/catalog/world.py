"""A world: one consistent choice of a value for each uncertain constant. One idea: models read
worlds, never ranges.

The nominal world takes the central values. In drawn worlds each uncertain constant lies below its
central value in one half and above it in the other, the likelier the nearer, and never outside of
its range; where the central value is an end of the range, half of the worlds take just that. So the
nominal world is in the middle of the drawn ones. The same seed gives the same worlds, whatever is
read from them and in whatever order.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from eastwest.catalog.load import Catalog, Fact, catalog
from eastwest.errors import UserError

Floats = NDArray[np.float64]

AT_ONCE = 100  # worlds drawn together


@dataclass(slots=True, eq=False)
class World:
    """The values of all facts in one world.

    Not frozen: it remembers which facts were read, so that a report can list them. Two worlds are
    equal if they are the same one.
    """

    catalog: Catalog
    drawn: Mapping[tuple[str, str, str], float] = field(default_factory=dict, repr=False)
    _used: dict[tuple[str, str, str], Fact] = field(default_factory=dict, repr=False)

    def number(self, kind: str, id: str, attribute: str) -> float:
        """Return a number. Raises UserError if the entry or the attribute is unknown or is text.

        Parameters
        ----------
        kind, id, attribute : of the fact; its value is in the unit that the attribute's name ends
            in.
        """
        key = (kind, id, attribute)
        fact = self._used.get(key)
        if fact is None:
            fact = self._used[key] = self.catalog.fact(kind, id, attribute)
        value = self.drawn.get(key, fact.value)
        if isinstance(value, str):
            raise UserError(f"{kind} '{id}': {attribute} is '{value}', not a number")
        return value

    def text(self, kind: str, id: str, attribute: str) -> str:
        """Return a text fact, such as the GPU of a server.

        Parameters
        ----------
        kind, id, attribute : of the fact.

        Raises UserError if the entry or the attribute is unknown.
        """
        fact = self.catalog.fact(kind, id, attribute)
        self._used[fact.key] = fact
        return str(fact.value)

    def has(self, kind: str, id: str, attribute: str) -> bool:
        """Whether the fact is known in this world.

        Parameters
        ----------
        kind, id, attribute : of the fact.
        """
        return self.catalog.has(kind, id, attribute)

    def used(self) -> list[Fact]:
        """Return the facts that were read from this world so far, sorted."""
        return [self._used[key] for key in sorted(self._used)]


def nominal(facts: Catalog | None = None) -> World:
    """Return the world of central values."""
    return World(facts or catalog())


def draw(count: int, seed: int = 0, facts: Catalog | None = None) -> Iterator[World]:
    """Draw ``count`` worlds, one after the other; the same seed gives the same worlds to the bit.

    They are drawn by the hundred, so that a hundred thousand take no more memory than that.

    Parameters
    ----------
    count : how many worlds.
    seed : of the draw.
    facts : the catalog whose ranges count; the package's own if left out.
    """
    facts = facts or catalog()
    uncertain = [fact for _, fact in sorted(facts.facts.items()) if fact.uncertain]
    low, middle, high = (
        np.array([getattr(f, name) for f in uncertain], float) for name in ("low", "value", "high")
    )
    keys, random = [fact.key for fact in uncertain], np.random.default_rng(seed)
    for first in range(0, count, AT_ONCE):
        size = (min(AT_ONCE, count - first), len(uncertain))
        for row in _spread(random.random(size), low, middle, high).tolist():
            yield World(facts, dict(zip(keys, row, strict=True)))


def _spread(share: Floats, low: Floats, middle: Floats, high: Floats) -> Floats:
    """Return the values below which a share of the worlds lies, half of them below the middle."""
    below = low + (middle - low) * np.sqrt(2 * np.minimum(share, 0.5))
    above = high - (high - middle) * np.sqrt(2 * np.minimum(1 - share, 0.5))
    values: Floats = np.where(share < 0.5, below, above)
    return values


@functools.cache
def shared_nominal() -> World:
    """Return one nominal world of the package's own catalog, for callers that do not track use."""
    return nominal()
