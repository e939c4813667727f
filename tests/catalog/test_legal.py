"""Every attribute is declared, and the catalog itself keeps to what is declared."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastwest.catalog.legal import attribute, require_legal
from eastwest.catalog.load import Fact, catalog
from eastwest.errors import InternalError, UserError


def test_every_fact_of_the_catalog_is_legal_over_its_whole_range() -> None:
    facts = catalog()
    for fact in facts.facts.values():
        values = {fact.value} if isinstance(fact.value, str) else {fact.low, fact.value, fact.high}
        for value in values:
            require_legal(fact.kind, fact.attribute, value, fact.value, facts.entries)


def test_every_number_has_the_unit_that_is_declared() -> None:
    for fact in catalog().facts.values():
        if not isinstance(fact.value, str) and fact.attribute != "price_USD":
            assert fact.unit == attribute(fact.kind, fact.attribute).unit, fact.key


def test_every_attribute_says_what_it_means() -> None:
    for fact in catalog().facts.values():
        assert attribute(fact.kind, fact.attribute).description


def test_an_attribute_without_a_row_is_a_fault_of_ours() -> None:
    with pytest.raises(InternalError, match="declares no colour of a switch"):
        attribute("switch", "colour")


def refusal(fact: Fact, value: float | str) -> str:
    try:
        require_legal(fact.kind, fact.attribute, value, fact.value, catalog().entries)
    except UserError as error:
        return error.what
    return ""


@given(st.floats() | st.text(max_size=20), st.sampled_from(sorted(catalog().facts)))
def test_any_value_is_legal_or_told_what_was_expected(
    value: float | str, key: tuple[str, str, str]
) -> None:
    fact = catalog().facts[key]
    said = refusal(fact, value)
    assert said.startswith("expected ") or isinstance(value, str) or math.isfinite(value)
    assert not said or ", not " in said
