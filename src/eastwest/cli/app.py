"""The command line: ``eastwest VERB …``. One thin file a verb; each imports what it needs when it
runs."""

from __future__ import annotations

import importlib
from typing import Annotated

import typer

app = typer.Typer(
    name="eastwest",
    help="Decide, design, simulate, verify and measure the network between the GPUs of a "
    "training cluster.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: eastwest init cluster.yaml && eastwest compare cluster.yaml",
)

# In the order of the help page. Each module has a function of the verb's name, documented and
# wrapped by @command.
VERBS = ("init", "check", "compare", "explain", "collective", "prove", "facts")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"eastwest {version('eastwest')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and leave."
        ),
    ] = False,
) -> None:
    """Decide, design, simulate, verify and measure the network between the GPUs of a training
    cluster."""


for _verb in VERBS:
    app.command(name=_verb)(getattr(importlib.import_module(f"eastwest.cli.{_verb}"), _verb))
