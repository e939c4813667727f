"""``eastwest check``: is a cluster file consistent, and was it understood as meant?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eastwest.cli.common import Json, Overlays, command
from eastwest.cli.ending import say
from eastwest.errors import UserError

if TYPE_CHECKING:
    from eastwest.study.check import Check

Outcome = tuple[Path, "Check | None", UserError | None]


@command
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The cluster files.")],
    overlay: Overlays = None,
    json: Json = False,
) -> int:
    """Check cluster files: names, units, and whether what they describe can be built and can run
    the job.

    Prints what was understood of each file; exit code 2 if something is wrong in one.
    Examples: eastwest check cluster.yaml · eastwest check examples/*.yaml --json
    """
    outcomes = [_outcome(file, overlay or []) for file in files]
    if json:
        from eastwest.table import dump_json

        sys.stdout.write(dump_json([_record(outcome) for outcome in outcomes]))
    for _, found, error in outcomes:
        if error is not None:
            say(str(error))
        elif found is not None and not json:
            _show(found)
    return UserError.exit_code if any(error is not None for _, _, error in outcomes) else 0


def _outcome(file: Path, overlays: list[Path]) -> Outcome:
    from eastwest.spec.cluster import load_cluster
    from eastwest.study.check import check

    try:
        return file, check(load_cluster(file, overlays)), None
    except UserError as error:
        return file, None, error


def _show(found: Check) -> None:
    rows = found.table().shown()
    width = max(len(row[0]) for row in rows)
    sys.stdout.write(
        f"✓ {found.line}\n" + "".join(f"  {what:<{width}}  {value}\n" for what, value in rows)
    )


def _record(outcome: Outcome) -> dict[str, Any]:
    from eastwest.spec.problems import SpecError

    file, found, error = outcome
    if found is not None:
        return {"file": str(file), "ok": True, **found.record()}
    problems = error.problems if isinstance(error, SpecError) else [error]
    errors = [{"where": p.where, "what": p.what, "hint": p.hint} for p in problems if p is not None]
    return {"file": str(file), "ok": False, "errors": errors}
