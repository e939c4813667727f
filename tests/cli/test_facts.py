"""``eastwest facts`` as a user meets it: a kind lists its entries, an entry shows its facts."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from eastwest.catalog.load import catalog
from eastwest.cli.app import app
from eastwest.study.facts import entries_table, find, kinds_table, lines
from eastwest.study.start import template_names, template_text

KINDS = sorted(catalog().entries)


def facts(*args: str) -> str:
    result = CliRunner().invoke(app, ["facts", *args])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_lists_each_of_its_entries_on_a_line_of_its_own(kind: str) -> None:
    said = [line.split()[0] for line in facts(kind).splitlines() if line.strip()]
    assert [word for word in said if word in catalog().ids(kind)] == list(catalog().ids(kind))


def test_a_server_is_listed_with_what_one_chooses_it_by() -> None:
    [line] = [line for line in facts("server").splitlines() if line.startswith(" dgx-h100 ")]
    assert line.split()[:6] == ["dgx-h100", "h100-sxm", "8", "8", "400", "Gb/s"]


def test_without_a_word_the_kinds_are_listed_and_each_says_what_it_is() -> None:
    assert [row[0] for row in kinds_table(catalog()).rows] == list(catalog().entries)
    assert all(row[2] for row in kinds_table(catalog()).rows)


@pytest.mark.parametrize("words", ["qm9700", "switch qm9700", "dgx-h100"])
def test_an_entry_shows_its_own_facts_and_no_other_entry_s(words: str) -> None:
    name = words.split()[-1]
    heads = [line for line in facts(*words.split()).splitlines() if re.match(r"\S+ \S+$", line)]
    assert heads
    assert {head.split()[1] for head in heads} == {name}
    if " " in words:
        assert heads == [words]


def test_a_fact_is_shown_with_value_range_and_meaning() -> None:
    assert re.search(
        r"^  port_to_port_s +225 ns +130 ns to \d+ ns; latency from port to port$",
        facts("switch", "qm9700"),
        re.MULTILINE,
    )


def test_sources_stand_in_a_line_below_and_only_where_they_are_asked_for() -> None:
    source = catalog().fact("switch", "qm9700", "radix").source
    assert source not in facts("qm9700")
    assert source in facts("qm9700", "--sources")


@pytest.mark.parametrize("words", ["dgx-h100", "technology tcp-100g", "gpu h100", "nccl"])
@pytest.mark.parametrize("sources", [False, True])
def test_a_narrow_terminal_wraps_by_words_within_80_columns(words: str, sources: bool) -> None:
    found = find(words, catalog())
    narrow, wide = list(lines(found, 80, sources)), list(lines(found, None, sources))
    assert max(map(len, narrow)) <= 80
    assert len(wide) <= len(narrow)
    assert not any(len(line.strip()) == 1 and line.strip().isalpha() for line in narrow)


@pytest.mark.parametrize("kind", ["server", "technology", "gpu", "switch", "nic", "model"])
def test_a_list_fits_80_columns_with_all_that_one_chooses_by(kind: str) -> None:
    table = entries_table(catalog(), kind).fitted(80)
    widths = [
        max(len(line) for line in column)
        for column in zip([c.label for c in table.columns], *table.shown(), strict=True)
    ]
    assert sum(widths) + 3 * len(widths) <= 80
    assert len(table.columns) >= 3


def test_what_is_piped_is_never_wrapped() -> None:
    said = facts("cable")
    names = [str(catalog().fact("cable", id, "name").value) for id in catalog().ids("cable")]
    assert all(name in said for name in names)
    note = max((f.note for f in catalog().facts.values() if f.id == "qm9700"), key=len)
    assert note in facts("qm9700", "--sources")


def test_machines_get_every_fact_with_all_that_is_known_of_it() -> None:
    rows = json.loads(facts("server", "dgx-h100", "--json"))["rows"]
    assert {row["id"] for row in rows} == {"dgx-h100"}
    assert set(rows[0]) >= {"kind", "id", "attribute", "value", "unit", "source", "checked"}
    assert len(json.loads(facts("--json"))["rows"]) == len(catalog().facts)


def test_what_is_not_there_is_told_the_nearest() -> None:
    result = CliRunner().invoke(app, ["facts", "qm9700x"])
    assert result.exit_code == 2
    assert result.stderr == "eastwest: no fact matches 'qm9700x' (did you mean 'qm9700'?)\n"


@pytest.mark.parametrize("name", template_names())
def test_what_a_template_says_of_facts_is_true(name: str) -> None:
    for line in template_text(name).splitlines():
        if said := re.search(r": (\S+) +# eastwest facts (\w+) lists them", line):
            assert said[1] in facts(said[2])
