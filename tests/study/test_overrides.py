"""Any legal value of any fact gives an answer or one clear refusal, whatever is asked of it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eastwest.catalog.legal import attribute
from eastwest.catalog.load import Fact, catalog
from eastwest.errors import UserError
from eastwest.spec.cluster import Cluster, parse_cluster
from eastwest.study.check import check
from eastwest.study.compare import compare
from eastwest.study.explain import default_ends, explain

ROOT = Path(__file__).parents[2]
EXAMPLES = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) | {"expect": []}
    for path in sorted((ROOT / "examples").glob("*.yaml"))
    if "131072" not in path.name  # planning it takes long and finds nothing that others do not
}
FOR_ALL = ("stack", "fitted", "compute", "wire", "packet", "technology", "pcie", "duty", "nccl")
TOO_LONG_s = 300  # on a busy machine an answer takes ten


def facts_of(name: str) -> list[Fact]:
    """Return the facts that an example stands on."""
    file, facts = EXAMPLES[name], catalog().facts
    server = file["server"]
    ids = {server, file["networks"]["compute"]["switch"], file["job"]["model"]}
    ids |= {str(facts["server", server, a].value) for a in ("gpu", "nic")}
    return [f for f in facts.values() if f.kind in FOR_ALL or f.id in ids]


def values_of(fact: Fact) -> st.SearchStrategy[float | str]:
    """Return what a fact may be, its bounds among them."""
    declared = attribute(fact.kind, fact.attribute)
    if declared.type == "flag":
        return st.sampled_from([0.0, 1.0])
    if declared.type == "count":
        return st.integers(int(declared.low), int(declared.high)).map(float)
    if declared.type == "number":
        return st.floats(declared.low, declared.high)
    if declared.type == "numbers":
        count, numbers = len(str(fact.value).split()), st.floats(declared.low, declared.high)
        return st.lists(numbers, min_size=count, max_size=count).map(
            lambda found: " ".join(f"{number:.6g}" for number in found)
        )
    if declared.type in ("choice", "choices"):
        return st.sampled_from(declared.values)
    if declared.type in ("entry", "entries"):
        return st.sampled_from([n for k in declared.values for n in catalog().entries.get(k, (k,))])
    if declared.type == "pairs":
        return st.sampled_from(["0-1:4", "0-0:1", "0-1:0", "0-1:1 1-2:1 0-2:1", "9-3:2", "1-0:3"])
    return st.sampled_from(["x", "-", "{}", '{"factor": 0}', "gpu0=0", "0 0 1 1"])


@st.composite
def overridden(draw: st.DrawFn) -> tuple[str, dict[str, float | str]]:
    """Return an example and legal values of some of its facts."""
    name = draw(st.sampled_from(sorted(EXAMPLES)))
    facts = draw(st.lists(st.sampled_from(facts_of(name)), min_size=1, max_size=3))
    return name, {".".join(fact.key): draw(values_of(fact)) for fact in facts}


@contextmanager
def no_hang() -> Iterator[None]:
    """Fail, instead of waiting for ever, where something does not come to an end."""

    def hangs(*_: object) -> None:
        pytest.fail(f"no answer within {TOO_LONG_s} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(TOO_LONG_s)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def ask(cluster: Cluster) -> None:
    check(cluster)
    compare(cluster)
    explain(cluster, *default_ends(cluster), 8)


@settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(overridden())
def test_any_legal_value_of_any_fact_is_answered_or_refused(
    case: tuple[str, dict[str, float | str]],
) -> None:
    name, overrides = case
    with no_hang():
        try:
            ask(parse_cluster(yaml.safe_dump(EXAMPLES[name] | {"overrides": overrides})))
        except UserError as error:
            refused = str(error)
            assert refused
