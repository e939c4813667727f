"""Entries of one's own beside the catalog's. One idea: what the catalog lacks is described in the
cluster file, or in a file that is shared, with the catalog's own names of facts.

::

    catalog:
      nic:    {my-nic: {like: cx7-ndr, port_Bps: 200Gb/s}}
      server: {my-box: {gpu: l40s, gpus: 4, nics: 1, nic: my-nic}}

An overlay file (``--overlay FILE``) holds what stands here under ``catalog:``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from eastwest.catalog.load import Catalog, Fact
from eastwest.errors import UserError, nearest, unknown_name
from eastwest.files import read_text
from eastwest.spec.contradictions import contradictions
from eastwest.spec.marked_yaml import load
from eastwest.spec.marks import Path
from eastwest.spec.overrides import read_value
from eastwest.spec.own_server import OwnServer, key_of, server_facts, server_id
from eastwest.spec.parse import attempt
from eastwest.spec.problems import Collector
from eastwest.spec.quantities import describe

KINDS = ("gpu", "nic", "switch", "technology", "server")  # each may name those before it
_PRICED = ("nic", "switch")
_PRICE = "price_USD"


def with_overlays(facts: Catalog, files: tuple[str, ...]) -> Catalog:
    """Return the catalog with the entries of overlay files, one file after the other.

    Raises UserError with all that is wrong in a file, each with its line.
    """
    for file in files:
        marked = load(read_text(file, "overlay"), file)
        collector = Collector(marked.marks)
        facts = with_entries(facts, marked.value, collector, ())
        collector.done()
    return facts


def with_entries(
    facts: Catalog, values: Mapping[str, Any], collector: Collector, base: Path
) -> Catalog:
    """Return the catalog with the entries that a mapping of kinds describes; mistakes are noted."""
    for kind in values:
        if kind not in KINDS:
            wrong = unknown_name("kind", kind, KINDS)
            collector.add((*base, kind), wrong.what, wrong.hint, at_key=True)
    for kind in KINDS:
        entries = values.get(kind)
        if entries is None:
            continue
        if not isinstance(entries, Mapping):
            collector.add((*base, kind), f"expected 'name: description', not {describe(entries)}")
            continue
        for id, said in entries.items():
            path = (*base, kind, id)
            if id in facts.ids(kind):
                what = f"the catalog has a {kind} '{id}' already"
                collector.add(path, what, "choose another name, or use overrides:", at_key=True)
            elif kind == "server":
                facts = with_server(facts, said, collector, path, id)[0]
            else:
                facts = _with_entry(facts, kind, id, said, collector, path)
    return facts


def server_file(facts: Catalog, file: str, collector: Collector, path: Path) -> tuple[Catalog, str]:
    """Return the catalog with the server that a file describes, and its entry's name; mistakes in
    it are noted with its own lines."""
    try:
        marked = load(read_text(file, "server file"), file)
        inner = Collector(marked.marks)
        facts, id = with_server(facts, marked.value, inner, ())
        inner.done()
    except UserError as error:
        collector.take(path, error)
        return facts, ""
    return facts, id


def with_server(
    facts: Catalog, said: object, collector: Collector, path: Path, id: str = ""
) -> tuple[Catalog, str]:
    """Return the catalog with a described server, and its entry's name (empty if it is wrong)."""
    if not isinstance(said, Mapping):
        collector.add(path, f"expected the keys of a server, not {describe(said)}")
        return facts, ""
    before = len(collector.problems)
    own = attempt(OwnServer, dict(said), collector, path)
    if own is None or len(collector.problems) > before:
        return facts, ""
    name = id or server_id(own)
    if not id and name in facts.ids("server"):
        collector.add((*path, "name"), f"the catalog has a server '{name}' already", "rename it")
        return facts, ""
    try:
        described = server_facts(own, facts, collector.marks.name)
    except UserError as error:
        collector.add((*path, error.where), error.what, error.hint)
        return facts, ""
    extended = facts.with_facts(replace(fact, id=name) for fact in described)
    for found in contradictions(extended, name):
        keys = [key_of(attribute) for kind, _, attribute in found.keys if kind == "server"]
        said_key = next((key for key in keys if key in said), keys[0] if keys else "gpu")
        collector.add((*path, said_key), found.what, found.hint)
    return (facts, "") if len(collector.problems) > before else (extended, name)


def _with_entry(
    facts: Catalog, kind: str, id: str, said: object, collector: Collector, path: Path
) -> Catalog:
    if not isinstance(said, Mapping):
        collector.add(path, f"expected 'fact: value', not {describe(said)}")
        return facts
    before = len(collector.problems)
    like = said.get("like")
    if like is not None and like not in facts.ids(kind):
        wrong = unknown_name(kind, str(like), facts.ids(kind))
        collector.add((*path, "like"), wrong.what, wrong.hint)
        return facts
    found = _facts_of(facts, kind, str(like)) if like is not None else {}
    found["name"] = _own(Fact(kind, id, "name", id, 0, 0, "", "", "", ""), id, collector)
    for attribute, value in said.items():
        if attribute == "like":
            continue
        pattern = found.get(attribute) or _pattern(facts, kind, attribute)
        try:
            if pattern is None:
                close = nearest(attribute, _attributes(facts, kind)[0])
                hint = f"did you mean '{close}'?" if close else f"see eastwest facts {kind}"
                raise UserError(f"a {kind} has no fact '{attribute[:80]}'", hint=hint)
            found[attribute] = _own(pattern, read_value(pattern, value, facts), collector)
        except UserError as error:
            collector.add((*path, attribute), error.what, error.hint, at_key=pattern is None)
    missing = [a for a in _attributes(facts, kind)[1] if a not in found]
    if missing and len(collector.problems) == before:
        shown = ", ".join(missing[:20])
        collector.add(
            path,
            f"the {kind} '{id}' lacks {shown}",
            f"or begin with like: {facts.ids(kind)[0]}",
            at_key=True,
        )
    if len(collector.problems) > before:
        return facts
    placed = [
        replace(fact, kind="price" if a == _PRICE else kind, id=id) for a, fact in found.items()
    ]
    return facts.with_facts(placed)


def _own(pattern: Fact, value: float | str, collector: Collector) -> Fact:
    number = float("nan") if isinstance(value, str) else float(value)
    return replace(
        pattern,
        value=value,
        low=number,
        high=number,
        source=collector.marks.name,
        checked="user",
        note="",
    )


def _facts_of(facts: Catalog, kind: str, id: str) -> dict[str, Fact]:
    found = {a: fact for (k, i, a), fact in facts.facts.items() if (k, i) == (kind, id)}
    if kind in _PRICED and facts.has("price", id, _PRICE):
        found[_PRICE] = facts.fact("price", id, _PRICE)
    return found


def _pattern(facts: Catalog, kind: str, attribute: str) -> Fact | None:
    """Return a fact of this name of any entry: it has the unit."""
    of = "price" if kind in _PRICED and attribute == _PRICE else kind
    ids = facts.ids(of)
    return next((facts.fact(of, id, attribute) for id in ids if facts.has(of, id, attribute)), None)


def _attributes(facts: Catalog, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of all facts that entries of a kind have, and of those that all have."""
    sets = [set(_facts_of(facts, kind, id)) for id in facts.ids(kind)]
    every = set.intersection(*sets)
    return tuple(sorted(set.union(*sets))), tuple(sorted(every))
