"""Laws that every engine obeys, called by every simulation test through one helper."""

from __future__ import annotations

import numpy as np

from eastwest.engine import ENGINES
from eastwest.traffic import NO_CHANGES, Changes, Links, Messages, RouteSet, Timeline


def simulated(
    engine: str,
    links: Links,
    messages: Messages,
    routes: RouteSet,
    changes: Changes = NO_CHANGES,
) -> Timeline:
    """Run an engine; its timeline must obey the laws, and be the same to the bit in a second
    run."""
    first, again = (ENGINES[engine].simulate(links, messages, routes, changes) for _ in range(2))
    first.check(links, messages, routes, changes)
    for name in Timeline.__slots__:
        assert np.array_equal(getattr(first, name), getattr(again, name)), name
    return first
