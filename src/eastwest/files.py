"""Reading what users give, writing what they asked for. One idea: whole or not at all, both
ways."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from eastwest.errors import UserError

LARGEST_INPUT_BYTES = 64 * 2**20


def read_text(path: str | Path, kind: str = "file") -> str:
    """Return a text file's content. Raises UserError if it cannot be read, is no text, or is
    absurdly large."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_INPUT_BYTES + 1)
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


def write_text(path: str | Path, text: str) -> None:
    """Write a file through a temporary one beside it, so that nobody ever sees half of it.

    A link's target is what is written; a device or a pipe is written to, never replaced.
    Raises UserError if the folder does not take it; an existing file then stays as it was.
    """
    temporary = ""
    try:
        target = Path(path).resolve()
        if target.is_dir():
            raise UserError("cannot write the file: it is a folder", where=str(path))
        if Path(path).exists() and not Path(path).is_file():
            Path(path).write_text(text, encoding="utf-8")
            return
        handle, temporary = tempfile.mkstemp(
            prefix=f".{target.name[:40]}.", dir=target.parent or Path()
        )
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except (OSError, RuntimeError, ValueError) as error:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError(f"cannot write the file: {reason}", where=str(path)) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
