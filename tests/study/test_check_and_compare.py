"""What ``check`` refuses ``compare`` refuses, in the same words, and the other way round."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eastwest.errors import UserError
from eastwest.spec.cluster import Cluster, parse_cluster
from eastwest.spec.problems import SpecError
from eastwest.study.check import check
from eastwest.study.compare import compare
from eastwest.study.variants import file_technology

ROOT = Path(__file__).parents[2]
FILES: list[dict[str, Any]] = [
    {k: v for k, v in yaml.safe_load(path.read_text(encoding="utf-8")).items() if k != "gpus"}
    for path in sorted((ROOT / "examples").glob("*.yaml"))
    if "131072" not in path.name
]

degrees = st.integers(1, 12) | st.sampled_from([16, 32, 64])
parallel = st.just("auto") | st.dictionaries(
    st.sampled_from(["tensor", "pipeline", "data", "expert", "context"]), degrees, max_size=3
)
jobs = st.fixed_dictionaries(
    {},
    optional={
        "parallel": parallel,
        "global_batch": st.integers(1, 40) | st.sampled_from([64, 512, 1000, 1024]),
        "micro_batch": st.integers(1, 8),
        "sequence": st.sampled_from([1, 1000, 4096, 131072, 10**7]),
        "model": st.sampled_from(["llama-3-8b", "llama-3-405b", "mixtral-8x7b", "none.json"]),
    },
)
networks = st.fixed_dictionaries(
    {},
    optional={
        "switch": st.sampled_from(["qm9700", "qm8700", "sn5600", "sn2201", "sn4600"]),
        "technology": st.sampled_from(["infiniband", "roce", "ethernet-tcp", "slingshot", "efa"]),
        "topology": st.sampled_from(["fat-tree", "rail-only", "rail-optimised"]),
        "nics": st.integers(1, 16),
        "mtu": st.sampled_from([1500, 4096, 9000]),
    },
)
storages = st.none() | st.fixed_dictionaries(
    {
        "technology": st.sampled_from(["nvmeof-rdma", "nvmeof-tcp"]),
        "targets": st.sampled_from([1, 16, 65_536]),
    }
)


@st.composite
def clusters(draw: st.DrawFn) -> dict[str, Any]:
    file = draw(st.sampled_from(FILES))
    compute = file["networks"]["compute"] | draw(networks)
    return file | {
        "servers": draw(st.integers(1, 200)),
        "networks": {"compute": compute, "storage": draw(storages)},
        "job": file["job"] | draw(jobs),
        "expect": [],
    }


def refusal(ask: Callable[[Cluster], object], text: str) -> set[str]:
    """Return all that is refused; nothing if it is answered."""
    try:
        ask(parse_cluster(text))
    except SpecError as error:
        return {str(problem) for problem in error.problems}
    except UserError as error:
        return {str(error)}
    return set()


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters())
def test_what_one_refuses_the_other_refuses_in_the_same_words(file: dict[str, Any]) -> None:
    def own_network(cluster: Cluster) -> object:
        return compare(cluster, [file_technology(cluster)])

    text = yaml.safe_dump(file)
    compared, checked = refusal(own_network, text), refusal(check, text)
    # Where the networks are wrong, compare ends there; check goes on to the job.
    assert compared <= checked
    assert bool(compared) == bool(checked)
