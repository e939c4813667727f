"""However a run ends: an exit code, at most one short message, the user's files as they were."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eastwest.cli.app import app
from eastwest.cli.ending import outcome
from eastwest.errors import InternalError, UserError

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/llama3-70b-1024xh100.yaml"
RUN = f"{sys.executable} -m eastwest"
LLAMA = """{"model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672,
"num_attention_heads": 64, "num_key_value_heads": 8, "num_hidden_layers": 80,
"vocab_size": 128256, "max_position_embeddings": 8192, "tie_word_embeddings": false}"""
full_disk = pytest.mark.skipif(
    not Path("/dev/full").is_char_device(), reason="there is no /dev/full here"
)


def shell(line: str) -> tuple[int, str]:
    """Return exit code and stderr of a line that the shell runs: it can close streams."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("verb", ["--help", "check --help", f"check {EXAMPLE}"])
class TestAwkwardStreams:
    @full_disk
    def test_a_full_disk_is_one_message(self, verb: str) -> None:
        message = "eastwest: cannot write the result: No space left on device\n"
        assert shell(f"{RUN} {verb} >/dev/full") == (2, message)

    def test_a_closed_stdout_is_one_message(self, verb: str) -> None:
        message = "eastwest: cannot write the result: Bad file descriptor\n"
        assert shell(f"{RUN} {verb} >&-") == (2, message)

    def test_a_closed_stderr_changes_nothing(self, verb: str) -> None:
        assert shell(f"{RUN} {verb} 2>&- <&- >/dev/null") == (0, "")

    def test_with_nowhere_to_write_the_exit_code_tells(self, verb: str) -> None:
        assert shell(f"{RUN} {verb} >&- 2>&-") == (2, "")

    def test_a_reader_that_leaves_is_no_error(self, verb: str) -> None:
        assert shell(f"{RUN} {verb} | true") == (0, "")


@full_disk
def test_a_notice_that_cannot_be_written_fails_nothing(tmp_path: Path) -> None:
    assert shell(f"{RUN} init {tmp_path}/new.yaml 2>/dev/full") == (0, "")
    assert shell(f"{RUN} check {tmp_path}/none.yaml 2>/dev/full") == (2, "")


@pytest.mark.parametrize("module", ["typer", "eastwest.cli.ending", "eastwest.cli.check", "yaml"])
def test_an_interrupt_while_modules_load_leaves_with_130_and_no_traceback(module: str) -> None:
    code = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from eastwest.cli.main import run\n"
        f"sys.argv = ['eastwest', 'check', {str(EXAMPLE)!r}]\n"
        "run()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr in ("", "eastwest: interrupted\n")


def raising(error: BaseException) -> Callable[[], int]:
    def work() -> int:
        raise error

    return work


def wrapped(cause: BaseException) -> RuntimeError:
    error = RuntimeError("Error calling __set_name__")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UserError("no", "a.yaml:1:1"), 2, "eastwest: a.yaml:1:1: no\n"),
        (KeyboardInterrupt(), 130, "eastwest: interrupted\n"),
        (wrapped(KeyboardInterrupt()), 130, "eastwest: interrupted\n"),
        (BrokenPipeError(), 0, ""),
        (SystemExit(1), 1, ""),
    ],
)
def test_each_way_to_end_has_its_code(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(raising(error)) == code
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("float division by zero"),
        RecursionError(),
        MemoryError(),
        KeyError(("a", "b")),
        FileNotFoundError(2, "No such file or directory", "catalog.csv"),
        InternalError("a law\nthat is broken"),
        ValueError("x" * 10_000),
    ],
)
def test_a_fault_of_ours_is_code_4_and_a_short_message(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(raising(error)) == 4
    said = capsys.readouterr().err
    assert said.startswith("eastwest: internal error: ")
    assert said.endswith("Please report this with the command and the cluster file.\n")
    assert "Traceback" not in said
    assert len(said) < 500


def test_a_fault_names_the_place_in_our_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import eastwest.study.start as start

    monkeypatch.setattr(start, "check_output", lambda path: 1 / 0)
    monkeypatch.setattr(start, "write_text", lambda path, text: 1 / 0)
    result = CliRunner().invoke(app, ["init", str(tmp_path / "new.yaml")])
    assert result.exit_code == 4
    assert "internal error: ZeroDivisionError: division by zero (study/start.py:" in result.stderr


def same_file(folder: Path, kind: str) -> Path:
    """Return another name of ``folder/cluster.yaml``."""
    other = folder / "other.html"
    if kind == "symbolic link":
        other.symlink_to(folder / "cluster.yaml")
    elif kind == "link of a link":
        (folder / "link").symlink_to(folder / "cluster.yaml")
        other.symlink_to(folder / "link")
    elif kind == "hard link":
        os.link(folder / "cluster.yaml", other)
    elif kind == "relative":
        return folder / "sub" / ".." / "cluster.yaml"
    else:
        return folder / "cluster.yaml"
    return other


@pytest.mark.parametrize("verb", ["compare", "explain"])
@pytest.mark.parametrize(
    "kind", ["itself", "symbolic link", "link of a link", "hard link", "relative"]
)
def test_an_input_is_never_overwritten(verb: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    file = tmp_path / "cluster.yaml"
    shutil.copy(EXAMPLE, file)
    page = same_file(tmp_path, kind)
    names = sorted(os.listdir(tmp_path))
    result = CliRunner().invoke(app, [verb, str(file), "--html", str(page)])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == (
        f"eastwest: {page}: cannot write the file: it is an input of this command "
        "(name another file)\n"
    )
    assert file.read_bytes() == EXAMPLE.read_bytes()
    assert sorted(os.listdir(tmp_path)) == names


def test_a_file_that_the_cluster_file_names_is_an_input_too(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(LLAMA)
    text = EXAMPLE.read_text().replace("model: llama-3-70b", "model: ./config.json")
    (tmp_path / "cluster.yaml").write_text(text)
    result = CliRunner().invoke(
        app, ["compare", str(tmp_path / "cluster.yaml"), "--html", str(config)]
    )
    assert result.exit_code == 2
    assert "it is an input of this command" in result.stderr
    assert config.read_text() == LLAMA


def test_the_schema_beside_does_not_take_the_place_of_the_cluster_file(tmp_path: Path) -> None:
    file = tmp_path / "cluster.schema.json"
    result = CliRunner().invoke(app, ["init", str(file), "--schema"])
    assert result.exit_code == 2
    assert list(tmp_path.iterdir()) == []
