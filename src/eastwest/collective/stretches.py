"""The sizes at which NCCL changes its mind. One idea: what it believes is straight lines between a
few sizes, so the cheapest of them is found exactly, by walking from crossing to crossing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from eastwest.collective.nccl_tuner import Offer


@dataclass(frozen=True, slots=True)
class Stretch:
    """A range of sizes, from ``from_bytes`` to the next stretch, with one way to do it."""

    from_bytes: float
    algorithm: str
    protocol: str


def stretches(menu: Sequence[Offer], from_bytes: float = 1.0) -> tuple[Stretch, ...]:
    """Return what NCCL chooses from a menu at every size from ``from_bytes`` up.

    Offers are straight lines between powers of two (where the tree's correction steps) and the
    ring's plateau; equal times go to the first name, as in ``Estimator.choose``.
    """
    if not menu:
        return ()
    edges = {from_bytes}
    for offer in menu:
        edges.update(64.0 * 2**i for i in range(len(offer.corrections) + 1) if offer.corrections)
        edges.add(offer.plateau_bytes)
    bounds = [*sorted(e for e in edges if from_bytes <= e < math.inf), math.inf]
    found: list[Stretch] = []
    for low, high in pairwise(bounds):
        for start, offer in _walk(menu, low, high):
            if not found or (found[-1].algorithm, found[-1].protocol) != _way(offer):
                found.append(Stretch(start, *_way(offer)))
    return tuple(found)


def _way(offer: Offer) -> tuple[str, str]:
    return offer.algorithm, offer.protocol


def _walk(menu: Sequence[Offer], low: float, high: float) -> list[tuple[float, Offer]]:
    """Return the cheapest offers between two edges, each with the size from which it is so."""
    lines = [(offer, *offer.line(low)) for offer in menu]
    now, base, slope = min(lines, key=lambda x: (x[1] + low * x[2], *_way(x[0])))
    steps, at = [(low, now)], low
    while True:
        crossings = [
            (max(at, (b - base) / (slope - s)), s, b, offer) for offer, b, s in lines if s < slope
        ]
        if not crossings:
            return steps
        at, slope, base, now = min(crossings, key=lambda c: (c[0], c[1], *_way(c[3])))
        if at >= high:
            return steps
        steps.append((at, now))
