"""The page on extending eastwest does what it says: each recipe is carried out from the page itself
in a copy of the project, its commands are run, and its family's tests hold the new member."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
STEP = re.compile(
    r"^<!-- (?P<what>file|insert|append|tests): (?P<path>\S+)(?: after: (?P<after>.*?))? -->\n"
    r"(?:```\w+\n(?P<text>.*?)^```\n)?"
    r"|^```console\n(?P<console>.*?)^```\n",
    re.MULTILINE | re.DOTALL,
)
TORUS = """
from itertools import product
import numpy as np
from eastwest.catalog.world import nominal
from eastwest.catalog.packets import LinkLayer
from eastwest.design.bom import bill
from eastwest.fabric.distance import bisection_Bps, pairs_by_switches
from eastwest.fabric.laws import check_plan
from eastwest.fabric.plan import Demand, SwitchPorts
from eastwest.fabric.topology import TOPOLOGIES

torus = TOPOLOGIES["torus-of-rings"]
for side, links in ((2, 1), (3, 2), (4, 2), (5, 3), (6, 2), (10, 4)):
    rails, here = 2, 3
    switch = SwitchPorts("qm9700", 4 * links + rails * here, 50e9)
    params, demand = torus.Params(links=links, columns=side), Demand(side * side * here, rails)
    plan = check_plan(torus.plan(params, demand, switch, ""))
    assert plan.switches == side * side
    ring = [min(i, side - i) for i in range(side)]
    hops = {}
    for a, b in product(range(side * side), repeat=2):
        far = ring[(a // side - b // side) % side] + ring[(a % side - b % side) % side] + 1
        hops[far] = hops.get(far, 0) + (rails * here) ** 2
    hops[1] -= side * side * rails * here
    assert pairs_by_switches(plan) == hops, side
    if side % 2 == 0 and side > 2:  # two cuts through each of the rings across the middle
        ports = side * side * rails * here / 2
        assert bisection_Bps(plan) == min(2 * side * links, ports) * 50e9
    cables = 2 * side * side * links if side > 2 else 2 * side * links
    assert sum(c.count for c in plan.trunks) == cables
    world = nominal()
    layer = LinkLayer.INFINIBAND
    found = bill(
        plan, world, network="compute", technology=layer, nic_id=None, nics_per_server=rails
    )
    assert found.count("switches") == side * side
    fibres = [line.count for line in found.lines if line.what == "router-router: fibres"]
    assert sum(fibres) == cables
    switches = [line for line in found.lines if line.what == "switches"]
    assert switches[0].sum_USD == side * side * world.number("price", "qm9700", "price_USD")
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project, to be extended."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("src", "tests", "examples", "docs", "tools"):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def run(project: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "COLUMNS")}
    environment |= {"PYTHONPATH": str(project / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *command],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def change(project: Path, step: re.Match[str]) -> None:
    """Carry out a step that writes a file, or adds lines to one."""
    path, text = project / step["path"], step["text"]
    if step["what"] == "file":
        path.write_text(text, encoding="utf-8")
    elif step["what"] == "append":
        path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")
    else:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        at = next(i for i, line in enumerate(lines) if step["after"] in line)
        path.write_text("".join([*lines[: at + 1], text, *lines[at + 1 :]]), encoding="utf-8")


def check_console(project: Path, text: str) -> None:
    """Run each command of a console block; the lines under it must be printed, … is anything."""
    for block in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, *expected = block.strip().splitlines()
        done = run(project, "-m", *shlex.split(command))
        printed = " ".join((done.stdout + done.stderr).split())
        refused = "too-large" in command
        assert done.returncode == (2 if refused else 0), done.stderr or done.stdout
        for part in " ".join(expected).split("…"):
            assert " ".join(part.split()) in printed


SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda s: s.splitlines()[0].replace(" ", "-"))
def test_a_recipe_does_what_the_page_says(section: str, project: Path) -> None:
    steps = list(STEP.finditer(section))
    assert any(step["what"] == "tests" for step in steps)
    for step in steps:
        if step["console"]:
            check_console(project, step["console"])
        elif step["what"] == "tests":
            found = run(project, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", step["path"])
            assert found.returncode == 0, found.stdout[-3000:]
        else:
            change(project, step)


def test_the_torus_of_rings_has_the_distances_bisection_and_price_of_a_torus(project: Path) -> None:
    """Ring distances add up; an even torus has two links a ring across its middle."""
    if "torus-of-rings" not in (project / "src/eastwest/fabric/topology/__init__.py").read_text():
        for step in STEP.finditer(SECTIONS[0]):
            if step["what"] in ("file", "insert"):
                change(project, step)
    found = run(project, "-c", TORUS)
    assert found.returncode == 0, found.stderr
