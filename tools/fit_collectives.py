"""Fit the collectives' global constants on the measured rows, and print the rows of ``fitted.csv``.

    python tools/fit_collectives.py [--write | --held-out]

Coordinate descent from neutral values on the weighted mean of log-errors' absolute values (rows
below 16 MiB count a fifth, each system the square root of its rows). Constants stay within the
bounds stated here; none is fitted per row, and none belongs to one system's name.

With ``--held-out`` each *system* is left out in turn, with all of its rows: constants start from
neutral values and are fitted on the other systems alone, and a constant of a GPU generation or of a
network that no other system has is given what the others' have in the middle. The errors of the
rows left out are the figures of the catalog's kind ``accuracy``; with ``--write`` they go there.
"""

from __future__ import annotations

import csv
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from eastwest.catalog.load import COLUMNS, catalog
from eastwest.catalog.world import World, draw
from eastwest.study.accuracy import REGIONS, Error, LARGE_bytes
from eastwest.study.validate import TABLES, Judged, Measured, judge, measured

DATA = Path(__file__).parent.parent / "src/eastwest/catalog/data"
GENERATIONS = ("volta", "ampere", "hopper", "blackwell")
SWITCHED = ("hopper", "blackwell")
CLOUDS = ("efa", "tcpx", "cxi")
# entries, attribute, neutral value, least, most: what may be fitted and how far.
FREE: tuple[tuple[tuple[str, ...], str, float, float, float], ...] = (
    (GENERATIONS, "launch_s", 2.5e-5, 5e-6, 4.5e-5),
    (("all",), "network_share", 0.97, 0.93, 0.99),
    (("all",), "network_step_factor", 1.0, 0.2, 2.0),
    (("all",), "tree_network_share", 0.92, 0.7, 1.0),
    (("all",), "nvls_tree_share", 0.92, 0.8, 1.0),
    (("all",), "nvls_ramp_rank_s", 6e-6, 2e-6, 1.5e-5),
    (("all",), "nvls_launch_share", 0.3, 0.05, 1.0),
    (("all",), "ramp_half_bytes", 1e7, 2e6, 6e7),
    (("all",), "nvls_rack_share", 0.9, 0.6, 1.0),
    (GENERATIONS, "ring_share", 0.8, 0.6, 0.95),
    (GENERATIONS, "ring_tail", 0.1, 0.0, 0.4),
    (GENERATIONS, "ring_simple_step_s", 2e-6, 5e-7, 3.4e-6),
    (GENERATIONS, "ring_ramp_step_s", 2e-6, 1e-7, 2e-5),
    (SWITCHED, "nvls_share", 0.65, 0.5, 0.8),
    (CLOUDS, "payload_share", 0.9, 0.6, 1.0),
    (("tcpx",), "network_latency_s", 1e-4, 2e-5, 2e-3),
)
STEPS = (0.3, 0.2, 0.12, 0.07, 0.04, 0.02, 0.01, 0.005)
Values = dict[tuple[str, str, str], float]


def neutral() -> Values:
    """Return all constants at their neutral values."""
    return {("fitted", id, name): value for ids, name, value, _, _ in FREE for id in ids}


def concerns(id: str, row: Measured) -> bool:
    """Return whether a constant of an entry can change the prediction of a row."""
    return id in ("all", row.comm.generation, row.fabric)


def weigh(rows: Sequence[Measured]) -> list[float]:
    """Return each row's weight: a system counts with the square root of its rows, small sizes a
    fifth."""
    systems = [(row.hardware, row.comm.ranks, row.operation) for row in rows]
    return [
        (1.0 if row.size_bytes >= LARGE_bytes else 0.2) / math.sqrt(systems.count(system))
        for row, system in zip(rows, systems, strict=True)
    ]


class Descent:
    """One constant at a time is moved by a shrinking step as long as that helps; only rows that it
    concerns are predicted again."""

    def __init__(self, rows: Sequence[Measured], values: Values) -> None:
        self.rows, self.weights, self.values = list(rows), weigh(rows), values
        self.losses = [0.0] * len(self.rows)
        self._put(self._losses(values, range(len(self.rows))))

    def _losses(self, values: Values, which: Sequence[int]) -> dict[int, float]:
        world = World(catalog(), values)
        chosen = [self.rows[i].in_world(world) for i in which]
        return {
            i: self.weights[i] * abs(math.log1p(j.error))
            for i, j in zip(which, judge(chosen, world), strict=True)
        }

    def _put(self, losses: dict[int, float]) -> None:
        for i, loss in losses.items():
            self.losses[i] = loss

    def _try(self, id: str, name: str, value: float) -> bool:
        tried = {**self.values, ("fitted", id, name): value}
        which = [i for i, row in enumerate(self.rows) if concerns(id, row)]
        losses = self._losses(tried, which)
        if sum(losses.values()) >= sum(self.losses[i] for i in which) - 1e-9:
            return False
        self.values = tried
        self._put(losses)
        return True

    def run(self) -> Values:
        """Return the values after rounds over all constants, two with each step."""
        for step in (s for s in STEPS for _ in range(2)):
            for ids, name, _, least, most in FREE:
                for id in ids:
                    base = self.values["fitted", id, name] or 0.01
                    for factor in (1 + step, 1 / (1 + step)):
                        self._try(id, name, min(most, max(least, base * factor)))
        return self.values


