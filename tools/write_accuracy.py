"""Predict every measured row and write docs/accuracy.md: medians and worst errors, the worst rows
first."""

from __future__ import annotations

from pathlib import Path

from eastwest.files import write_text
from eastwest.study.validate import accuracy_page

TARGET = Path(__file__).parent.parent / "docs/accuracy.md"

if __name__ == "__main__":
    write_text(TARGET, accuracy_page())
