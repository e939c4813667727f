"""Where things stand in a file. One idea: a key path leads to a line, and a line can be shown with
a caret beneath."""

from __future__ import annotations

from dataclasses import dataclass, field

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of one line: line and column count from 1, ``width`` in characters."""

    line: int
    column: int
    width: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Where each key path of a file stands: its key, and its value. Marks never make two clusters
    differ."""

    name: str = "cluster"
    lines: tuple[str, ...] = ()
    keys: dict[Path, Mark] = field(default_factory=dict, repr=False)
    values: dict[Path, Mark] = field(default_factory=dict, repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Marks)

    def __hash__(self) -> int:
        return 0

    def mark(self, path: Path, at_key: bool = False) -> Mark | None:
        """Return the mark of a path's value (or key), or of the nearest key above it that stands in
        the file.

        Parameters
        ----------
        path : keys and list positions from the top.
        at_key : whether the key is meant instead of its value.
        """
        first = self.keys.get(path) if at_key else self.values.get(path)
        while first is None and len(path) > 1:
            path = path[:-1]
            first = self.keys.get(path) or self.values.get(path)
        return first

    def where(self, path: Path, at_key: bool = False) -> str:
        """Return ``file:line:column: key.path``.

        Parameters
        ----------
        path : keys and list positions from the top.
        at_key : whether the key is meant instead of its value.
        """
        return place(self.name, self.mark(path, at_key), show_path(path))

    def excerpt(self, mark: Mark | None) -> str:
        """Return the marked line with a caret line beneath, or nothing where the place is
        unknown."""
        if mark is None or not 1 <= mark.line <= len(self.lines):
            return ""
        text, start = _window(self.lines[mark.line - 1], mark.column - 1)
        before = "".join(c if c == "\t" else " " for c in text[:start])
        width = max(1, min(mark.width, len(text) - start, 60))
        return f"{mark.line:>5} | {text}\n      | {before}{'^' * width}"


def show_path(path: Path) -> str:
    """Write a key path as people do: ``networks.compute.switch``, ``expect[0]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{shortened(part)}"
    return text.removeprefix(".")


def printable(text: str) -> str:
    """Replace what would garble a terminal (control characters, text direction marks)."""
    return "".join(c if c.isprintable() or c == "\t" else "�" for c in text)


def place(name: str, mark: Mark | None, path: str) -> str:
    """Write ``file:line:column: key.path``, without what is not known.

    Parameters
    ----------
    name : of the file.
    mark : line and column, if known.
    path : keys and list positions from the top.
    """
    start = f"{name}:{mark.line}:{mark.column}" if mark else name
    return f"{start}: {path}" if path else start


def shortened(text: str) -> str:
    """Return text fit for a message: printable, at most 60 characters."""
    shown = printable(text)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"


def _window(text: str, start: int, width: int = 120) -> tuple[str, int]:
    """Cut a long line to what surrounds the column; return it and the column in it."""
    if len(text) <= width:
        return text, min(start, len(text))
    left = max(0, min(start - 40, len(text) - width))
    cut = text[left : left + width]
    return f"{'…' if left else ''}{cut}{'…' if left + width < len(text) else ''}", start - left + (
        1 if left else 0
    )
