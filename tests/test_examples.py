"""Examples and the README keep what they promise."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
BLOCKS = re.findall(r"^\$ eastwest (.+)$", (ROOT / "README.md").read_text(), re.MULTILINE)


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "COLUMNS")}
    command = [sys.executable, "-m", "eastwest", *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=environment
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_prints_what_stands_beside_it(example: Path):
    """Rewrite with: python tools/write_examples.py"""
    result = run(["compare", f"examples/{example.name}"], ROOT)
    assert result.stderr == ""
    assert result.stdout == example.with_suffix(".txt").read_text()


@pytest.mark.parametrize("line", BLOCKS)
def test_the_commands_of_the_readme_run(line: str, tmp_path: Path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    result = run(shlex.split(line.split(" | ")[0]), tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
