"""What can go wrong, in two kinds: the user's input, or us.

    EastwestError
    ├── UserError       something in the input or the command is wrong   exit code 2
    └── InternalError   a property that we promise does not hold         exit code 4

One idea: a message says what, where, what was expected, and the nearest thing that would have
worked.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class EastwestError(Exception):
    """Base of every error that reaches the user on purpose."""

    exit_code = 4


class UserError(EastwestError):
    """A mistake in what the user gave: one message, no traceback.

    Parameters
    ----------
    what : what is wrong and what was expected, one sentence without the full stop.
    where : the place, such as ``cluster.yaml:8:13: networks.compute.switch``; may be empty.
    hint : what to do about it; may be empty.
    """

    exit_code = 2

    def __init__(self, what: str, where: str = "", hint: str = "") -> None:
        self.what, self.where, self.hint = what, where, hint
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.what}{hint}"

    def at(self, where: str) -> UserError:
        """Return the same error with a place, for a caller that knows it; a place once given
        stays."""
        return self if self.where else UserError(self.what, where, self.hint)


class InternalError(EastwestError):
    """A property of our own that does not hold; the user can only report it."""

    exit_code = 4


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the valid name nearest to a misspelt one, or None if none resembles it.

    Parameters
    ----------
    name : as it was written.
    names : the valid ones.
    """
    folded = {n.lower().replace("_", "-"): n for n in names}
    wanted = name.lower().replace("_", "-")
    if wanted in folded:
        return folded[wanted]
    close = difflib.get_close_matches(wanted, folded, n=1, cutoff=0.5)
    return folded[close[0]] if close else None


def unknown_name(kind: str, name: str, names: Iterable[str]) -> UserError:
    """Build the error for a name that is not among the valid ones, with the nearest shown.

    Parameters
    ----------
    kind : what is named, for the message, such as ``switch``.
    name : as it was written.
    names : the valid ones.
    """
    valid = sorted(names)
    close = nearest(name, valid)
    shown = (
        ", ".join(valid)
        if len(valid) <= 12
        else f"{', '.join(valid[:12])}, … ({len(valid)} in all)"
    )
    hint = f"did you mean '{close}'?" if close else f"valid: {shown}"
    return UserError(f"unknown {kind} '{name[:80]}'", hint=hint)
