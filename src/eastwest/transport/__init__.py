"""Transports: how a message gets from one memory to another. One idea: a list of stages, and limits
that many share.

A family of modules, one a kind of endpoint, registered here by the name that ``technology.csv``
gives. A transport is a module with

- ``ABILITIES``: what it can do, for all who must know (see :class:`Abilities`);
- ``path(name, packet, end, way, world) -> Path``: its stages and limits.

To add one: write ``x.py`` with those, add a line to ``TRANSPORTS``, and rows to ``technology.csv``
that name it; their ``names`` are what a cluster file may then say.
"""

from __future__ import annotations

from typing import Protocol

from eastwest.catalog.packets import PacketFormat
from eastwest.catalog.technology import Technology
from eastwest.catalog.world import World
from eastwest.registry import Registry
from eastwest.transport.abilities import Abilities
from eastwest.transport.endpoint import Endpoint, Way
from eastwest.transport.stages import Path


class Transport(Protocol):
    """What a transport module offers."""

    ABILITIES: Abilities

    def path(self, name: str, packet: PacketFormat, end: Endpoint, way: Way, world: World) -> Path:
        """Return the path between two servers alike, with packets of this format."""
        ...


TRANSPORTS: Registry[Transport] = Registry(
    "transport",
    {
        "rdma": "eastwest.transport.rdma",
        "rdma-staged": "eastwest.transport.rdma_staged",
        "rdma-plugin": "eastwest.transport.rdma_plugin",
        "tcp": "eastwest.transport.tcp",
        "tcpx": "eastwest.transport.tcpx",
        "nvmeof": "eastwest.transport.nvmeof",
    },
)


def abilities(technology: Technology) -> Abilities:
    """Return what a technology's transport can do."""
    return TRANSPORTS[technology.transport].ABILITIES
