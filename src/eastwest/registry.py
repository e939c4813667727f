"""A family of plug-in modules by name. One idea: a name points to a module that is imported when it
is first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Generic, TypeVar, cast

from eastwest.errors import unknown_name

Plugin = TypeVar("Plugin")


class Registry(Generic[Plugin]):
    """Names of one family (``topology``, ``transport``, …) and where each one's module is.

    The module itself is the plug-in: it offers the functions that the family's Protocol names.
    """

    def __init__(self, kind: str, modules: dict[str, str]) -> None:
        self.kind = kind
        self._modules = modules
        self._loaded: dict[str, Plugin] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __getitem__(self, name: str) -> Plugin:
        """Import and return the plug-in. Raises UserError with the nearest valid name."""
        if name not in self._loaded:
            if name not in self._modules:
                raise unknown_name(self.kind, name, self._modules)
            module = importlib.import_module(self._modules[name])
            self._loaded[name] = cast(Plugin, module)
        return self._loaded[name]
