"""``eastwest facts``: the constants of the world that eastwest reasons with, each with range, unit
and source."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from eastwest.cli.common import Format, Json, command


@command
def facts(
    pattern: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD]...",
            help="A kind, the name of an entry, or words that kind, name or fact contain.",
        ),
    ] = None,
    sources: Annotated[
        bool, typer.Option("--sources", help="Add each fact's source, and whether it was checked.")
    ] = False,
    format: Format = "table",
    json: Json = False,
) -> None:
    """List the kinds of the catalog, a kind's entries, or an entry's facts.

    With --format json, csv or md every fact that matches, with all that is known of it.

    Examples: eastwest facts server · eastwest facts dgx-h100 --sources · eastwest facts price
    --format csv
    """
    from eastwest.catalog.load import catalog
    from eastwest.cli.common import chosen_format, emit, terminal_width
    from eastwest.study.facts import entries_table, facts_table, find, kinds_table, lines

    form, known, words = chosen_format(format, json), catalog(), " ".join(pattern or [])
    if form != "table":
        emit([facts_table(find(words, known))], form)
    elif not words:
        emit([kinds_table(known)], form)
    elif words in known.entries and not sources:
        emit([entries_table(known, words)], form)
    else:
        text = "\n".join(lines(find(words, known), terminal_width(), sources))
        more = "" if sources else "--sources adds where each comes from.\n"
        sys.stdout.write(f"{text}\n{more}")
