"""``python -m eastwest``: the command line without its installed name."""

from eastwest.cli.main import run

if __name__ == "__main__":
    run()
