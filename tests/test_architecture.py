"""Rules of the house that a linter does not know."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src/eastwest"
MODULES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize(
    "path", [m for m in MODULES if m.read_text().strip()], ids=lambda p: str(p.relative_to(SOURCE))
)
def test_every_module_opens_with_its_idea_and_every_public_function_is_documented(path: Path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "no module docstring"
    missing = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")
        if not ast.get_docstring(node)
    ]
    assert [name for name in missing if not _nested(tree, name)] == []


def _nested(tree: ast.Module, name: str) -> bool:
    """Whether a function stands inside another one, where its parent documents it."""
    return any(
        inner.name == name
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef)
        for inner in ast.walk(outer)
        if isinstance(inner, ast.FunctionDef) and inner is not outer
    )


def test_help_loads_none_of_the_heavy_modules():
    heavy = ("numba", "numpy", "pydantic", "plotly", "jinja2", "yaml")
    code = f"import sys, eastwest.cli.app; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out.strip() == "[]"
