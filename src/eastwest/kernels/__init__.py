"""Hot loops over plain arrays. One idea: compiled once a machine, and anew when any kernel's source
changes.

Numba caches a function by its own file alone, so a caller would keep an old callee; the cache's
folder is therefore named by the sources of all kernels together.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Records = Any  # a structured array; kernels write rows.field[i]
Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]


def _version() -> str:
    """Return a name for this version of Numba and of all kernels."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return f"kernels-{digest.hexdigest()[:16]}"


def _cache_folder() -> str:
    """Return a folder for compiled kernels: in the user's cache, or, where nothing can be written
    there, one that lives as long as the process."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(home) / "eastwest" / _version()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except OSError:
        # Never a fixed name in a folder that others write to: what is cached there is executed.
        private = tempfile.mkdtemp(prefix="eastwest-")
        atexit.register(shutil.rmtree, private, ignore_errors=True)
        return private


# Numba's own variable wins where the user has set it.
if not os.environ.get("NUMBA_CACHE_DIR"):
    numba.config.CACHE_DIR = _cache_folder()  # type: ignore[attr-defined]
