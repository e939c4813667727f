"""Broken cluster files, each with the whole text that its author reads (in the .txt beside it)."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastwest.errors import UserError
from eastwest.spec.cluster import load_cluster
from eastwest.study.check import check

BROKEN = Path(__file__).parent / "broken"
FILES = sorted(path.name for path in BROKEN.glob("*.yaml"))


@pytest.mark.parametrize("name", FILES)
def test_a_broken_file_is_told_what_and_where_and_what_to_do(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(BROKEN)
    with pytest.raises(UserError) as caught:
        check(load_cluster(name))
    assert f"{caught.value}\n" == Path(name).with_suffix(".txt").read_text(encoding="utf-8")


def test_there_are_enough_of_them_and_each_has_its_text() -> None:
    assert len(FILES) >= 10
    assert sorted(path.name for path in BROKEN.glob("*.txt")) == [
        name.replace(".yaml", ".txt") for name in FILES
    ]
