"""``eastwest compare``: which network must the data plane be, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eastwest.cli.common import ClusterFile, Format, Json, Overlays, Seed, command
from eastwest.cli.ending import EXIT_VERDICT, say

if TYPE_CHECKING:
    from eastwest.study.comparison import Comparison
    from eastwest.study.expectations import Verdict


@command
def compare(
    file: ClusterFile,
    technologies: Annotated[
        str,
        typer.Option(
            "--technologies",
            metavar="A,B",
            help="Only these (eastwest facts technology lists them).",
        ),
    ] = "",
    uncertainty: Annotated[
        bool, typer.Option("--uncertainty", help="Add 5-95 % bands from drawn worlds.")
    ] = False,
    worlds: Annotated[
        int, typer.Option("--worlds", help="How many worlds to draw.", min=10, max=100_000)
    ] = 200,
    seed: Seed = 0,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="PAGE", help="Write the report to this file.")
    ] = None,
    overlay: Overlays = None,
    format: Format = "table",
    json: Json = False,
) -> int:
    """Compare network technologies for a cluster and its job; recommend one, with the reasons in
    seconds.

    Exit code 1 if an expectation of the file does not hold.

    Examples: eastwest compare cluster.yaml --html report.html · eastwest compare cluster.yaml
    --uncertainty
    """
    from eastwest.cli.common import chosen_format, progress
    from eastwest.files import check_output, write_text
    from eastwest.spec.cluster import load_cluster
    from eastwest.study.compare import compare as study
    from eastwest.study.expectations import verdicts

    form = chosen_format(format, json)
    cluster = load_cluster(file, overlay or ())
    if html:
        check_output(html)
    names = [name.strip() for name in technologies.split(",") if name.strip()]
    with progress("drawing worlds") as tick:
        result = study(cluster, names, worlds if uncertainty else 0, seed, tick)
    judged = verdicts(cluster)
    if html:
        from eastwest.report.pages import comparison_page

        write_text(html, comparison_page(result))
        say(f"eastwest: wrote {html}")
    _show(result, judged, form)
    return 0 if all(v.holds for v in judged) else EXIT_VERDICT


def _show(result: Comparison, judged: tuple[Verdict, ...], form: str) -> None:
    from eastwest.cli.common import console, emit

    if form == "json":
        from eastwest.study.record import record
        from eastwest.table import dump_json

        sys.stdout.write(dump_json(record(result, judged)))
        return
    if form != "table":
        emit([result.table], form)
        return
    out = console()
    out.print(result.cluster_line, style="bold", markup=False)
    emit([result.table], form)
    out.print(result.choice, style="bold", markup=False)
    for reason in result.reasons:
        out.print(f"  {reason.seconds:8.3f} s  {reason.text}", markup=False)
    for remark in result.remarks:
        out.print(f"- {remark}", markup=False)
    for verdict in judged:
        out.print(verdict.line, style="green" if verdict.holds else "red", markup=False)
