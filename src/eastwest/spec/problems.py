"""What is wrong in a cluster file. One idea: collect every mistake, show each with its line, first
ones first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eastwest.errors import UserError
from eastwest.spec.marks import Mark, Marks, Path, printable

MOST_SHOWN = 10
MOST_KEPT = 100  # finding the nearest name of thousands of wrong keys would take minutes


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: what, where, what to do, and the line it stands in."""

    what: str
    where: str
    hint: str = ""
    mark: Mark | None = None
    excerpt: str = ""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f" ({self.hint})" if self.hint else ""
        return printable(f"{place}{self.what}{hint}") + (
            f"\n{self.excerpt}" if self.excerpt else ""
        )


class SpecError(UserError):
    """One or more mistakes in one file; ``problems`` holds them in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        super().__init__(first.what, first.where, first.hint)

    def __str__(self) -> str:
        shown = [str(problem) for problem in self.problems[:MOST_SHOWN]]
        left = len(self.problems) - len(shown)
        more = f"… and {left} more" if len(self.problems) < MOST_KEPT else "… and many more"
        return "\n".join(shown + ([more] if left > 0 else []))


class Collector:
    """Gathers the problems of one file, and raises them together."""

    def __init__(self, marks: Marks) -> None:
        self.marks = marks
        self.problems: dict[tuple[str, str], Problem] = {}

    @property
    def full(self) -> bool:
        """Whether so much is wrong already that looking further helps nobody."""
        return len(self.problems) >= MOST_KEPT

    def has(self, path: Path) -> bool:
        """Whether something is wrong already at a path or above it."""
        places = {
            self.marks.where(path[:n], at_key)
            for n in range(1, len(path) + 1)
            for at_key in (False, True)
        }
        return any(where in places for where, _ in self.problems)

    def add(self, path: Path, what: str, hint: str = "", at_key: bool = False) -> None:
        """Note a mistake at a key path.

        Parameters
        ----------
        path : keys that lead to the mistake.
        what : what is wrong and what was expected.
        hint : what to do about it; may be empty.
        at_key : whether the key is wrong instead of its value.
        """
        mark = self.marks.mark(path, at_key)
        self._note(
            Problem(what, self.marks.where(path, at_key), hint, mark, self.marks.excerpt(mark))
        )

    def take(self, path: Path, error: UserError) -> None:
        """Note what another part refused, at a key path unless it names a place itself.

        Parameters
        ----------
        path : keys that lead to what was refused.
        error : what the other part raised.
        """
        if isinstance(error, SpecError):
            for problem in error.problems:
                self._note(problem)
        elif error.where:
            self._note(located(error, self.marks))
        else:
            self.add(path, error.what, error.hint)

    def done(self) -> None:
        """Raise SpecError if anything was noted."""
        if self.problems:
            raise SpecError(sorted(self.problems.values(), key=_order))

    def _note(self, problem: Problem) -> None:
        if not self.full:
            self.problems.setdefault((problem.where, problem.what), problem)


def located(error: UserError, marks: Marks) -> Problem:
    """Return an error that names ``file:line:column`` as a problem that also shows the line.

    Parameters
    ----------
    error : names ``file:line:column`` as its place.
    marks : of that file.
    """
    rest = error.where.removeprefix(f"{marks.name}:").split(":")
    mark = None
    if (
        error.where.startswith(f"{marks.name}:")
        and len(rest) >= 2
        and rest[0].isdecimal()
        and rest[1].isdecimal()
    ):
        line, column = int(rest[0]), int(rest[1])
        known = (*marks.keys.values(), *marks.values.values())
        mark = next((m for m in known if (m.line, m.column) == (line, column)), Mark(line, column))
    return Problem(error.what, error.where, error.hint, mark, marks.excerpt(mark))


def _order(problem: Problem) -> tuple[int, int]:
    return (problem.mark.line, problem.mark.column) if problem.mark else (0, 0)
