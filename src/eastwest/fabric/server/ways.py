"""Ways through a server. One idea: the fewest hops, never through a GPU, a NIC or memory."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from eastwest.errors import InternalError
from eastwest.fabric.graph import NodeKind
from eastwest.fabric.server.structure import Structure

Route = tuple[int, ...]

_NO_TRANSIT = (NodeKind.GPU, NodeKind.NIC, NodeKind.DRAM, NodeKind.BMC)


def route(form: Structure, source: int, target: int) -> Route:
    """Return the links of the shortest way: fewest hops, ties by number; never through a GPU, NIC
    or memory.

    Raises InternalError if there is no way, which no server has.
    """
    return _search(form, int(source), int(target))


@functools.lru_cache(maxsize=65_536)
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
