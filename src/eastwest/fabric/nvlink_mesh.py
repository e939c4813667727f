"""Rings on GPUs that are wired to each other without an NVSwitch. One idea: a ring is a closed
tour, links are spent once.

0 --- 1       an example of four GPUs: 0-1 once, 1-2 twice, 2-3 once, 0-3 twice, 0-2 once, 1-3 once
| \\ / |       carries the tours 0-3-1-2 and 0-1-2-3, each in both directions: four rings
3 --- 2
"""

from __future__ import annotations

import functools
from itertools import pairwise, permutations

from eastwest.errors import InternalError

Pair = tuple[int, int]


def parse_pairs(text: str) -> dict[Pair, int]:
    """Read ``0-1:1 0-3:2`` as links by pair of GPUs."""
    links = {}
    for word in text.split():
        ends, count = word.split(":")
        a, b = sorted(int(end) for end in ends.split("-"))
        links[a, b] = int(count)
    return links


def _tours(gpus: int, links: dict[Pair, int]) -> list[tuple[Pair, ...]]:
    """Return every closed tour over the first GPUs that follows links, as its pairs, each tour
    once."""
    tours = set()
    for order in permutations(range(1, gpus)):
        if order[0] < order[-1]:
            stops = (0, *order, 0)
            pairs = tuple(sorted((min(p), max(p)) for p in pairwise(stops)))
            if all(links.get(pair, 0) for pair in pairs):
                tours.add(pairs)
    return sorted(tours)


def _most_tours(tours: list[tuple[Pair, ...]], left: dict[Pair, int], first: int) -> int:
    best = 0
    for i in range(first, len(tours)):
        if all(left[pair] for pair in tours[i]):
            spent = dict(left)
            for pair in tours[i]:
                spent[pair] -= 1
            best = max(best, 1 + _most_tours(tours, spent, i))
    return best


@functools.lru_cache(maxsize=64)
def ring_count(pairs: str, gpus: int) -> int:
    """Return how many directed rings the first ``gpus`` GPUs carry at one link's rate each; 0 if
    there is no tour.

    For at most eight GPUs, as such servers have; every tour serves both directions.
    """
    if not 2 <= gpus <= 8:
        raise InternalError(f"a mesh of {gpus} GPUs is not one that servers have")
    links = parse_pairs(pairs)
    if gpus == 2:
        return links.get((0, 1), 0)
    return 2 * _most_tours(_tours(gpus, links), links, 0)
