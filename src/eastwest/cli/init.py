"""``eastwest init``: a commented cluster file to start from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from eastwest.cli.common import command
from eastwest.cli.ending import say


@command
def init(
    file: Annotated[
        Path, typer.Argument(metavar="[FILE]", help="The file to write; - for stdout.")
    ] = Path("cluster.yaml"),
    template: Annotated[
        str,
        typer.Option(
            "--template", "-t", metavar="NAME", help="The template; --list shows them all."
        ),
    ] = "llama3-70b-1024xh100",
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Overwrite a file that exists.")
    ] = False,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Also write the JSON Schema beside, for completion in editors (- : only that).",
        ),
    ] = False,
    list: Annotated[bool, typer.Option("--list", help="List the templates and leave.")] = False,
) -> None:
    """Write a commented cluster file from a template.

    Examples: eastwest init · eastwest init pod.yaml --template dgx-h100-su · eastwest init - | less
    """
    from eastwest.study.start import (
        cluster_schema,
        next_steps,
        start,
        template_names,
        template_text,
    )

    if list:
        sys.stdout.write("".join(f"{name}\n" for name in template_names()))
        return
    text = template_text(template)
    if str(file) == "-":
        sys.stdout.write(cluster_schema() if schema else text)
        return
    start(file, text, force, schema)
    say(next_steps(file))
