"""``eastwest init`` and ``eastwest check`` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import typer
from typer.testing import CliRunner, Result

from eastwest.cli.check import check
from eastwest.cli.init import init
from eastwest.study.start import template_names

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
BROKEN = ROOT / "tests" / "spec" / "broken"

app = typer.Typer(pretty_exceptions_enable=False)
app.command("init")(init)
app.command("check")(check)


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def test_there_are_the_templates_that_the_documents_name() -> None:
    assert template_names() == [
        "dgx-h100-su",
        "gb200-nvl72",
        "hgx-b200-roce",
        "llama3-70b-1024xh100",
        "small-4x-a100",
    ]
    assert run("init", "--list").stdout.split() == template_names()


@pytest.mark.parametrize("template", template_names())
def test_every_template_is_commented_and_passes_its_check(template: str, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    written = run("init", file, "--template", template)
    assert written.exit_code == 0
    assert written.stdout == ""
    assert f"eastwest check {file}" in written.stderr
    assert file.read_text().startswith("# ")
    checked = run("check", file)
    assert checked.exit_code == 0, checked.stderr
    assert checked.stdout.startswith(f"✓ {template}: ")


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("mine\n")
    refused = run("init", file)
    assert refused.exit_code == 2
    assert refused.stderr == f"eastwest: {file}: the file exists already (--force overwrites it)\n"
    assert file.read_text() == "mine\n"
    assert run("init", file, "--force").exit_code == 0
    assert file.read_text() != "mine\n"


def test_a_dash_writes_to_stdout_and_nothing_else() -> None:
    result = run("init", "-", "--template", "dgx-h100-su")
    assert result.stdout.startswith("# One scalable unit")
    assert result.stderr == ""


def test_an_unknown_template_is_told_the_nearest() -> None:
    result = run("init", "-", "--template", "dgx-h100")
    assert (result.exit_code, result.stderr) == (
        2,
        "eastwest: unknown template 'dgx-h100' (did you mean 'dgx-h100-su'?)\n",
    )


def test_the_schema_stands_beside_and_the_file_points_to_it(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    assert run("init", file, "--schema").exit_code == 0
    assert file.read_text().startswith("# yaml-language-server: $schema=cluster.schema.json\n")
    jsonschema.Draft202012Validator.check_schema(
        json.loads((tmp_path / "cluster.schema.json").read_text())
    )
    assert run("check", file).exit_code == 0
    assert run("init", "-", "--schema").stdout == (tmp_path / "cluster.schema.json").read_text()


def test_no_file_points_to_a_schema_that_is_not_there(tmp_path: Path) -> None:
    run("init", tmp_path / "cluster.yaml")
    assert "yaml-language-server" not in (tmp_path / "cluster.yaml").read_text()


def test_a_folder_that_takes_no_file_is_told(tmp_path: Path) -> None:
    result = run("init", tmp_path / "nowhere" / "cluster.yaml")
    assert result.exit_code == 2
    assert "cannot write the file: No such file or directory" in result.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_passes_its_check(path: Path) -> None:
    result = run("check", path)
    assert (result.exit_code, result.stderr) == (0, "")


def test_check_shows_what_it_understood() -> None:
    result = run("check", ROOT / "examples" / "llama3-70b-1024xh100.yaml")
    assert result.stdout == (
        "✓ llama3-70b-1024xh100: 1,024 GPUs in 128 dgx-h100, infiniband rail-optimised of 48 "
        "qm9700\n"
        "  GPUs        1,024 in 128 dgx-h100\n"
        "  compute     infiniband, rail-optimised, 400 Gb/s ports, GPUDirect\n"
        "  switches    32 leaf + 16 spine qm9700\n"  # DGX SuperPOD H100 (RA-11333-001 V11), 4 SU
        "  cables      1,024 + 1,024\n"
        "  storage     nvmeof-rdma, 16 targets, 9 leaf + 8 spine qm9700\n"
        "  management  sn2201, 4 servers a rack\n"
        "  job         llama-3-70b, 1,024 sequences of 8,192, bf16\n"
        "  layout      tensor 8 x pipeline 4 x data 32\n"
        "  expect      all_reduce 1GiB >= 300GB/s; step <= 12s\n"
    )


def test_one_wrong_file_among_good_ones_gives_exit_code_2_and_the_good_are_still_shown() -> None:
    good, wrong = EXAMPLES[-1], BROKEN / "unknown-switch.yaml"
    result = run("check", good, wrong)
    assert result.exit_code == 2
    assert result.stdout.startswith("✓ ")
    assert result.stderr == (
        f"{wrong}:9:13: networks.compute.switch: unknown switch 'qm9800' (did you mean 'qm9700'? "
        "or describe yours under catalog: switch:)\n"
        "    9 |     switch: qm9800                # eastwest facts switch lists them\n"
        "      |             ^^^^^^\n"
    )


def test_json_tells_the_same() -> None:
    good, wrong = ROOT / "examples" / "llama3-70b-1024xh100.yaml", BROKEN / "unknown-switch.yaml"
    result = run("check", good, wrong, "--json")
    first, second = json.loads(result.stdout)
    assert result.exit_code == 2
    assert (first["ok"], first["gpus"], first["compute"]["roles"]) == (
        True,
        1024,
        {"leaf": 32, "spine": 16},
    )
    assert first["job"]["layout"]["data"] == 32
    assert second == {
        "file": str(wrong),
        "ok": False,
        "errors": [
            {
                "where": f"{wrong}:9:13: networks.compute.switch",
                "what": "unknown switch 'qm9800'",
                "hint": "did you mean 'qm9700'? or describe yours under catalog: switch:",
            }
        ],
    }


@pytest.mark.parametrize("what", ["missing.yaml", "."])
def test_what_cannot_be_read_is_told(what: str, tmp_path: Path) -> None:
    result = run("check", tmp_path / what)
    assert result.exit_code == 2
    assert "cannot read the cluster file" in result.stderr
