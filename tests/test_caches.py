"""A process that lives long (a notebook, a sweep) stays level: every cache has a bound, and nothing
else is kept."""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import Any

import yaml

import eastwest
from eastwest.spec.cluster import parse_cluster
from eastwest.study.compare import compare

EXAMPLE = Path(__file__).parents[1] / "examples/small-4xa100.yaml"


def caches() -> dict[str, functools._lru_cache_wrapper[Any]]:
    """Return every cached function of the package."""
    found = {}
    for module in pkgutil.walk_packages(eastwest.__path__, "eastwest."):
        if not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, functools._lru_cache_wrapper):
                    found[f"{value.__module__}.{name}"] = value
    return found


def test_every_cache_that_takes_something_has_a_bound() -> None:
    found = caches()
    assert len(found) > 5
    for name, cache in found.items():
        if inspect.signature(cache).parameters:
            assert cache.cache_parameters()["maxsize"], f"{name} grows without end"


def test_comparisons_leave_nothing_behind_but_what_is_cached() -> None:
    text = yaml.safe_load(EXAMPLE.read_text())
    del text["gpus"]

    def run(servers: int) -> None:
        memory = {"gpu.a100-80-sxm.memory_bytes": 81e9 + servers}
        job = text["job"] | {"parallel": "auto", "global_batch": 64 * servers}
        compare(
            parse_cluster(
                yaml.safe_dump(text | {"servers": servers, "job": job, "overrides": memory})
            )
        )

    def living() -> int:
        for cache in caches().values():
            cache.cache_clear()
        gc.collect()
        return len(gc.get_objects())

    run(2)
    before = living()
    for servers in range(3, 13):
        run(servers)
    assert living() - before < 200
