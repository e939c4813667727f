"""The family of topologies: one file each, registered here by the name that users write.

A topology is a module with ``Params`` (a frozen pydantic model with what users may say about it),
``plan(params, demand, switch, where) -> Plan`` and ``largest(params, demand, switch) -> int``. The
plan (:mod:`eastwest.fabric.plan`) is the structure of any network: switches by role, links by
class. What a topology knows of its distances, bisection and cuts in closed form goes with it as
``forms``; without, they are searched (:mod:`eastwest.fabric.search`).

To add one: write ``x.py`` with those three and add a line to ``TOPOLOGIES``
(``docs/extending.md``).
"""

from __future__ import annotations

from typing import Any, Protocol

from pydantic import BaseModel

from eastwest.fabric.plan import Demand, Plan, SwitchPorts
from eastwest.registry import Registry


class Topology(Protocol):
    """What a topology module offers."""

    Params: type[BaseModel]

    def plan(self, params: Any, demand: Demand, switch: SwitchPorts, where: str) -> Plan:
        """Return the structure, or raise UserError (with ``where``) if the topology cannot hold
        the demand."""
        ...

    def largest(self, params: Any, demand: Demand, switch: SwitchPorts) -> int:
        """Return the largest number of servers it can hold, 0 if the parameters fit no server."""
        ...


TOPOLOGIES: Registry[Topology] = Registry(
    "topology",
    {
        "rail-optimised": "eastwest.fabric.topology.rail_optimised",
        "rail-only": "eastwest.fabric.topology.rail_only",
        "fat-tree": "eastwest.fabric.topology.fat_tree",
    },
)
