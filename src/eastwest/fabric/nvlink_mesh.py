"""Rings on GPUs that are wired to each other without an NVSwitch. One idea: a ring is a closed
tour, links are spent once.

0 --- 1       an example of four GPUs: 0-1 once, 1-2 twice, 2-3 once, 0-3 twice, 0-2 once, 1-3 once
| \\ / |       carries the tours 0-3-1-2 and 0-1-2-3, each in both directions: four rings
3 --- 2
"""

from __future__ import annotations

import functools
from itertools import chain, pairwise, permutations, product

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


def _ways(a: int, b: int, gpus: int, links: dict[Pair, int], relays: bool) -> list[list[Pair]]:
    """Return the ways from one GPU to another: their link, or the two links by a GPU between."""
    if links.get((min(a, b), max(a, b)), 0):
        return [[(min(a, b), max(a, b))]]
    by = [c for c in range(gpus) if relays and c not in (a, b)]
    ways = [[(min(a, c), max(a, c)), (min(b, c), max(b, c))] for c in by]
    return [way for way in ways if all(links.get(pair, 0) for pair in way)]


def _tours(gpus: int, links: dict[Pair, int], relays: bool = False) -> list[tuple[Pair, ...]]:
    """Return every closed tour over the first GPUs that follows links, as its pairs, each tour
    once."""
    tours: set[tuple[Pair, ...]] = set()
    for order in permutations(range(1, gpus)):
        if order[0] < order[-1]:
            hops = [_ways(a, b, gpus, links, relays) for a, b in pairwise((0, *order, 0))]
            tours.update(tuple(sorted(chain(*ways))) for ways in product(*hops))
    return sorted(tours)


def _most_tours(tours: list[tuple[Pair, ...]], left: dict[Pair, int], first: int) -> int:
    best = 0
    for i in range(first, len(tours)):
        spent = dict(left)
        for pair in tours[i]:
            spent[pair] -= 1
        if min(spent.values()) >= 0:
            best = max(best, 1 + _most_tours(tours, spent, i))
    return best


@functools.lru_cache(maxsize=64)
def mesh_rings(pairs: str, gpus: int) -> tuple[int, bool]:
    """Return how many directed rings the first ``gpus`` GPUs carry at one link's rate each, and
    whether they pass through a GPU between two without a link; 0 if there is no tour.

    For at most eight GPUs, as such servers have; every tour serves both directions.
    """
    if not 2 <= gpus <= 8:
        raise InternalError(f"a mesh of {gpus} GPUs is not one that servers have")
    links = parse_pairs(pairs)
    if gpus == 2:
        return links.get((0, 1), 0), False
    direct = 2 * _most_tours(_tours(gpus, links), links, 0)
    if direct:
        return direct, False
    return 2 * _most_tours(_tours(gpus, links, relays=True), links, 0), True
