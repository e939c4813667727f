"""Fit the collectives' global constants on the measured rows, once, and print the rows of
``fitted.csv``.

    python tools/fit_collectives.py [--write | --held-out]

Coordinate descent on the mean of log-errors' absolute values (rows below 16 MiB count a fifth, each
system the same in all, so that no long table rules). Constants stay within the bounds stated here;
none is fitted per row. The bounds keep a step between nodes slower than one inside (NCCL says 14 us
and 3.4 us), which the rows alone do not tell apart.

With ``--held-out`` the systems are dealt into five parts; each part is predicted with constants
fitted on the other four (starting from the catalog's), which tells how far a system that nobody
fitted is off.
"""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

from eastwest.catalog.load import COLUMNS, catalog
from eastwest.catalog.world import World
from eastwest.study.validate import TABLES, LARGE_bytes, Measured, judge, measured

FILE = Path(__file__).parent.parent / "src/eastwest/catalog/data/fitted.csv"
# entry, attribute, least, most: what may be fitted and how far.
FREE = [
    *[(g, "launch_s", 5e-6, 4.5e-5) for g in ("volta", "ampere", "hopper", "blackwell")],
    ("all", "network_share", 0.93, 0.99),
    ("all", "network_step_factor", 0.5, 2.0),
    ("all", "tree_network_share_2n", 0.85, 1.0),
    ("all", "tree_network_share", 0.7, 0.95),
    ("all", "nvls_tree_share", 0.8, 1.0),
    ("all", "nvls_ramp_rank_s", 2e-6, 1.5e-5),
    ("all", "nvls_launch_share", 0.05, 1.0),
    ("all", "ramp_half_bytes", 2e6, 6e7),
    ("all", "nvls_rack_share", 0.6, 1.0),
    *[(g, "ring_share", 0.6, 0.95) for g in ("volta", "ampere", "hopper", "blackwell")],
    *[(g, "ring_tail", 0.0, 0.4) for g in ("volta", "ampere", "hopper", "blackwell")],
    *[(g, "ring_simple_step_s", 5e-7, 3.4e-6) for g in ("volta", "ampere", "hopper", "blackwell")],
    *[(g, "ring_ramp_step_s", 1e-7, 2e-5) for g in ("volta", "ampere", "hopper", "blackwell")],
    *[(g, "nvls_share", 0.5, 0.8) for g in ("hopper", "blackwell")],
    *[(f, "payload_share", 0.6, 1.0) for f in ("efa", "tcpx", "cxi")],
    ("tcpx", "network_latency_s", 2e-5, 9e-4),
]
Values = dict[tuple[str, str, str], float]


def loss(values: Values, rows: list[Measured], weights: list[float]) -> float:
    """Return the weighted mean absolute log error."""
    judged = judge(rows, World(catalog(), values))
    return sum(w * abs(math.log1p(j.error)) for w, j in zip(weights, judged, strict=True)) / sum(
        weights
    )


def weigh(rows: list[Measured]) -> list[float]:
    """Return each row's weight: a system counts with the square root of its rows, small sizes a
    fifth."""
    systems = [(row.hardware, row.comm.ranks, row.operation) for row in rows]
    return [
        (1.0 if row.size_bytes >= LARGE_bytes else 0.2) / math.sqrt(systems.count(system))
        for row, system in zip(rows, systems, strict=True)
    ]


def descend(rows: list[Measured], rounds: int = 14) -> Values:
    """Move one constant at a time by a shrinking step as long as that helps."""
    weights = weigh(rows)
    facts = catalog()
    values = {
        ("fitted", id, name): min(most, max(least, float(facts.fact("fitted", id, name).value)))
        for id, name, least, most in FREE
    }
    best, step = loss(values, rows, weights), 0.25
    for _ in range(rounds):
        before = best
        for id, name, least, most in FREE:
            key = ("fitted", id, name)
            for factor in (1 + step, 1 / (1 + step)):
                base = values[key] or 0.01
                tried = {**values, key: min(most, max(least, base * factor))}
                now = loss(tried, rows, weights)
                if now < best - 1e-9:
                    best, values = now, tried
        step *= 0.6 if best > before * 0.999 else 1.0
    sys.stderr.write(f"loss {best:.4f}\n")
    return values


def write(values: Values) -> None:
    """Put the fitted values into the catalog's file; ranges are kept and widened to hold the
    value."""
    with FILE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        value = values.get(("fitted", row["id"], row["attribute"]))
        if value is not None:
            row["value"] = f"{value:.4g}"
            if row["low"]:
                row["low"] = f"{min(float(row['low']), value * 0.98):.3g}"
                row["high"] = f"{max(float(row['high']), value * 1.02):.3g}"
    with FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def held_out(rows: list[Measured], parts: int = 5) -> list[float]:
    """Return the errors from 16 MiB up of rows whose system took no part in the fit."""
    systems = sorted({(row.table, row.hardware, row.comm.ranks) for row in rows})
    part = {system: i % parts for i, system in enumerate(systems)}
    errors = []
    for k in range(parts):
        inside = [row for row in rows if part[row.table, row.hardware, row.comm.ranks] != k]
        outside = [row for row in rows if part[row.table, row.hardware, row.comm.ranks] == k]
        judged = judge(outside, World(catalog(), descend(inside, 10)))
        errors += [abs(j.error) for j in judged if j.row.size_bytes >= LARGE_bytes]
    return sorted(errors)


if __name__ == "__main__":
    world = World(catalog())
    if "--held-out" in sys.argv:
        found = held_out([row for table in TABLES for row in measured(table, world)])
        median, tenth = found[len(found) // 2], found[int(0.9 * len(found))]
        sys.stdout.write(
            f"held out, from 16 MiB: median {median:.1%}, nine in ten within {tenth:.1%}\n"
        )
        sys.exit()
    fitted = descend([row for table in TABLES for row in measured(table, world)])
    for (_, id, name), value in fitted.items():
        sys.stdout.write(f"{id:12} {name:24} {value:.4g}\n")
    if "--write" in sys.argv:
        write(fitted)
