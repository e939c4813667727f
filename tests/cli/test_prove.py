"""``eastwest prove`` as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

RING = Path(__file__).parents[1] / "collective/msccl/custom_ring_allreduce_8npus.xml"


def prove(*arguments: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-m", "eastwest", "prove", *arguments]
    return subprocess.run(run, capture_output=True, text=True, check=False)


def test_an_algorithm_is_proven_in_place_and_not():
    done = prove("tree", "--ranks", "24", "--json")
    rows = json.loads(done.stdout)["rows"]
    assert done.returncode == 0
    assert [(r["operation"], r["in_place"], r["verdict"]) for r in rows] == [
        ("all_reduce", False, "proven"),
        ("all_reduce", True, "proven"),
    ]


def test_a_file_is_proven():
    done = prove(str(RING))
    assert done.returncode == 0
    assert "proven" in done.stdout


def test_a_wrong_file_is_refuted_with_exit_code_1(tmp_path):
    wrong = tmp_path / "wrong.xml"
    wrong.write_text(RING.read_text().replace('srcoff="7"', 'srcoff="6"', 1))
    done = prove(str(wrong), "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["rows"][0]["verdict"].startswith(f"{wrong}:")


def test_mistakes_end_with_exit_code_2_and_one_line(tmp_path):
    for arguments, message in (
        (["trea"], "eastwest: unknown algorithm 'trea' (did you mean 'tree'?)\n"),
        (
            ["ring", "--ranks", "2", "--nodes", "3"],
            "eastwest: 2 ranks on 3 nodes; expected at least one rank a node\n",
        ),
        (["no.xml"], "eastwest: no.xml: cannot read the MSCCL file: No such file or directory\n"),
    ):
        done = prove(*arguments)
        assert (done.returncode, done.stderr, done.stdout) == (2, message, "")
