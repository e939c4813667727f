"""YAML with marks: what is read, what is refused, and that nothing but UserError ever comes out."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.errors import UserError
from eastwest.spec.marked_yaml import load

REFUSED = {
    "": "c.yaml: the file is empty; write one with eastwest init",
    "# only a comment\n": "c.yaml: the file is empty; write one with eastwest init",
    "---\n": "c.yaml: the file is empty; write one with eastwest init",
    "just text": "c.yaml:1:1: expected a mapping of 'key: value' lines (see eastwest init -)",
    "- 1\n": "c.yaml:1:1: expected a mapping of 'key: value' lines (see eastwest init -)",
    "a: 1\n---\nb: 2\n": "c.yaml:2:1: a second document starts here; expected one cluster a file",
    "a: 1\na: 2\n": "c.yaml:2:1: a: the key 'a' stands twice, first in line 1 (keep one of them)",
    "a: {b: 1, b: 2}": "c.yaml:1:11: a.b: the key 'b' stands twice, first in line 1 (keep one "
    "of them)",
    "1: x": "c.yaml:1:1: the key 1 is not text (quote it)",
    "true: x": "c.yaml:1:1: the key true is not text (quote it)",
    "? [a]\n: b": "c.yaml:1:3: expected a plain word as key",
    "a: !!int 3": "c.yaml:1:4: a: tags such as tag:yaml.org,2002:int are not allowed",
    "a: !!python/object/apply:os.system [x]": "c.yaml:1:4: a: tags such as "
    "tag:yaml.org,2002:python/object/apply:os.system are not allowed",
    "a: &x {b: 1}\nc: {<<: *x}": "c.yaml:2:5: c: merge keys (<<) are not supported (write the "
    "keys out)",
    "a: *nowhere": "c.yaml:1:4: a: no anchor &nowhere stands before this alias",
    "a: &x [*x]": "c.yaml:1:8: a[0]: no anchor &x stands before this alias",
    "a: .nan": "c.yaml:1:4: a: .nan is not a finite number (quote it if it is text)",
    "a: -.inf": "c.yaml:1:4: a: -.inf is not a finite number (quote it if it is text)",
    "a: 1e999": "c.yaml:1:4: a: 1e999 is not a finite number (quote it if it is text)",
    "a:\n\tb: 1": "c.yaml:2:1: indent with spaces, not with a tab",
    "a: @x": "c.yaml:1:4: text that starts with '@' needs quotes",
    "a: \x01": "c.yaml:1:4: the character U+0001 is not allowed; expected YAML text",
    "a: \x00": "c.yaml: the file is binary; expected YAML text",
    "a: \ud800": "c.yaml: the file is not Unicode text",
}


def first_line(text: str) -> str:
    with pytest.raises(UserError) as caught:
        load(text, "c.yaml")
    return str(caught.value).splitlines()[0]


@pytest.mark.parametrize(("text", "message"), REFUSED.items(), ids=map(repr, REFUSED))
def test_what_is_no_cluster_file_is_refused_with_its_place(text: str, message: str) -> None:
    assert first_line(text) == message


def test_the_line_is_shown_with_a_caret_beneath_the_place() -> None:
    with pytest.raises(UserError) as caught:
        load("a: 1\nbb: !tag 2\n", "c.yaml")
    assert str(caught.value) == (
        "c.yaml:2:5: bb: tags such as !tag are not allowed\n    2 | bb: !tag 2\n      |     ^^^^^^"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2:1", "2:1"),
        ("12:30:45", "12:30:45"),
        ("yes", "yes"),
        ("off", "off"),
        ("2026-01-01", "2026-01-01"),
        ("010", "010"),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("False", False),
        ("-7", -7),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("'7'", "7"),
        ("=", "="),
        ("[1, a]", [1, "a"]),
        ("{b: 1}", {"b": 1}),
    ],
)
def test_scalars_follow_the_core_schema_only(text: str, value: object) -> None:
    found = load(f"a: {text}", "c.yaml").value["a"]
    assert (found, type(found)) == (value, type(value))


def test_each_key_and_value_knows_its_place() -> None:
    marks = load("a: 1\nb:\n  c: [x, {d: 2}]\n", "c.yaml").marks
    assert marks.where(("b", "c", 1, "d")) == "c.yaml:3:14: b.c[1].d"
    assert marks.where(("b", "c", 1, "d"), at_key=True) == "c.yaml:3:11: b.c[1].d"
    assert marks.where(("b", "missing", "deep")) == "c.yaml:2:1: b.missing.deep"
    assert marks.where(("missing",)) == "c.yaml: missing"


def test_billion_laughs_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert first_line("\n".join(lines)) == "c.yaml:4:5: the file expands to more than 20,000 values"


def test_aliases_within_bounds_are_expanded() -> None:
    assert load("a: &x {b: 1}\nc: *x\n", "c.yaml").value == {"a": {"b": 1}, "c": {"b": 1}}


@pytest.mark.parametrize(
    "nest",
    [
        "a: " + "[" * 100_000,
        "a: " + "{a: " * 50_000,
        "- " * 50_000,
        "\n".join(" " * n + "a:" for n in range(1000)),
    ],
)
def test_deep_nesting_is_refused_without_recursion(nest: str) -> None:
    with pytest.raises(UserError):
        load(nest, "c.yaml")


def test_aliases_cannot_hide_deep_nesting() -> None:
    lines = ["a0: &a0 [[[[[[x]]]]]]"] + [f"a{n}: &a{n} [[[[[[*a{n - 1}]]]]]]" for n in range(1, 6)]
    assert "nested deeper than 24 levels" in first_line("\n".join(lines))


def test_absurd_sizes_are_refused_and_shortened() -> None:
    assert (
        first_line("a: " + "x" * 2**20)
        == "c.yaml: the file has 1,048,579 characters; a cluster file has a page"
    )
    long = first_line("a: " + "9" * 5000)
    assert long == "c.yaml:1:4: a: a number of 5,000 characters (quote it if it is text)"
    with pytest.raises(UserError) as caught:
        load("k" * 1000 + ": !t x", "c.yaml")
    assert max(map(len, str(caught.value).splitlines())) < 250


def outcome(text: str) -> str:
    """Return "mapping", or the place that the error names."""
    try:
        return "mapping" if isinstance(load(text, "c.yaml").value, dict) else "something else"
    except UserError as error:
        return error.where.split(":")[0]


@settings(deadline=None)
@given(st.text())
def test_random_text_gives_a_mapping_or_a_user_error(text: str) -> None:
    assert outcome(text) in ("mapping", "c.yaml")


@settings(deadline=None)
@given(st.text(alphabet="ab:-?!&*<>|'\"[]{},#%@`~ \n\t0.e"))
def test_random_yaml_marks_give_a_mapping_or_a_user_error(text: str) -> None:
    assert outcome(text) in ("mapping", "c.yaml")


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.text(alphabet="abc xyz", max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(alphabet="abc", min_size=1), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(alphabet="abc", min_size=1), values, min_size=1, max_size=5))
def test_what_pyyaml_writes_is_read_back(value: dict[str, object]) -> None:
    assert load(yaml.safe_dump(value), "c.yaml").value == value
