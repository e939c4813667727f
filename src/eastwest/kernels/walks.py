"""Shortest ways through a graph. One idea: measure every node's distance to a root, then step down
it, at each node over one link or over all.

Links are CSR both ways: ``out_first``, ``out`` by their source (parallel cables beside each other),
``in_first``, ``into`` by their target. Messages come sorted by root, so that distances are measured
once a root.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from eastwest.kernels import Bools, Floats, Longs

HASH, SHARED_HASH, MODULO, ALL = 0, 1, 2, 3  # which of the links that lead nearer


class Graph(NamedTuple):
    """Directed links; only through nodes that ``forward`` does a way go on."""

    source: Longs
    target: Longs
    out_first: Longs
    out: Longs
    in_first: Longs
    into: Longs
    forward: Bools


class Ends(NamedTuple):
    """Where each message begins, its root, and the numbers that its choices depend on."""

    source: Longs
    root: Longs
    label: Longs  # of the flow, for hashes
    number: Longs  # of the target, for modulo


class Front(NamedTuple):
    """Room for one walk: a message's share at each node, the nodes that have one, and by step what
    is left of its number."""

    distance: Longs
    queue: Longs
    share: Floats
    left: Longs


@numba.njit(cache=True)
def mixed(word: np.uint64) -> np.uint64:
    """Return a hash of a word (splitmix64's finaliser)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@numba.njit(cache=True)
def measure(graph: Graph, root: int, distance: Longs, queue: Longs) -> None:
    """Fill in each node's hops to the root, -1 where there is no way."""
    distance[:] = -1
    distance[root], queue[0] = 0, root
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        if node != root and not graph.forward[node]:
            continue
        for link in graph.into[graph.in_first[node] : graph.in_first[node + 1]]:
            before = graph.source[link]
            if distance[before] < 0:
                distance[before] = distance[node] + 1
                queue[tail] = before
                tail += 1


@numba.njit(cache=True)
def walk_all(graph: Graph, ends: Ends, law: int, seed: int) -> tuple[Longs, Longs, Floats]:
    """Return the links of each message as CSR, with the share that each carries; none where there
    is no way."""
    nodes, count = len(graph.forward), len(ends.source)
    front = Front(
        np.empty(nodes, np.int64),
        np.empty(nodes, np.int64),
        np.zeros(nodes),
        np.zeros(nodes + 1, np.int64),
    )
    first, used = np.zeros(count + 1, np.int64), 0
    links, shares = np.empty(8 * count + 8, np.int64), np.empty(8 * count + 8)
    for message in range(count):
        root = ends.root[message]
        if message == 0 or root != ends.root[message - 1]:
            measure(graph, root, front.distance, front.queue)
        while True:
            written = _walk(graph, ends, message, law, seed, front, links[used:], shares[used:])
            if written >= 0:
                break
            links = np.concatenate((links, np.empty(len(links), np.int64)))
            shares = np.concatenate((shares, np.empty(len(shares))))
        used += written
        first[message + 1] = used
    return first, links[:used], shares[:used]


@numba.njit(cache=True)
def _walk(
    graph: Graph,
    ends: Ends,
    message: int,
    law: int,
    seed: int,
    front: Front,
    links: Longs,
    shares: Floats,
) -> int:
    """Write one message's links; return how many, -1 if there is no room for them."""
    source, root, distance = ends.source[message], ends.root[message], front.distance
    if distance[source] < 0:
        return 0
    front.queue[0], front.share[source] = source, 1.0
    head, tail, written, number = 0, 1, 0, ends.number[message]
    while head < tail:
        node = front.queue[head]
        head += 1
        share, front.share[node] = front.share[node], 0.0
        if node == root:
            continue
        nearer = _nearer(graph, node, distance)
        chosen = -1
        if law == MODULO:
            chosen, number = _digit(graph, node, front, number, head - 1, distance[source])
        elif law != ALL:
            chosen = _hashed(ends.label[message], nearer, law, seed, node)
        at = 0
        for link in graph.out[graph.out_first[node] : graph.out_first[node + 1]]:
            after = graph.target[link]
            if distance[after] != distance[node] - 1:
                continue
            if chosen in (-1, at):
                if written == len(links):
                    front.share[:] = 0.0
                    return -1
                part = share / nearer if law == ALL else share
                links[written], shares[written] = link, part
                written += 1
                if front.share[after] == 0.0:
                    front.queue[tail] = after
                    tail += 1
                front.share[after] += part
            at += 1
    return written


@numba.njit(cache=True)
def _nearer(graph: Graph, node: int, distance: Longs) -> int:
    """Return how many links of a node lead nearer to the root."""
    nearer = 0
    for link in graph.out[graph.out_first[node] : graph.out_first[node + 1]]:
        nearer += distance[graph.target[link]] == distance[node] - 1
    return nearer


@numba.njit(cache=True)
def _hashed(label: int, nearer: int, law: int, seed: int, node: int) -> int:
    """Return which of the links that lead nearer a hash picks."""
    salt = np.uint64(0) if law == SHARED_HASH else np.uint64(node + 1)
    word = mixed(np.uint64(label) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15))
    return int(mixed(word + salt) % np.uint64(nearer))


@numba.njit(cache=True)
def _digit(
    graph: Graph, node: int, front: Front, number: int, step: int, steps: int
) -> tuple[int, int]:
    """Return which of the links that lead nearer the number's next digit picks, and what is left
    of the number.

    The digit picks a neighbour; of parallel cables, what is left picks one, the same up and down,
    so that those who came up over one switch come down over different cables.
    """
    wide, before = 0, -1
    for link in graph.out[graph.out_first[node] : graph.out_first[node + 1]]:
        after = graph.target[link]
        if front.distance[after] == front.distance[node] - 1:
            wide += after != before
            before = after
    pick = number % wide
    if 2 * step <= steps:
        number //= wide
        front.left[step] = number
    cable = front.left[step] if 2 * step <= steps else front.left[steps - step]
    return _cable(graph, node, front.distance, pick, cable), number


@numba.njit(cache=True)
def _cable(graph: Graph, node: int, distance: Longs, pick: int, cable: int) -> int:
    """Return which of the links that lead nearer is a neighbour's n-th cable (modulo how many
    there are)."""
    neighbour, before, at, begin, cables = -1, -1, 0, 0, 0
    for link in graph.out[graph.out_first[node] : graph.out_first[node + 1]]:
        after = graph.target[link]
        if distance[after] != distance[node] - 1:
            continue
        neighbour += after != before
        if neighbour == pick:
            begin = at if cables == 0 else begin
            cables += 1
        before = after
        at += 1
    return begin + cable % cables
