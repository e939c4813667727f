"""Engines: who moves the messages. One idea: one function from messages and routes to a timeline,
in many depths.

A family of engines, one file each, registered here. An engine is a module with ``simulate``. To add
one: write ``x.py`` with it and add a line to ``ENGINES``; the conformance tests then run on it.
"""

from __future__ import annotations

from typing import Protocol

from eastwest.registry import Registry
from eastwest.traffic import NO_CHANGES, Changes, Links, Messages, RouteSet, Timeline


class Engine(Protocol):
    """What an engine's module offers."""

    def simulate(
        self,
        links: Links,
        messages: Messages,
        routes: RouteSet,
        changes: Changes = NO_CHANGES,
        together: float = 0.0,
    ) -> Timeline:
        """Move all messages and return when each began and ended.

        ``together`` is the relative time within which events may be taken as one. Raises UserError
        naming a message or link that breaks the contract, or a message that never ends because a
        link stays at rate 0.
        """
        ...


ENGINES: Registry[Engine] = Registry("engine", {"flow": "eastwest.engine.flow"})
