"""``eastwest explain`` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from eastwest.cli.explain import bar, explain

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/llama3-70b-1024xh100.yaml"

app = typer.Typer(pretty_exceptions_enable=False)
app.command("explain")(explain)


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in (EXAMPLE, *args)])


def test_each_technology_is_a_block_of_stages_and_a_row_of_the_summary() -> None:
    result = run("--technologies", "infiniband-gpudirect,tcp-400g")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert "InfiniBand + GPUDirect, 8 x 400G (infiniband-gpudirect): " in result.stdout
    for stage in (
        "ring the doorbell",
        "read GPU memory",
        "softirq and protocol",
        "wake the thread",
        "copy kernel to user",
    ):
        assert stage in result.stdout
    assert "8 B from gpu0.node0 to gpu0.node1 of llama3-70b-1024xh100, one way" in result.stdout
    assert "\x1b[" not in result.stdout
    assert any(line.startswith(" infiniband-gpudirect *") for line in result.stdout.splitlines())


def test_bars_begin_where_the_one_before_ended() -> None:
    lines = run("--technologies", "infiniband-gpudirect").stdout.splitlines()
    bars = [line for line in lines if "█" in line]
    starts = [line.index("█") for line in bars]
    assert starts == sorted(starts)
    ends = [max(i for i, c in enumerate(line) if c in "▏▎▍▌▋▊▉█") for line in bars]
    assert all(-1 <= start - end <= 1 for end, start in zip(ends, starts[1:], strict=False))


def test_json_holds_the_stages_of_each_technology() -> None:
    data = json.loads(run("--json", "--size", "1MiB", "--technologies", "roce-gpudirect").stdout)
    assert data["size_bytes"] == 1 << 20
    (one,) = data["technologies"]
    assert one["technology"] == "roce-gpudirect"
    assert sum(stage["time_s"] for stage in one["stages"]) == pytest.approx(one["latency_s"])


def test_csv_begins_with_the_summary() -> None:
    text = run("--format", "csv", "--technologies", "gigabit-ethernet").stdout
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0][:4] == ["technology", "label", "use", "latency_s"]
    assert rows[1][0] == "gigabit-ethernet"


def test_the_report_is_a_file_and_nothing_of_it_is_on_stdout(tmp_path: Path) -> None:
    page = tmp_path / "explain.html"
    result = run("--html", page, "--technologies", "infiniband-gpudirect", "--json")
    assert result.exit_code == 0
    assert "read GPU memory" in page.read_text()
    json.loads(result.stdout)
    assert result.stderr == f"eastwest: wrote {page}\n"


def test_the_same_question_has_the_same_answer_to_the_byte() -> None:
    assert run().stdout == run().stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["--to", "gpu8.node0"],
            "eastwest: the cluster has no gpu8 (there are gpu0 to gpu7 of node0 to node127)\n",
        ),
        (
            ["--technologies", "carrier-pigeon"],
            "eastwest: unknown technology 'carrier-pigeon' (valid: ",
        ),
        (["--size", "8G"], "eastwest: size '8G' is ambiguous: write '8GiB' or '8GB'\n"),
        (["--format", "xml"], "eastwest: unknown format 'xml' "),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(args: list[str], message: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(message)
    assert "Traceback" not in result.stderr


@settings(max_examples=100, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.integers(10, 60), st.booleans())
def test_a_bar_always_shows_and_never_leaves_its_cells(
    start: float, length: float, cells: int, blocks: bool
) -> None:
    text = bar(start, min(length, 1 - start), cells, blocks)
    assert text.strip()
    assert len(text) <= cells
    assert len(text) - len(text.lstrip()) == min(int(start * cells), cells - 1)
    assert blocks or set(text) <= {" ", "#"}
