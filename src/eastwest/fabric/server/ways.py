"""Ways through a server. One idea: the fewest hops, never through a GPU, a NIC or memory."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from eastwest.errors import InternalError
from eastwest.fabric.graph import NodeKind
from eastwest.fabric.server.structure import LinkClass, Structure

Route = tuple[int, ...]

_NO_TRANSIT = (NodeKind.GPU, NodeKind.NIC, NodeKind.DRAM, NodeKind.BMC)


def route(form: Structure, source: int, target: int) -> Route:
    """Return the links of the shortest way: fewest hops, ties by number; never through a GPU, NIC
    or memory.

    With access control services on, a way through a PCIe switch alone goes up to the root complex
    and down again. Raises InternalError if there is no way, which no server has.
    """
    return _route(form, int(source), int(target))


@functools.lru_cache(maxsize=65_536)
def _route(form: Structure, source: int, target: int) -> Route:
    way = _search(form, source, target)
    if not form.acs or len(way) < 2:
        return way
    inner = form.target[list(way[:-1])]
    if not np.all(form.kind[inner] == NodeKind.PCIE_SWITCH):
        return way
    uplinks = (form.source == inner[0]) & (form.link_class == LinkClass.UPLINK)
    root = int(form.target[uplinks][0])
    return joined(_search(form, source, root), _search(form, root, target))


def _search(form: Structure, source: int, target: int) -> Route:
    came: dict[int, int] = {source: -1}
    front = [source]
    while front and target not in came:
        ahead = []
        for node in front:
            if node != source and form.kind[node] in _NO_TRANSIT:
                continue
            for link in np.flatnonzero(form.source == node).tolist():
                end = int(form.target[link])
                if end not in came:
                    came[end] = link
                    ahead.append(end)
        front = ahead
    if target not in came:
        raise InternalError(
            f"no way from {form.names[source]} to {form.names[target]} inside the server"
        )
    links = []
    while target != source:
        links.append(came[target])
        target = int(form.source[links[-1]])
    return tuple(reversed(links))


def joined(*parts: Sequence[int]) -> Route:
    """Return one way made of several, end to end."""
    return tuple(link for part in parts for link in part)


def distance(form: Structure, gpu: int, nic: int) -> str:
    """Return how far apart a GPU and a NIC are, in NCCL's words: PIX (one PCIe switch), PHB (the
    CPU's host bridge) or SYS (two sockets)."""
    way = route(form, form.gpu[gpu], form.nic[nic])
    if (form.link_class[list(way)] == LinkClass.SOCKET).any():
        return "SYS"
    return "PHB" if np.isin(form.target[list(way)], form.root).any() else "PIX"
