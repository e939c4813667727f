"""``eastwest collective``: the table that nccl-tests should print on this cluster."""

from __future__ import annotations

import sys
from types import MappingProxyType
from typing import Annotated

import typer

from eastwest.cli.common import ClusterFile, Format, Json, Overlays, command

# Two benchmarks of nccl-tests whose names differ from the operation's.
NCCL_TESTS_NAMES = MappingProxyType({"sendrecv": "send_receive", "alltoall": "all_to_all"})


@command
def collective(
    operation: Annotated[
        str,
        typer.Argument(
            help="all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all or "
            "send_receive (sendrecv of nccl-tests).",
        ),
    ],
    file: ClusterFile,
    begin: Annotated[
        str, typer.Option("-b", "--minbytes", help="Smallest size; K, M and G are powers of two.")
    ] = "8",
    end: Annotated[str, typer.Option("-e", "--maxbytes", help="Largest size.")] = "8G",
    factor: Annotated[
        float, typer.Option("-f", "--stepfactor", help="Each size is the last one times this.")
    ] = 2.0,
    step: Annotated[
        str, typer.Option("-i", "--stepbytes", help="Each size is the last one plus this.")
    ] = "",
    datatype: Annotated[
        str, typer.Option("-d", "--datatype", help="Element type, such as float or bfloat16.")
    ] = "float",
    gpus: Annotated[
        int,
        typer.Option("-n", "--gpus", help="Only so many GPUs, server by server; 0: all.", min=0),
    ] = 0,
    ranks_per_node: Annotated[
        int,
        typer.Option(
            "--ranks-per-node",
            help="Ranks on each server, as mpirun starts them; 0: one a GPU.",
            min=0,
        ),
    ] = 0,
    algorithm: Annotated[
        str, typer.Option("--algorithm", help="Instead of NCCL's choice, such as ring or tree.")
    ] = "",
    protocol: Annotated[
        str, typer.Option("--protocol", help="Instead of NCCL's choice: ll, ll128 or simple.")
    ] = "",
    technology: Annotated[
        str,
        typer.Option(
            "--technology",
            help="Instead of the file's network, such as tcp-100g (eastwest facts technology).",
        ),
    ] = "",
    overlay: Overlays = None,
    format: Format = "table",
    json: Json = False,
) -> None:
    """Predict a collective at each size, in nccl-tests' columns plus NCCL's choice.

    Example: eastwest collective all_reduce cluster.yaml -b 8 -e 8G -f 2
    """
    from eastwest.cli.common import chosen_format, emit
    from eastwest.spec.cluster import load_cluster
    from eastwest.study.collectives import predict, sizes
    from eastwest.units import parse_nccl_size

    form = chosen_format(format, json)
    increment = parse_nccl_size(step) if step else 0
    wanted = list(
        sizes(parse_nccl_size(begin), parse_nccl_size(end), None if step else factor, increment)
    )
    name = operation.replace("-", "_").lower()
    name = NCCL_TESTS_NAMES.get(name, name)
    run = predict(
        load_cluster(file, overlay or ()),
        name,
        wanted,
        datatype,
        gpus,
        algorithm,
        protocol,
        technology,
    )
    if form == "table":
        sys.stdout.write(run.text())
    else:
        emit([run.table()], form)
