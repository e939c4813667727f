"""What machines and tools print. One idea: a format is a file here that reads text to one type, or
says in one message why it cannot.

A format of machines is a module with ``recognises(text)`` and ``read(text, name) -> Machine``; to
add one, write ``x.py`` with those and add a line to ``MACHINES``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from eastwest.errors import UserError
from eastwest.files import read_text
from eastwest.formats.machine import Machine, merged
from eastwest.registry import Registry

LARGEST_CHARACTERS = 4 * 2**20


class MachineFormat(Protocol):
    """What a format's module offers."""

    TITLE: str

    def recognises(self, text: str) -> bool:
        """Whether the text looks like this format."""
        ...

    def read(self, text: str, name: str) -> Machine:
        """Return what it tells. Raises UserError with ``name:line`` for everything else."""
        ...


MACHINES: Registry[MachineFormat] = Registry(
    "format",
    {
        "nccl-topo": "eastwest.formats.nccl_topo",
        "nvidia-smi-topo": "eastwest.formats.nvidia_smi_topo",
    },
)


def read_machine(files: list[Path]) -> Machine:
    """Return what several files tell of one machine.

    Raises UserError for a file of no known format, one that is broken, and files that contradict
    each other.
    """
    return merged([_read(file) for file in files])


def _read(file: Path) -> Machine:
    text = read_text(file, "file of the machine")
    if len(text) > LARGEST_CHARACTERS:
        raise UserError("the file is larger than 4 MiB", where=str(file))
    for name in MACHINES:
        form = MACHINES[name]
        if form.recognises(text):
            return form.read(text, str(file))
    known = "; ".join(MACHINES[name].TITLE for name in MACHINES)
    raise UserError("what the file holds is not known", where=str(file), hint=f"known are {known}")
