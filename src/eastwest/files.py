"""Reading what users give, writing what they asked for. One idea: whole or not at all, both
ways."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from eastwest.errors import UserError

LARGEST_INPUT_BYTES = 64 * 2**20

# The identities of the files that this run has read; None outside of a run.
_inputs: ContextVar[set[tuple[int, int] | None] | None] = ContextVar("inputs", default=None)


def read_text(path: str | Path, kind: str = "file") -> str:
    """Return a text file's content. Raises UserError if it cannot be read, is no text, or is
    absurdly large.

    Parameters
    ----------
    path : of the file.
    kind : what it is, for messages, such as ``cluster file``.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_INPUT_BYTES + 1)
            _note_input(os.fstat(file.fileno()))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError(f"cannot read the {kind}: {reason}", where=str(path)) from None
    if len(data) > LARGEST_INPUT_BYTES:
        raise UserError(
            f"the {kind} is larger than {LARGEST_INPUT_BYTES >> 20} MiB", where=str(path)
        )
    if b"\x00" in data:
        raise UserError(f"the {kind} is binary; expected text", where=str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"the {kind} is not UTF-8 text (byte {error.start})", where=str(path)
        ) from None


@contextlib.contextmanager
def inputs_kept() -> Iterator[None]:
    """Keep every file that is read within from being written within, whatever name it goes by."""
    token = _inputs.set(set())
    try:
        yield
    finally:
        _inputs.reset(token)


def check_output(path: str | Path) -> None:
    """Raise UserError if a file cannot be written for a reason that can be known before: it is an
    input, or a folder, or its folder is missing."""
    try:
        target = Path(path).resolve()
        if target.is_dir():
            raise UserError("cannot write the file: it is a folder", where=str(path))
        target.parent.stat()  # refuses a folder that is not there
        found = _identity(os.stat(target)) if target.exists() else None
    except (OSError, RuntimeError, ValueError) as error:
        raise _unwritable(path, error) from None
    if found and found in (_inputs.get() or ()):
        raise UserError(
            "cannot write the file: it is an input of this command",
            where=str(path),
            hint="name another file",
        )


def write_text(path: str | Path, text: str) -> None:
    """Write a file through a temporary one beside it, so that nobody ever sees half of it.

    A link's target is what is written; a device or a pipe is written to, never replaced.
    Raises UserError if the file is an input (:func:`inputs_kept`) or the folder does not take it;
    an existing file then stays as it was.

    Parameters
    ----------
    path : of the file.
    text : all of its content.
    """
    check_output(path)
    try:
        if Path(path).exists() and not Path(path).is_file():
            Path(path).write_text(text, encoding="utf-8")
        else:
            _replace(Path(path).resolve(), text)
    except (OSError, RuntimeError, ValueError) as error:
        raise _unwritable(path, error) from None


def _replace(target: Path, text: str) -> None:
    """Put a file in the place of another in one step; nothing is left over if that fails."""
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:40]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:  # an interrupt too
        os.unlink(temporary)
        raise


def _note_input(status: os.stat_result) -> None:
    noted = _inputs.get()
    if noted is not None:
        noted.add(_identity(status))


def _identity(status: os.stat_result) -> tuple[int, int] | None:
    """Return what a regular file is the same by under all its names; None for a device or pipe."""
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _unwritable(path: str | Path, error: Exception) -> UserError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UserError(f"cannot write the file: {reason}", where=str(path))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
