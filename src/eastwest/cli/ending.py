"""How a run ends. One idea: whatever happens, an exit code and at most one short message, as far as
the streams can take one."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Callable
from typing import IO

from eastwest.errors import EastwestError, InternalError, UserError

EXIT_VERDICT = 1
EXIT_INTERRUPTED = 130

# What stands for a character that stdout cannot write (LC_ALL=C, Latin-1).
_PLAIN = {
    "✓": "+",
    "✗": "x",
    "·": "-",
    "–": "-",
    "—": "-",
    "…": "...",
    "µ": "u",
    "μ": "u",
    "×": "x",
    "─": "-",
    "█": "#",
    "’": "'",
    "“": '"',
    "”": '"',
    "≥": ">=",
    "≤": "<=",
    "→": "->",
}


def outcome(work: Callable[[], int | None]) -> int:
    """Do the work and return the exit code of the process, having said what went wrong.

    A UserError is 2, an interrupt 130, a reader that has left 0, any fault of ours 4.
    """
    try:
        code = work() or 0
        sys.stdout.flush()
        return code
    except SystemExit as leaving:
        # The command line's own answer to a closed pipe is 1, which is a verdict's.
        return (
            _reader_left() if isinstance(leaving.__context__, BrokenPipeError) else _code(leaving)
        )
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:
        return _reader_left()
    except Exception as error:
        # Python wraps what is raised while a class is being made into a RuntimeError.
        return _interrupted() if isinstance(error.__cause__, KeyboardInterrupt) else _failed(error)


def _code(leaving: SystemExit) -> int:
    return leaving.code if isinstance(leaving.code, int) else 0


def _interrupted() -> int:
    say("eastwest: interrupted")
    return EXIT_INTERRUPTED


def _reader_left() -> int:
    """Be silent: the reader went away (| head), which is its right."""
    _silence(sys.stdout)
    return 0


def _failed(error: Exception) -> int:
    if isinstance(error, EastwestError) and not isinstance(error, InternalError):
        say(f"eastwest: {error}")
        return error.exit_code
    if isinstance(error, OSError) and error.filename is None:  # no file: a stream refused
        _silence(sys.stdout)
        say(f"eastwest: cannot write the result: {error.strerror or error}")
        return UserError.exit_code
    what = str(error) if isinstance(error, InternalError) else _fault(error)
    say(
        f"eastwest: internal error: {what}\nPlease report this with the command and the "
        "cluster file."
    )
    return InternalError.exit_code


def _fault(error: Exception) -> str:
    """Name a fault in one line, with the place of ours that it came from."""
    place, at = "", error.__traceback__
    while at:
        file = at.tb_frame.f_code.co_filename.replace(os.sep, "/")
        if "/eastwest/" in file:
            place = f" ({file.rpartition('/eastwest/')[2]}:{at.tb_lineno})"
        at = at.tb_next
    first = (str(error).splitlines() or [""])[0][:200]
    return f"{type(error).__name__}{': ' if first else ''}{first}{place}"


def say(message: str) -> None:
    """Write a line to stderr, if it takes one: what is only said never fails a run."""
    try:
        sys.stderr.write(message + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        _silence(sys.stderr)


def _silence(stream: IO[str]) -> None:
    """Point a stream elsewhere, so that what it still holds does not fail again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def mend_streams() -> None:
    """Make the standard streams such that a run can always end well.

    A closed stdout fails when it is written to, as a full disk does; a closed stderr swallows; and
    what an encoding cannot show is written plainly.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        if not _is_open(number):
            os.open(os.devnull, mode)  # takes the lowest free number, which is this one
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))
    codecs.register_error("eastwest", _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="eastwest")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(c, "?") for c in error.object[error.start : error.end]), error.end