def fit(rows: Sequence[Measured]) -> Values:
    """Return the constants fitted on rows; what no row determines is the middle of its kind."""
    values = Descent(rows, neutral()).run()
    for ids, name, unknown, _, _ in FREE:
        known = [id for id in ids if any(concerns(id, row) for row in rows)]
        for id in set(ids) - set(known):
            others = [values["fitted", k, name] for k in known]
            values["fitted", id, name] = statistics.median(others) if others else unknown
    return values


def held_out(rows: Sequence[Measured]) -> tuple[list[Judged], list[bool]]:
    """Return every row judged by constants that its system took no part in, and whether it lies in
    the 5-95 % band of worlds drawn around them."""
    judged: list[Judged] = []
    inside: list[bool] = []
    for system in sorted({row.system for row in rows}):
        values = fit([row for row in rows if row.system != system])
        world = World(catalog(), values)
        left = judge([row.in_world(world) for row in rows if row.system == system], world)
        judged += left
        inside += in_band(left, values)
        sys.stderr.write(f"{system}: {Error.of([j.error for j in left])}\n")
    return judged, inside


def in_band(judged: Sequence[Judged], values: Values, worlds: int = 60) -> list[bool]:
    """Return for each row whether the measured rate lies between the 5th and 95th per cent of
    worlds drawn around these constants, as wide as the catalog's ranges are around its own."""
    facts = catalog()
    drawn: list[list[float]] = []
    for world in draw(worlds):
        moved = {
            key: value * world.drawn.get(key, 1.0) / float(facts.fact(*key).value)
            if key in world.drawn
            else value
            for key, value in values.items()
        }
        own = World(facts, {**world.drawn, **moved})
        drawn.append([j.predicted_Bps for j in judge([j.row.in_world(own) for j in judged], own)])
    found = []
    for j, rates in zip(judged, zip(*drawn, strict=True), strict=True):
        ordered, cut = sorted(rates), worlds // 20
        found.append(ordered[cut] <= j.row.busbw_Bps <= ordered[-1 - cut])
    return found


def write_fitted(values: Values) -> None:
    """Put the fitted values into the catalog's file; ranges are kept and widened to hold the
    value."""
    with (DATA / "fitted.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        value = values.get(("fitted", row["id"], row["attribute"]))
        if value is not None:
            row["value"] = f"{value:.4g}"
            if row["low"]:
                row["low"] = f"{min(float(row['low']), value * 0.98):.3g}"
                row["high"] = f"{max(float(row['high']), value * 1.02):.3g}"
    _write("fitted.csv", rows)


def write_accuracy(judged: Sequence[Judged], inside: Sequence[bool]) -> None:
    """Put the figures of the rows left out into the catalog, by region and size."""
    with (DATA / "accuracy.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["id"] not in REGIONS]
    source = "tools/fit_collectives.py --held-out on the published collectives, each whole system"
    source += " with all of its rows left out of the fit"
    world = World(catalog())
    for where in REGIONS:
        for size in ("large", "small"):
            chosen = [
                (j.error, held)
                for j, held in zip(judged, inside, strict=True)
                if where in ("all", j.row.region(world))
                and (j.row.size_bytes >= LARGE_bytes) == (size == "large")
            ]
            error = Error.of([e for e, _ in chosen])
            share = sum(held for _, held in chosen) / len(chosen) if chosen else 0.0
            figures = {
                "rows": error.rows,
                "median_error": error.median if chosen else 0.0,
                "nine_in_ten_error": error.tenth if chosen else 0.0,
                "in_band_share": share,
            }
            rows += [
                dict(
                    zip(
                        COLUMNS,
                        (
                            where,
                            f"{size}_{name}",
                            f"{value:.3g}",
                            "",
                            "",
                            "1",
                            source,
                            "fitted",
                            "",
                        ),
                        strict=True,
                    )
                )
                for name, value in figures.items()
            ]
    _write("accuracy.csv", rows)


def _write(name: str, rows: list[dict[str, str]]) -> None:
    with (DATA / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def report(judged: Sequence[Judged], inside: Sequence[bool]) -> None:
    """Print the figures of the rows left out."""
    world = World(catalog())
    for where in REGIONS:
        for large in (True, False):
            chosen = [
                (j.error, held)
                for j, held in zip(judged, inside, strict=True)
                if where in ("all", j.row.region(world))
                and (j.row.size_bytes >= LARGE_bytes) == large
            ]
            if chosen:
                error = Error.of([e for e, _ in chosen])
                share = sum(held for _, held in chosen) / len(chosen)
                sys.stdout.write(
                    f"{where:11} {'from' if large else 'below'} 16 MiB: {error.rows:4} rows, "
                    f"median {error.median:.1%}, nine in ten within {error.tenth:.1%}, "
                    f"in the 5-95 % band {share:.0%}\n"
                )


if __name__ == "__main__":
    published = [row for table in TABLES for row in measured(table, World(catalog()))]
    if "--held-out" in sys.argv:
        results = held_out(published)
        report(*results)
        if "--write" in sys.argv:
            write_accuracy(*results)
        sys.exit()
    fitted = fit(published)
    for (_, id, name), value in fitted.items():
        sys.stdout.write(f"{id:12} {name:24} {value:.4g}\n")
    if "--write" in sys.argv:
        write_fitted(fitted)
