"""``eastwest init``: a commented cluster file to start from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from eastwest.cli.common import command
from eastwest.cli.ending import say
from eastwest.errors import UserError


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
    from_: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Describe the server that this file shows: nvidia-smi topo -m, or the XML of "
            "NCCL_TOPO_DUMP_FILE; may be given several times.",
        ),
    ] = None,
    gpu: Annotated[
        str, typer.Option("--gpu", help="With --from: the GPU, where the files do not name it.")
    ] = "",
    nic: Annotated[
        str, typer.Option("--nic", help="With --from: the NIC, where the files do not name it.")
    ] = "",
    servers: Annotated[
        int, typer.Option("--servers", help="With --from: how many servers there are.", min=1)
    ] = 2,
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
    """Write a commented cluster file from a template, or from what your machine prints.

    Examples: eastwest init · eastwest init pod.yaml --template dgx-h100-su ·
    eastwest init mine.yaml --from topo.txt --from topo.xml
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
    if from_:
        from eastwest.study.described import cluster_text

        text = cluster_text(from_, servers, gpu, nic)
    elif gpu or nic:
        raise UserError("--gpu and --nic describe a machine of --from FILE")
    else:
        text = template_text(template)
    if str(file) == "-":
        sys.stdout.write(cluster_schema() if schema else text)
        return
    start(file, text, force, schema)
    say(next_steps(file))
