"""What flows share. One idea: all are active at once, and a link gives each its part."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from eastwest.fabric.graph import Floats, Ints
from eastwest.fabric.server.graph import ServerGraph
from eastwest.fabric.server.structure import LinkClass, Structure
from eastwest.fabric.server.ways import Route

Flow = tuple[Route, float]  # a way and its weight


@dataclass(frozen=True, slots=True, eq=False)
class Loads:
    """Summed weights of flows: of each loaded link with its name, and of each socket's memory with
    one of its links."""

    links: Ints
    weights: Floats
    names: tuple[str, ...]
    memories: tuple[tuple[str, int, float], ...]  # name, link, weight of reads and writes together


@functools.lru_cache(maxsize=512)
def _loads(form: Structure, flows: tuple[Flow, ...]) -> Loads:
    load = np.zeros(len(form.source))
    for way, weight in flows:
        np.add.at(load, list(way), weight)
    memory = form.link_class == LinkClass.MEMORY
    links = np.flatnonzero((load > 0) & ~memory).astype(np.int32)
    memories = []
    for socket, node in enumerate(form.dram.tolist()):
        touching = np.flatnonzero(memory & ((form.source == node) | (form.target == node)))
        if total := float(load[touching].sum()):
            memories.append((f"memory of socket {socket}", int(touching[0]), total))
    return Loads(
        links, load[links], tuple(form.link_name(link) for link in links.tolist()), tuple(memories)
    )


def bottlenecks(graph: ServerGraph, flows: Iterable[Flow]) -> list[tuple[str, float]]:
    """Return each loaded resource with the rate that a flow of weight 1 gets of it, the least
    first.

    All flows are active at once. A memory serves reads and writes from one bandwidth, at the share
    of its peak that mixed traffic reaches.
    """
    loads, rates = _loads(graph.structure, tuple(flows)), graph.fabric.link_rate_Bps
    found = list(zip(loads.names, (rates[loads.links] / loads.weights).tolist(), strict=True))
    found += [
        (name, float(rates[link]) * graph.memory_share / weight)
        for name, link, weight in loads.memories
    ]
    return sorted(found, key=lambda pair: (pair[1], pair[0]))
