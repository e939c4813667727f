"""The entry point of the installed program. One idea: nothing is imported before an interrupt is
caught."""

from __future__ import annotations


def run() -> None:
    """Run the command line and leave with its exit code."""
    try:
        from eastwest.cli.ending import mend_streams, outcome

        mend_streams()
        code = outcome(_app)
    except KeyboardInterrupt:  # so early, or so late, that nobody else could catch it
        code = 130
    raise SystemExit(code)


def _app() -> None:
    from eastwest.cli.app import app

    app()
