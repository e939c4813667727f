"""Files: read whole or refused, written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eastwest.errors import UserError
from eastwest.files import inputs_kept, read_text, write_text


def test_what_is_no_text_is_refused_with_the_path(tmp_path: Path):
    binary, latin, folder = tmp_path / "a.bin", tmp_path / "b.txt", tmp_path
    binary.write_bytes(b"\x7fELF\x00\x01")
    latin.write_bytes(b"caf\xe9 \xff\xfe")
    for path, message in (
        (binary, f"{binary}: the file is binary; expected text"),
        (latin, f"{latin}: the file is not UTF-8 text (byte 3)"),
        (folder, f"{folder}: cannot read the file: Is a directory"),
        (
            tmp_path / "none",
            f"{tmp_path / 'none'}: cannot read the file: No such file or directory",
        ),
    ):
        with pytest.raises(UserError) as caught:
            read_text(path)
        assert str(caught.value) == message


def test_a_file_that_cannot_be_written_leaves_the_old_one_alone(tmp_path: Path):
    old = tmp_path / "report.html"
    old.write_text("old")
    with pytest.raises(UserError, match="cannot write the file"):
        write_text(old / "below-a-file.html", "new")
    with pytest.raises(UserError, match="cannot write the file"):
        write_text(tmp_path / "no" / "such" / "folder.html", "new")
    assert old.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["report.html"]


def test_text_is_written_whole_and_keeps_the_mode(tmp_path: Path):
    target = tmp_path / "x.txt"
    write_text(target, "one")
    target.chmod(0o640)
    write_text(target, "two")
    assert target.read_text() == "two"
    assert target.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["x.txt"]


def test_a_link_stays_and_its_target_is_written(tmp_path: Path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_what_is_no_regular_file_is_written_to_and_not_replaced(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(pipe, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_folder_is_no_file_to_write(tmp_path: Path):
    with pytest.raises(UserError, match="it is a folder"):
        write_text(tmp_path, "x")


def test_an_interrupt_while_writing_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "report.html", "new")
    assert os.listdir(tmp_path) == []


def test_what_was_read_in_a_run_is_not_written_in_it_but_in_the_next(tmp_path: Path):
    file, other = tmp_path / "in.txt", tmp_path / "out.txt"
    file.write_text("mine")
    other.write_text("old")
    with inputs_kept():
        read_text(file)
        write_text(other, "new")
        with pytest.raises(UserError, match="it is an input"):
            write_text(file, "new")
    assert (file.read_text(), other.read_text()) == ("mine", "new")
    write_text(file, "new")
    assert file.read_text() == "new"
