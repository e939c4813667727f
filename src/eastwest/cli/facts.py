"""``eastwest facts``: the constants of the world that eastwest reasons with, each with range, unit
and source."""

from __future__ import annotations

from typing import Annotated

import typer

from eastwest.cli.common import Format, Json, command


@command
def facts(
    pattern: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATTERN]...", help="Words that kind, name or attribute contain."),
    ] = None,
    format: Format = "table",
    json: Json = False,
) -> None:
    """List catalog facts: value, range, unit and source.

    Examples: eastwest facts qm9700 · eastwest facts gpu h100 · eastwest facts price --format csv
    """
    from eastwest.catalog.load import catalog
    from eastwest.cli.common import chosen_format, emit
    from eastwest.errors import UserError, nearest
    from eastwest.study.facts import facts_table

    form = chosen_format(format, json)
    words = " ".join(pattern or [])
    found = list(catalog().search(words))
    if not found:
        names = {fact.id for fact in catalog().facts.values()}
        close = nearest(words, names)
        raise UserError(
            f"no fact matches '{words[:80]}'", hint=f"did you mean '{close}'?" if close else ""
        )
    emit([facts_table(found)], form)
