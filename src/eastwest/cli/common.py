"""What every verb shares: options and output. One idea: data goes to stdout, all else to
stderr."""

from __future__ import annotations

import contextlib
import functools
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from eastwest.cli.ending import outcome
from eastwest.files import inputs_kept

if TYPE_CHECKING:
    from eastwest.table import Table

P = ParamSpec("P")

ClusterFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="The cluster file (write one with [bold]eastwest init[/bold])."
    ),
]
Overlays = Annotated[
    list[Path] | None,
    typer.Option(
        "--overlay",
        metavar="FILE",
        help="A file with GPUs, NICs, switches, technologies and servers of your own; may be "
        "given several times.",
    ),
]
Format = Annotated[
    str, typer.Option("--format", metavar="table|json|csv|md", help="How to print the result.")
]
Json = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.", min=0)]


def command(function: Callable[P, int | None]) -> Callable[P, None]:
    """Wrap a verb: its errors become one message and an exit code, and what it read it cannot
    write.

    The verb returns its exit code (None or 0 for success, 1 for a negative verdict).
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        def verb() -> int | None:
            with inputs_kept():
                return function(*args, **kwargs)

        raise SystemExit(outcome(verb))

    return run


def chosen_format(form: str, json: bool) -> str:
    """Return the output format, or raise UserError for an unknown one.

    Parameters
    ----------
    form : what ``--format`` says.
    json : whether ``--json`` stands, which goes before.
    """
    from eastwest.errors import unknown_name
    from eastwest.table import FORMATS

    if json:
        return "json"
    if form not in FORMATS:
        raise unknown_name("format", form, FORMATS)
    return form


_PIPED = 10_000  # columns of what is no terminal: more than any table has


def terminal_width() -> int | None:
    """Return the columns of the terminal; None where stdout is none, and nothing is wrapped."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def console(stderr: bool = False) -> Any:
    """Return a rich console: colour only on a terminal, nothing wrapped or left out when piped."""
    from rich.console import Console

    class _Piped(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich's own answer is exit code 1, which is a verdict's

    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return _Piped(
        stderr=stderr, width=None if terminal else _PIPED, highlight=False, soft_wrap=not terminal
    )


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on a terminal's stderr while a long run tells how far it is; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(what),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = None

        def tick(done: int, total: int) -> None:
            nonlocal task
            task = bar.add_task(what, total=total) if task is None else task
            bar.update(task, completed=done)

        yield tick


def emit(tables: Sequence[Table], form: str) -> None:
    """Print tables on stdout in the wanted format."""
    if form != "table":
        from eastwest.table import write_text

        sys.stdout.write(write_text(tables, form))
        return
    out = console()
    for table in tables:
        table = table.fitted(out.width)
        out.print(table.to_rich())
        for note in table.notes:
            out.print(note, markup=False)
