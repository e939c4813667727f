"""``eastwest compare`` and ``eastwest collective`` as a user meets them, and every verb on awkward
terminals."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from eastwest.cli.app import app

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/llama3-70b-1024xh100.yaml"
# A row of nccl-tests' output: size, count, type, redop, root, then time, algbw, busbw and errors,
# twice.
NCCL_ROW = re.compile(
    r"^\s*(?P<size>\d+)\s+(?P<count>\d+)\s+(?P<type>\w+)\s+(?P<redop>\w+)\s+(?P<root>-?\d+)"
    r"\s+(?P<time>[\d.]+)\s+(?P<algbw>[\d.]+)\s+(?P<busbw>[\d.]+)\s+(?P<wrong>\d+|N/A)"
    r"\s+(?P<in_time>[\d.]+)\s+(?P<in_algbw>[\d.]+)\s+(?P<in_busbw>[\d.]+)\s+(?P<in_wrong>\d+|N/A)"
)


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def compare(*args: str | Path) -> Result:
    return run("compare", EXAMPLE, *args)


def collective(operation: str, *args: str) -> Result:
    return run("collective", operation, EXAMPLE, *args)


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, int | float):
        yield float(value)


def one_message(result: Result) -> str:
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("eastwest: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_every_figure_is_finite_and_the_parts_add_up_to_the_step() -> None:
    result = compare("--json")
    assert (result.exit_code, result.stderr) == (0, "")
    data = json.loads(result.stdout)
    assert data["schema"] == "eastwest.compare/2"
    assert sum(option["chosen"] for option in data["options"]) == 1
    assert all(math.isfinite(number) and number >= 0 for number in numbers(data["options"]))
    for option in data["options"]:
        assert sum(option["parts_s"].values()) == pytest.approx(option["step_s"], rel=1e-9)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    args = (
        "--json",
        "--uncertainty",
        "--worlds",
        "10",
        "--technologies",
        "infiniband-gpudirect,tcp-400g",
    )
    first = compare(*args, "--seed", "3").stdout
    assert first == compare(*args, "--seed", "3").stdout
    assert first != compare(*args, "--seed", "4").stdout
    assert json.loads(first)["worlds"] == 10


def test_technologies_restrict_the_comparison() -> None:
    data = json.loads(compare("--json", "--technologies", " tcp-400g , roce-gpudirect,").stdout)
    assert [option["technology"] for option in data["options"]] == ["tcp-400g", "roce-gpudirect"]


def test_an_unknown_technology_is_told_the_nearest() -> None:
    said = one_message(compare("--technologies", "tcp-400"))
    assert said == "eastwest: unknown technology 'tcp-400' (did you mean 'tcp-400g'?)\n"


def test_an_expectation_that_fails_gives_exit_code_1_and_the_comparison_still(
    tmp_path: Path,
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(EXAMPLE.read_text().replace("step <= 12s", "step <= 1s"))
    result = run("compare", file)
    assert result.exit_code == 1
    assert result.stderr == ""
    assert "✓ all_reduce 1GiB >= 300GB/s: " in result.stdout
    assert "✗ step <= 1s: " in result.stdout
    assert [e["holds"] for e in json.loads(run("compare", file, "--json").stdout)["expect"]] == [
        True,
        False,
    ]


def test_a_time_expected_of_a_collective_is_held_against_its_time(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    text = EXAMPLE.read_text()
    file.write_text(
        text[: text.index("expect:")]
        + "expect: [all_reduce 1GiB <= 1h, all_reduce 1GiB >= 1GB/s]\n"
    )
    result = run("compare", file, "--json")
    time, rate = json.loads(result.stdout)["expect"]
    assert result.exit_code == 0
    factor = 2 * 1023 / 1024
    assert time["predicted"] == pytest.approx(2**30 * factor / rate["predicted"])


def test_a_report_that_cannot_be_written_is_one_message_and_no_file(tmp_path: Path) -> None:
    for page in (tmp_path / "none" / "page.html", tmp_path):
        assert "cannot write the file" in one_message(
            compare("--html", page, "--technologies", "tcp-400g")
        )
    assert list(tmp_path.iterdir()) == []


def test_the_report_is_told_on_stderr(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = compare("--html", page, "--json", "--technologies", "tcp-400g,roce-gpudirect")
    assert result.stderr == f"eastwest: wrote {page}\n"
    assert page.read_text().startswith("<!DOCTYPE html>")
    json.loads(result.stdout)


def test_csv_and_markdown_hold_the_same_options() -> None:
    names = ("--technologies", "infiniband-gpudirect,tcp-400g")
    head, *rows = csv.reader(io.StringIO(compare("--format", "csv", *names).stdout))
    assert head[:4] == ["label", "latency_s", "busbw_Bps", "step_s"]
    assert all(math.isfinite(float(cell)) for row in rows for cell in row[1:9])
    lines = compare("--format", "md", *names).stdout.splitlines()
    assert len([line for line in lines if line.startswith("|")]) == 2 + len(rows)
    assert all(row[0] in "\n".join(lines) for row in rows)


@pytest.mark.parametrize(
    ("operation", "factor"),
    [
        ("all_reduce", 2 * 1023 / 1024),
        ("all_gather", 1023 / 1024),
        ("all-to-all", 1023 / 1024),
        ("broadcast", 1.0),
    ],
)
def test_collective_prints_rows_that_readers_of_nccl_tests_accept(
    operation: str, factor: float
) -> None:
    result = collective(operation, "-b", "1M", "-e", "1G", "-f", "4")
    lines = [line for line in result.stdout.splitlines() if not line.startswith("#")]
    rows = [match for line in lines if (match := NCCL_ROW.match(line))]
    assert (result.exit_code, result.stderr) == (0, "")
    assert len(rows) == len(lines) == 6
    assert [int(row["size"]) for row in rows] == [2**20 * 4**n for n in range(6)]
    for row in rows:  # columns hold two decimals
        size, busbw = int(row["size"]), float(row["busbw"])
        assert float(row["algbw"]) == pytest.approx(
            size / float(row["time"]) / 1e3, rel=1e-3, abs=0.011
        )
        assert busbw == pytest.approx(float(row["algbw"]) * factor, rel=1e-3, abs=0.02)


def test_one_rank_has_no_bus_bandwidth_as_in_nccl_tests() -> None:
    row = NCCL_ROW.match(
        collective("all_reduce", "-n", "1", "-b", "8M", "-e", "8M").stdout.splitlines()[-1]
    )
    assert row
    assert float(row["busbw"]) == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-b", "abc"], "'abc' is not a size"),
        (["-b", "0"], "sizes must run up from a positive begin"),
        (["-b", "1M", "-e", "1K"], "sizes must run up from a positive begin"),
        (["-e", "-5"], "'-5' is not a size"),
        (["-e", "9999999T"], "sizes end at 1 PiB"),
        (["-f", "1"], "-f 1 would never end; it must be above 1"),
        (["-f", "0"], "-f 0 would never end; it must be above 1"),
        (["-f", "nan"], "-f nan is not a factor"),
        (["-f", "inf"], "-f inf is not a factor"),
        (["-f", "1.000001"], "more than 4096 sizes"),
        (["-i", "0"], "-i 0 would never end"),
        (["-i", "1"], "more than 4096 sizes"),
        (["-i", "x"], "'x' is not a size"),
        (["-d", "float128"], "unknown data type 'float128' (did you mean 'float'?)"),
        (["-n", "99999999999"], "-n 99999999999: the cluster has 1,024 GPUs"),
        (["--algorithm", "rings"], "unknown algorithm 'rings' (did you mean 'ring'?)"),
        (["--algorithm", "rings", "-n", "1"], "unknown algorithm 'rings' (did you mean 'ring'?)"),
        (["--algorithm", "pat"], "pat does not do all_reduce"),
        (["--protocol", "LL256"], "unknown protocol 'LL256' (did you mean 'll128'?)"),
        (["--technology", "roce"], "unknown technology 'roce'"),
        (["--format", "xml"], "unknown format 'xml'"),
    ],
)
def test_a_mistake_in_collective_is_one_message(args: list[str], message: str) -> None:
    assert message in one_message(collective("all_reduce", *args))


def test_an_unknown_collective_is_told_the_nearest() -> None:
    assert "(did you mean 'all_to_all'?)" in one_message(collective("alltoal"))


@pytest.mark.parametrize(
    ("theirs", "ours"), [("sendrecv", "send_receive"), ("alltoall", "all_to_all")]
)
def test_an_operation_may_be_named_as_nccl_tests_names_it(theirs: str, ours: str) -> None:
    assert collective(theirs).stdout == collective(ours).stdout


def installed(
    *args: str | Path, stdout: Any = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the command line in a process of its own, which alone has an encoding and a real
    stdout."""
    command = [sys.executable, "-m", "eastwest", *map(str, args)]
    return subprocess.run(
        command,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("verb", ["compare", "check", "explain"])
def test_an_ascii_terminal_is_written_to_plainly(verb: str) -> None:
    result = installed(verb, EXAMPLE, LC_ALL="C", PYTHONIOENCODING="ascii")
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.isascii()


def test_a_reader_that_leaves_early_is_no_error() -> None:
    for args in (("compare", EXAMPLE), ("facts", "--json")):
        reading, writing = os.pipe()
        os.close(reading)
        try:
            result = installed(*args, stdout=writing)
        finally:
            os.close(writing)
        assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full here")
def test_a_full_disk_is_one_message() -> None:
    with open("/dev/full", "wb") as full:
        result = installed("collective", "all_reduce", EXAMPLE, stdout=full)
    assert result.returncode == 2
    assert result.stderr == b"eastwest: cannot write the result: No space left on device\n"
