"""The JSON Schema of the cluster file, for completion in editors. One idea: derived from the
models, never written.

Topologies are not known here; the caller hands over their parameters' models (``{name:
module.Params}``).
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from eastwest.catalog.load import catalog
from eastwest.catalog.technology import Network, words
from eastwest.catalog.world import shared_nominal
from eastwest.spec.cluster import Cluster, ComputeNetwork

DRAFT = "https://json-schema.org/draft/2020-12/schema"
NAMED = {"server": "server", "switch": "switch", "nic": "nic"}  # key -> catalog kind

Schema = dict[str, Any]


def json_schema(topology_params: dict[str, type[BaseModel]]) -> Schema:
    """Return the schema (draft 2020-12) of the cluster file.

    ``topology_params`` gives each topology's name and parameters; a key of one topology is refused
    under another.
    """
    schema = Cluster.model_json_schema(by_alias=True)
    definitions: Schema = schema["$defs"]
    compute = definitions["ComputeNetwork"]
    del compute["properties"]["options"]
    _add_topologies(compute, definitions, topology_params)
    for definition, network in (
        (compute, Network.COMPUTE),
        (definitions["StorageNetwork"], Network.STORAGE),
    ):
        definition["properties"]["technology"]["enum"] = list(words(shared_nominal(), network))
    for definition in (schema, *definitions.values()):
        _add_names(definition)
    stripped: Schema = _without_titles(schema)
    return {"$schema": DRAFT, "title": "eastwest cluster file", **stripped}


def _add_topologies(
    compute: Schema, definitions: Schema, topology_params: dict[str, type[BaseModel]]
) -> None:
    properties = compute["properties"]
    properties["topology"]["enum"] = sorted(topology_params)
    schemas = {
        name: params.model_json_schema(by_alias=True)
        for name, params in sorted(topology_params.items())
    }
    users: dict[str, list[str]] = {}
    for name, schema in schemas.items():
        definitions.update(schema.get("$defs", {}))
        for key in schema.get("properties", {}):
            users.setdefault(key, []).append(name)
    for key, names in users.items():
        if key not in properties:
            description = schemas[names[0]]["properties"][key].get("description", key)
            properties[key] = {"description": f"{description} (of {', '.join(names)})"}
    compute["allOf"] = [_under(name, schema, users) for name, schema in schemas.items()]


def _under(name: str, schema: Schema, users: dict[str, list[str]]) -> Schema:
    """Return the rule for one topology: its own keys by their schema, those of others refused."""
    own = schema.get("properties", {})
    condition: Schema = {"properties": {"topology": {"const": name}}}
    if name != ComputeNetwork.model_fields["topology"].default:
        condition["required"] = ["topology"]
    rules = {key: own.get(key, False) for key in users}
    then: Schema = {"properties": rules}
    if schema.get("required"):
        then["required"] = schema["required"]
    return {"if": condition, "then": then}


def _add_names(definition: Schema) -> None:
    for key, kind in NAMED.items():
        found = definition.get("properties", {}).get(key)
        if found:
            names = list(catalog().ids(kind))
            more = [o for o in found.get("anyOf", ()) if o.get("type") in ("null", "object")]
            if key == "server":
                # Also the path of a file that describes one.
                more.append({"type": "string", "pattern": r"/|\.ya?ml$"})
            found["anyOf"] = [{"enum": names}, *more]
            for extra in ("type", "minLength", "maxLength"):
                found.pop(extra, None)
    model = definition.get("properties", {}).get("model")
    if model:
        model["examples"] = list(catalog().ids("model"))


def _without_titles(node: Any) -> Any:
    """Drop the titles that pydantic derives from names; put each description on one line."""
    if isinstance(node, dict):
        return {
            key: " ".join(value.split())
            if key == "description" and isinstance(value, str)
            else _without_titles(value)
            for key, value in node.items()
            if not (key == "title" and isinstance(value, str))
        }
    return [_without_titles(item) for item in node] if isinstance(node, list) else node
