"""The published JSON Schema: it is what the models say, and it agrees with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from eastwest.fabric.topology import TOPOLOGIES
from eastwest.spec.cluster import Cluster, compute_keys
from eastwest.spec.marked_yaml import load
from eastwest.study.start import cluster_schema, template_names, template_text

ROOT = Path(__file__).parents[2]
SCHEMA: dict[str, Any] = json.loads(cluster_schema())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
EXAMPLES = {
    path.name: path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "examples").glob("*.yaml"))
}
TEMPLATES = {name: template_text(name) for name in template_names()}


def errors(text: str) -> list[str]:
    return [error.json_path for error in VALIDATOR.iter_errors(load(text, "c.yaml").value)]


def test_the_schema_is_a_schema_of_its_draft() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_the_published_schema_is_what_the_models_say() -> None:
    published = (ROOT / "docs" / "cluster.schema.json").read_text(encoding="utf-8")
    assert published == cluster_schema(), (
        "write it anew: eastwest init - --schema > docs/cluster.schema.json"
    )


@pytest.mark.parametrize(
    "text", [*EXAMPLES.values(), *TEMPLATES.values()], ids=[*EXAMPLES, *TEMPLATES]
)
def test_every_example_and_template_fits_the_schema(text: str) -> None:
    assert errors(text) == []


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("servers: 128", "servers: 0", "$.servers"),
        ("server: dgx-h100", "server: dgx-h1000", "$.server"),
        ("switch: qm9700", "switch: qm9800", "$.networks.compute.switch"),
        ("gpudirect: true", "rate: 400G", "$.networks.compute.rate"),
        ("gpudirect: true", "gpudirekt: true", "$.networks.compute"),
        ("gpudirect: true", "servers_per_unit: 0", "$.networks.compute.servers_per_unit"),
        ("topology: rail-optimised", "topology: ring", "$.networks.compute.topology"),
        (
            "topology: rail-optimised",
            "topology: fat-tree\n    servers_per_unit: 32",
            "$.networks.compute",
        ),
        ("precision: bf16", "precision: fp4", "$.job.precision"),
        ("{tensor: 8, pipeline: 4}", "{tensor: 0}", "$.job.parallel"),
        ("{tensor: 8, pipeline: 4}", "best", "$.job.parallel"),
    ],
)
def test_editors_see_the_mistakes_that_check_would_tell(old: str, new: str, path: str) -> None:
    text = EXAMPLES["llama3-70b-1024xh100.yaml"].replace(old, new, 1)
    assert new in text
    assert errors(text) == [path]


def test_every_key_has_a_description() -> None:
    for name, definition in {"cluster": SCHEMA, **SCHEMA["$defs"]}.items():
        for key, rule in definition.get("properties", {}).items():
            assert rule.get("description"), f"{name}.{key}"


def test_no_topology_takes_a_key_that_is_every_networks() -> None:
    for name in TOPOLOGIES:
        taken = {field.alias or key for key, field in TOPOLOGIES[name].Params.model_fields.items()}
        assert not taken & set(compute_keys()), name


def test_the_schema_has_the_keys_of_the_model() -> None:
    assert set(SCHEMA["properties"]) == {
        field.alias or name for name, field in Cluster.model_fields.items()
    }
