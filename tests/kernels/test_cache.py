"""Where compiled kernels are kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

SHOW = "import eastwest.kernels, numba; print(numba.config.CACHE_DIR)"


def cache_folder(source: Path | None = None, **environment: str) -> str:
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | environment
    if source:
        env["PYTHONPATH"] = str(source)
    run = [sys.executable, "-c", SHOW]
    return subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout.strip()


def test_compiled_kernels_are_kept_in_the_users_cache(tmp_path):
    folder = cache_folder(XDG_CACHE_HOME=str(tmp_path))
    assert Path(folder).parent == tmp_path / "eastwest"
    assert Path(folder).is_dir()


def test_a_change_of_any_kernel_opens_a_new_folder(tmp_path):
    source = Path(__file__).parents[2] / "src"
    shutil.copytree(source / "eastwest", tmp_path / "src/eastwest")
    before = cache_folder(tmp_path / "src", XDG_CACHE_HOME=str(tmp_path))
    with open(tmp_path / "src/eastwest/kernels/heap.py", "a") as file:
        file.write("# changed\n")
    assert cache_folder(tmp_path / "src", XDG_CACHE_HOME=str(tmp_path)) != before


def test_where_the_cache_cannot_be_written_the_folder_ends_with_the_process(tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    folder = cache_folder(XDG_CACHE_HOME=str(in_the_way))
    assert not Path(folder).exists()
    assert not folder.startswith(str(in_the_way))


def test_numbas_own_setting_wins(tmp_path):
    assert cache_folder(NUMBA_CACHE_DIR=str(tmp_path)) == str(tmp_path)
