"""Ways through a network's switches. One idea: all go down the distance to where a message wants
to; a routing says over which of the links that lead nearer.

A family of routings, one file each, registered here. A routing is a module with ``LAW``: a choice
that the kernel :mod:`eastwest.kernels.walks` knows. To add one: write ``x.py`` with it, a line in
``ROUTINGS``, and its choice in the kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from eastwest.fabric.graph import Fabric, Ints, Network, NodeKind
from eastwest.registry import Registry
from eastwest.traffic import Bools, Floats, Links, Longs, RouteSet, csr

if TYPE_CHECKING:
    from eastwest.kernels.walks import Graph


class Routing(Protocol):
    """What a routing's module offers."""

    LAW: int


ROUTINGS: Registry[Routing] = Registry(
    "routing",
    {
        "ecmp": "eastwest.traffic.routing.ecmp",
        "ecmp-polarised": "eastwest.traffic.routing.ecmp_polarised",
        "d-mod-k": "eastwest.traffic.routing.d_mod_k",
        "spray": "eastwest.traffic.routing.spray",
    },
)


def links_of(fabric: Fabric) -> Links:
    """Return a fabric's links; a switch's own latency is on the links that enter it."""
    latency_s = fabric.link_latency_s + fabric.node_latency_s[fabric.link_target]
    return Links(
        fabric.link_source.astype(np.int64),
        fabric.link_target.astype(np.int64),
        fabric.link_rate_Bps,
        latency_s,
    )


def routed(
    fabric: Fabric,
    network: Network,
    source: Ints | Longs,
    target: Ints | Longs,
    routing: str = "ecmp",
    seed: int = 0,
    failed: tuple[int, ...] = (),
) -> RouteSet:
    """Return the routes of messages between the ports of a network.

    ``source`` and ``target`` are nodes, such as NICs; ``seed`` stands for what a hash depends on
    beyond the two ends (ports, the switches' own salt); ways around ``failed`` links are found. A
    message that no way leads to its target gets no link, which the engines refuse by name. Raises
    UserError for an unknown routing.
    """
    from eastwest.kernels import walks

    usable = (fabric.link_network == network) & (fabric.link_tier > 0)
    number = _numbers(fabric, usable)
    usable[list(failed)] = False
    source, target = source.astype(np.int64), target.astype(np.int64)
    root, last = _roots(fabric, usable, target)
    order = np.argsort(root, kind="stable")
    label = source * fabric.nodes + target
    ends = walks.Ends(source[order], root[order], label[order], number[target][order])
    law = ROUTINGS[routing].LAW
    first, link, share = walks.walk_all(_graph(fabric, usable), ends, law, seed)
    message, reached = np.repeat(order, np.diff(first)), source == root
    reached[message] = True
    return _with_last(message, link, share, np.where(reached, last, -1))


def _graph(fabric: Fabric, usable: Bools) -> Graph:
    from eastwest.kernels.walks import Graph

    link = np.flatnonzero(usable)
    source, target = fabric.link_source.astype(np.int64), fabric.link_target.astype(np.int64)
    forward = fabric.node_kind == NodeKind.SWITCH
    beside = link[np.argsort(target[link], kind="stable")]
    leaving = csr(source[beside], beside, fabric.nodes)
    entering = csr(target[link], link, fabric.nodes)
    return Graph(source, target, *leaving, *entering, forward)


def _roots(fabric: Fabric, usable: Bools, target: Longs) -> tuple[Longs, Longs]:
    """Return the node up to which each way is searched, and the one link from there to the target.

    Where one link alone enters the target, the search ends a node before, so that targets of one
    switch share it; elsewhere the link is -1.
    """
    link = np.flatnonzero(usable)
    entering = np.bincount(fabric.link_target[link], minlength=fabric.nodes)
    only = np.full(fabric.nodes, -1, np.int64)
    only[fabric.link_target[link]] = link
    last = np.where(entering[target] == 1, only[target], -1)
    root = np.where(last >= 0, fabric.link_source[last], target)
    return root.astype(np.int64), last


def _numbers(fabric: Fabric, usable: Bools) -> Longs:
    """Return a number for each node at the network's edge: those of one switch follow each
    other."""
    link = np.flatnonzero(usable & (fabric.node_kind[fabric.link_target] != NodeKind.SWITCH))
    link = link[np.argsort(fabric.link_source[link], kind="stable")]
    edge, at = np.unique(fabric.link_target[link], return_index=True)
    number = np.zeros(fabric.nodes, np.int64)
    number[edge[np.argsort(at)]] = np.arange(len(edge))
    return number


def _with_last(message: Longs, link: Longs, share: Floats, last: Longs) -> RouteSet:
    """Return routes message by message, each with its last link where it has one."""
    ends = np.flatnonzero(last >= 0)
    first, entry = csr(
        np.concatenate([message, ends]), np.arange(len(message) + len(ends)), len(last)
    )
    links = np.concatenate([link, last[ends]])
    return RouteSet(first, links[entry], np.concatenate([share, np.ones(len(ends))])[entry])
