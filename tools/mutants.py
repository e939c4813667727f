"""Plant one fault after another in a package and count those that its tests find.

    python tools/mutants.py [PACKAGE[/MODULE] ...] [--sample N]

Each package is copied to build/mutants/PACKAGE, with its caches taken off (a cached result would
hide a fault planted below it), and mutmut runs there: for each fault only the tests that reach the
changed function; with --sample, N of the faults, the same N each time. Prints a table (killed,
survived, share) and each survivor's change. Survivors that no test can find, because the changed
code does the same, stand in tools/equivalent_mutants.txt with the reason, and do not count.

mutmut plants no faults in properties. A fault costs about a second of one core: some twenty minutes
for the largest package on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
EQUIVALENT = ROOT / "tools/equivalent_mutants.txt"
# The tests of a package, quick ones first; those of a package above are there where they are its
# only closed forms.
TESTS = {
    "workload": ("tests/workload", "tests/training"),
    "training": ("tests/training",),
    "transport": ("tests/transport",),
    "collective": ("tests/collective",),
    "fabric": ("tests/fabric",),
    "design": ("tests/design",),
}
COPIED = ("src", "tests", "docs", "examples", "tools", "README.md", "pyproject.toml")
CACHE = re.compile(r"^ *@functools\.(?:cache|lru_cache\(.*\))\n", re.MULTILINE)
KILLED, SURVIVED, UNTESTED = "killed", "survived", "no test"
BROKEN = 255  # pytest could not start: a fault met when tests are collected
# mutmut's exit codes: those of pytest, 33 for no tests, SIGXCPU for what ran without end.
OUTCOMES = {0: SURVIVED, 5: UNTESTED, 33: UNTESTED} | dict.fromkeys(
    (1, 2, 3, -24, 24, 152, BROKEN), KILLED
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted fault: mutmut's name for it, what became of it, and the changed lines."""

    name: str
    outcome: str
    change: str

    @property
    def function(self) -> str:
        """The function it stands in."""
        return re.sub(r"__mutmut_\d+$", "", self.name)


def prepare(target: str) -> Path:
    """Copy the project for one package, or one module of it, and return the copy's folder."""
    package = target.split("/")[0]
    folder = ROOT / "build/mutants" / target.replace("/", ".")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in COPIED:
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, folder / name)
    for path in (folder / "src/eastwest" / package).rglob("*.py"):
        path.write_text(CACHE.sub("", path.read_text(encoding="utf-8")), encoding="utf-8")
    shared = ROOT.parent / "shared"
    if shared.exists():  # tables that some tests read beside the project
        (folder / "shared").symlink_to(shared.resolve())
    settings = folder / "pyproject.toml"
    ending = "/*" if target == package else ".py"
    chosen = (
        f'[tool.mutmut]\nonly_mutate = ["src/eastwest/{target}{ending}"]\n'
        f"pytest_add_cli_args_test_selection = {json.dumps(TESTS[package])}\n"
    )
    settings.write_text(settings.read_text().replace("[tool.mutmut]\n", chosen), encoding="utf-8")
    return folder


def run(folder: Path, sample: int = 0) -> list[Mutant]:
    """Run mutmut in a prepared folder and return what became of each fault, or of a sample."""
    _mutmut(folder, "run", "none")  # plants all, sees who tests what, and stops: none is so named
    names = list(_codes(folder))
    if not names:
        sys.exit(f"nothing to change in {folder.name}")
    chosen = random.Random(0).sample(names, min(sample, len(names))) if sample else names
    if _mutmut(folder, "run", *chosen):
        sys.exit(f"mutmut failed; its last words:\n{_log(folder).read_text()[-2000:]}")
    found = _codes(folder)
    if odd := [name for name in chosen if found[name] not in OUTCOMES]:
        sys.exit(f"{odd[0]}: its tests did not run (exit code {found[odd[0]]})")
    if all(found[name] == BROKEN for name in chosen):
        sys.exit(f"no test could start; see {_log(folder)}")
    mutants = [Mutant(name, OUTCOMES[found[name] or 0], "") for name in sorted(chosen)]
    return [m if m.outcome == KILLED else _with_change(m, folder) for m in mutants]


def _log(folder: Path) -> Path:
    return folder / "mutmut.log"


def _mutmut(folder: Path, *arguments: str) -> int:
    with _log(folder).open("a", encoding="utf-8") as out:
        return subprocess.run(
            [sys.executable, "-m", "mutmut", *arguments],
            cwd=folder,
            env={**os.environ, "CI": "mutants"},
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode


def _codes(folder: Path) -> dict[str, int | None]:
    """Return the exit code of each fault, None before it has run."""
    found: dict[str, int | None] = {}
    for meta in sorted((folder / "mutants").rglob("*.py.meta")):
        found |= json.loads(meta.read_text(encoding="utf-8"))["exit_code_by_key"]
    return found


def _with_change(mutant: Mutant, folder: Path) -> Mutant:
    shown = subprocess.run(
        [sys.executable, "-m", "mutmut", "show", mutant.name],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    lines = [x for x in shown if x[:1] in "+-" and x[:3] not in ("+++", "---")]
    return Mutant(mutant.name, mutant.outcome, "\n".join(lines))


def equivalent() -> set[tuple[str, str]]:
    """Return function and change of each fault that is known to change nothing."""
    found, name, change = set(), "", []
    for line in [*EQUIVALENT.read_text(encoding="utf-8").splitlines(), "* end"]:
        if line.startswith("* "):
            found.add((name, "\n".join(change)))
            name, change = line[2:].strip(), []
        elif line[:1] in ("+", "-"):
            change.append(line)
    return found - {("", "")}


def report(target: str, mutants: list[Mutant], known: set[tuple[str, str]]) -> str:
    """Return the target's line of the table, then its survivors."""
    counted = [m for m in mutants if (m.function, m.change) not in known]
    same = len(mutants) - len(counted)
    killed = sum(m.outcome == KILLED for m in counted)
    left = [m for m in counted if m.outcome != KILLED]
    share = killed / len(counted) if counted else 1.0
    lines = [f"{target:16} {killed:7} {len(left):9} {same:11} {share:7.1%}", ""]
    for m in left:
        lines += [f"* {m.function}" + ("" if m.outcome == SURVIVED else f"  ({m.outcome})")]
        lines += [m.change, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Plant faults and count those that tests find.")
    parser.add_argument("targets", nargs="*", help="a package, or package/module")
    parser.add_argument("--sample", type=int, default=0, help="how many faults of each, 0: all")
    asked = parser.parse_args()
    targets = asked.targets or list(TESTS)
    if unknown := [t for t in targets if t.split("/")[0] not in TESTS]:
        sys.exit(f"no such package: {', '.join(unknown)} (known: {', '.join(TESTS)})")
    sys.stdout.write(
        f"{'package':16} {'killed':>7} {'survived':>9} {'equivalent':>11} {'share':>7}\n"
    )
    for target in targets:
        found = run(prepare(target), asked.sample)
        sys.stdout.write(report(target, found, equivalent()) + "\n")
        sys.stdout.flush()
