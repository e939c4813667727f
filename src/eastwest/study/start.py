"""How does one begin? One idea: a template is a cluster file that works, with comments that
teach."""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path

from eastwest.errors import UserError, unknown_name
from eastwest.files import check_output, write_text
from eastwest.table import dump_json

SCHEMA_FILE = "cluster.schema.json"


def template_names() -> list[str]:
    """Return the names of the templates, sorted."""
    files = resources.files("eastwest.spec").joinpath("templates").iterdir()
    return sorted(f.name.removesuffix(".yaml") for f in files if f.name.endswith(".yaml"))


def template_text(name: str) -> str:
    """Return a template's text. Raises UserError with the nearest name."""
    if name not in template_names():
        raise unknown_name("template", name, template_names())
    return (
        resources.files("eastwest.spec")
        .joinpath("templates", f"{name}.yaml")
        .read_text(encoding="utf-8")
    )


def cluster_schema() -> str:
    """Return the JSON Schema of the cluster file as JSON text."""
    from eastwest.fabric.topology import TOPOLOGIES
    from eastwest.spec.schema import json_schema

    return dump_json(json_schema({name: TOPOLOGIES[name].Params for name in TOPOLOGIES}))


def start(file: Path, text: str, force: bool, schema: bool) -> None:
    """Write a cluster file, and its schema beside it if wanted; the file then points editors to the
    schema.

    Raises UserError if the file exists and ``force`` is not given, or cannot be written.
    """
    if not force and (file.exists() or file.is_symlink()):
        raise UserError("the file exists already", where=str(file), hint="--force overwrites it")
    beside = file.parent / SCHEMA_FILE
    if schema:
        if file.name == SCHEMA_FILE:
            raise UserError("the cluster file cannot have its schema's name", where=str(file))
        check_output(file)
        write_text(beside, cluster_schema())
    # Editors complain of a schema that is not there, so the line is written only where it is.
    line = f"# yaml-language-server: $schema={SCHEMA_FILE}\n" if beside.exists() else ""
    write_text(file, line + text)


def next_steps(file: Path) -> str:
    """Return what to do now, for the person who has just got a cluster file."""
    name = shlex.quote(str(file))
    return (
        f"Wrote {file}. Edit it, then:\n"
        f"  eastwest check {name}      is it consistent?\n"
        f"  eastwest compare {name}    which network must the data plane be, and why?"
    )
