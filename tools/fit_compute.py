"""Fit the global compute constants on measured training steps, once, and print the rows of
``compute.csv``.

    python tools/fit_compute.py FOLDER [--write]

FOLDER holds the tables of measured steps (training_a100_multi_node.csv,
training_a100_single_node.csv, training.csv). Coordinate descent on the weighted mean of absolute
log errors. Constants stay within the bounds stated here; none is fitted per row. The network is the
plain one of ``eastwest.training.published``, so that only computing is fitted.
"""

from __future__ import annotations

import csv
import math
import statistics
import sys
from pathlib import Path

from eastwest.catalog.load import COLUMNS, catalog
from eastwest.catalog.world import World
from eastwest.training.published import Judged, Row, judge, read_rows

FILE = Path(__file__).parent.parent / "src/eastwest/catalog/data/compute.csv"
TABLES = ("training_a100_multi_node.csv", "training_a100_single_node.csv", "training.csv")
# What plain networks reach of their line rates, and a collective's step and launch (NCCL, medians
# of public tables).
NETWORK = {"scaleup_share": 0.77, "nic_share": 0.9, "step_s": 2e-6, "launch_s": 1e-5}
# entry, attribute, least, most: what may be fitted and how far.
FREE = [
    ("ampere", "gemm_share", 0.72, 0.9),
    ("ampere", "attention_share", 0.35, 0.65),
    ("hopper", "gemm_share", 0.6, 0.82),
    ("hopper", "gemm_fp8_share", 0.5, 0.75),
    ("hopper", "attention_share", 0.33, 0.65),
    ("blackwell", "gemm_share", 0.55, 0.85),
    ("blackwell", "gemm_fp8_share", 0.45, 0.8),
    ("blackwell", "attention_share", 0.3, 0.6),
    ("all", "gemm_pad", 100.0, 400.0),
    ("all", "kernel_s", 1e-6, 6e-6),
    ("all", "host_layer_s", 1e-4, 1e-3),
    ("all", "host_moe_s", 2e-4, 4e-3),
    ("all", "step_s", 1e-3, 1e-1),
    ("all", "overlap_cost", 0.05, 0.3),
]
Values = dict[tuple[str, str, str], float]


def predict(rows: list[Row], values: Values) -> list[Judged]:
    """Predict rows with constants replaced."""
    return judge(rows, world=World(catalog(), values), **NETWORK)


def system(row: Row) -> str:
    """Return what a row shares with its like: its table, and in the table of named models its
    publication."""
    return " ".join(row.label.split(" ")[1:2]) or row.table


def weigh(rows: list[Row]) -> list[float]:
    """Return each row's weight: all tables alike, and in them a publication by the square root of
    its rows."""
    systems = [(row.table, system(row)) for row in rows]
    many = {name: systems.count(name) for name in set(systems)}
    total = {
        table: sum(math.sqrt(n) for (t, _), n in many.items() if t == table) for table, _ in many
    }
    return [1.0 / math.sqrt(many[name]) / total[name[0]] for name in systems]


def loss(values: Values, rows: list[Row], weights: list[float]) -> float:
    """Return the weighted mean absolute log error."""
    judged = predict(rows, values)
    return sum(w * abs(math.log1p(j.error)) for w, j in zip(weights, judged, strict=True)) / sum(
        weights
    )


def descend(rows: list[Row], rounds: int = 12) -> Values:
    """Move one constant at a time by a shrinking step as long as that helps."""
    weights = weigh(rows)
    values = {
        ("compute", id, name): float(catalog().fact("compute", id, name).value)
        for id, name, _, _ in FREE
    }
    best, step = loss(values, rows, weights), 0.25
    for _ in range(rounds):
        before = best
        for id, name, least, most in FREE:
            key = ("compute", id, name)
            for factor in (1 + step, 1 / (1 + step)):
                tried = {**values, key: min(most, max(least, values[key] * factor))}
                now = loss(tried, rows, weights)
                if now < best - 1e-9:
                    best, values = now, tried
        step *= 0.6 if best > before * 0.998 else 1.0
        if step < 0.01:
            break
    return values


def write(values: Values) -> None:
    """Put the fitted values into the catalog's file; ranges are widened to hold the value."""
    with FILE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        value = values.get(("compute", row["id"], row["attribute"]))
        if value is not None:
            row["value"], row["checked"] = f"{value:.4g}", "fitted"
            row["low"] = f"{min(float(row['low']), value * 0.95):.3g}"
            row["high"] = f"{max(float(row['high']), value * 1.05):.3g}"
    with FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def report(tables: dict[str, list[Row]], values: Values) -> str:
    """Return the median and worst error of each table."""
    lines = []
    for name, rows in tables.items():
        errors = [abs(j.error) for j in predict(rows, values)]
        lines.append(
            f"{name:32} {len(rows):4} rows, median {statistics.median(errors):.1%}, worst "
            f"{max(errors):.0%}\n"
        )
    return "".join(lines)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    tables = {name: read_rows(folder / name, World(catalog())) for name in TABLES}
    sys.stderr.write(report(tables, {}))
    # Every third row of the single-node table, which has many alike.
    chosen = [
        row for name, rows in tables.items() for row in (rows[::3] if "single" in name else rows)
    ]
    fitted = descend(chosen)
    sys.stderr.write(report(tables, fitted))
    for (_, id, name), value in fitted.items():
        sys.stdout.write(f"{id:12} {name:24} {value:.4g}\n")
    if "--write" in sys.argv:
        write(fitted)
