"""Transports: how a message gets from one memory to another. One idea: a list of stages, and limits
that many share.

A family of modules, one a kind of endpoint, registered here by the name that ``technology.csv``
gives. A transport is a module with ``path(name, header, end, way, world) -> Path``.

To add one: write ``x.py`` with that function and add a line to ``TRANSPORTS``.
"""

from __future__ import annotations

from typing import Protocol

from eastwest.catalog.world import World
from eastwest.registry import Registry
from eastwest.transport.endpoint import Endpoint, Way
from eastwest.transport.stages import Path


class Transport(Protocol):
    """What a transport module offers."""

    def path(self, name: str, header: str, end: Endpoint, way: Way, world: World) -> Path:
        """Return the path between two servers alike; ``header`` is its packet format."""
        ...


TRANSPORTS: Registry[Transport] = Registry(
    "transport",
    {
        "rdma": "eastwest.transport.rdma",
        "rdma-staged": "eastwest.transport.rdma_staged",
        "tcp": "eastwest.transport.tcp",
        "nvmeof": "eastwest.transport.nvmeof",
    },
)
