"""Write beside each example what ``eastwest compare`` prints for it: examples/x.yaml ->
examples/x.txt."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

if __name__ == "__main__":
    for example in sorted((ROOT / "examples").glob("*.yaml")):
        command = [sys.executable, "-m", "eastwest", "compare", f"examples/{example.name}"]
        shown = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout
        example.with_suffix(".txt").write_text(shown, encoding="utf-8")
