"""Tables: one result, five ways to show it, none of them dangerous."""

from __future__ import annotations

import json

import pytest

from eastwest.table import Column, Table, dump_json, without_formula, write_text

TABLE = Table(
    "Links",
    (
        Column("name", "name", right=False),
        Column("rate_Bps", "rate", lambda v: f"{v / 1e9:.1f} GB/s"),
    ),
    (("=cmd|' /C calc'!A0", 50e9), ("a|b", None)),
    ("one note",),
)


def test_json_keeps_numbers_in_base_units():
    data = json.loads(TABLE.to_json())
    assert data["rows"][0]["rate_Bps"] == 50e9
    assert data["rows"][1]["rate_Bps"] is None
    assert data["notes"] == ["one note"]


def test_csv_cannot_carry_a_formula():
    assert TABLE.to_csv().splitlines()[1].startswith("'=cmd")


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_every_start_of_a_formula_is_quoted(start):
    assert str(without_formula(start)).startswith("'")
    assert without_formula(-1.5) == -1.5


def test_markdown_and_html_escape_what_would_break_them():
    assert "a\\|b" in TABLE.to_markdown()
    hostile = Table("<script>", (Column("x", "x"),), (("<img src=x onerror=1>",),))
    assert "<img" not in hostile._repr_html_()
    assert "<script>" not in hostile._repr_html_()


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="2 values for 1 columns"):
        Table("t", (Column("x", "x"),), ((1, 2),))


def test_json_refuses_what_is_not_finite():
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump_json({"x": float("nan")})


def test_machine_formats_of_several_tables():
    assert len(json.loads(write_text([TABLE, TABLE], "json"))) == 2
    assert write_text([TABLE], "md").startswith("**Links**")
    assert write_text([TABLE], "csv") == TABLE.to_csv()


def test_a_narrow_terminal_leaves_out_the_most_spare_columns_and_says_so():
    wide = Table(
        "",
        (
            Column("a", "name", right=False),
            Column("b", "much\nspare", spare=2),
            Column("c", "spare", spare=1),
        ),
        (("x" * 20, 1.0, 2.0),),
    )
    assert wide.fitted(80) is wide
    assert [c.key for c in wide.fitted(35).columns] == ["a", "c"]
    assert wide.fitted(35).notes == ("Left out, for the terminal is narrow: much spare.",)
    assert [c.key for c in wide.fitted(5).columns] == ["a"]
