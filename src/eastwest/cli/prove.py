"""``eastwest prove``: whether a collective's schedule does what the collective promises."""

from __future__ import annotations

from typing import Annotated

import typer

from eastwest.cli.common import Format, Json, command


@command
def prove(
    what: Annotated[
        str,
        typer.Argument(metavar="ALGORITHM|FILE.xml", help="Such as ring, or an MSCCL XML file."),
    ],
    ranks: Annotated[int, typer.Option("--ranks", "-n", help="GPUs.", min=1)] = 8,
    nodes: Annotated[
        int, typer.Option("--nodes", help="NVLink domains; 0: of as many GPUs, at most 8.", min=0)
    ] = 0,
    chunks: Annotated[
        int, typer.Option("--chunks", help="Of the buffer; 0: one a GPU and channel.", min=0)
    ] = 0,
    channels: Annotated[int, typer.Option("--channels", help="Channels.", min=1)] = 2,
    format: Format = "table",
    json: Json = False,
) -> int:
    """Prove a schedule by carrying it out with symbols; exit code 1 if it is refuted.

    Examples: eastwest prove ring --ranks 24 · eastwest prove allreduce.xml
    """
    from eastwest.cli.common import chosen_format, emit
    from eastwest.study.proofs import of_algorithm, of_file, proofs_table

    form = chosen_format(format, json)
    if what.endswith(".xml"):
        verdicts = [of_file(what)]
    else:
        verdicts = of_algorithm(what, ranks, nodes, chunks, channels)
    emit([proofs_table(what, verdicts)], form)
    return 0 if all(verdict.proven for verdict in verdicts) else 1
