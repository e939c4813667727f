"""Fit the global compute constants on measured training steps, and tell how far off steps are that
took no part in it.

    python tools/fit_compute.py FOLDER [--held-out] [--write]

FOLDER holds the tables of measured steps (training_a100_multi_node.csv,
training_a100_single_node.csv, training.csv). Least absolute log errors by reweighted least squares,
from the neutral values stated here, each with the factor by which it may well be off: that is the
only thing that holds a constant where rows say little. None is fitted per row or system. With
--held-out each publication is left out in turn, whole, and predicted from constants that start
neutral and see the others only. --write puts the constants into compute.csv, and with --held-out
the errors into accuracy.csv. The network is the plain one of ``eastwest.training.published``, so
that only computing is fitted.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from eastwest.catalog.load import COLUMNS, catalog
from eastwest.catalog.world import World
from eastwest.training.published import Row, judge, read_rows, region

DATA = Path(__file__).parent.parent / "src/eastwest/catalog/data"
TABLES = ("training_a100_multi_node.csv", "training_a100_single_node.csv", "training.csv")
# What plain networks reach of their line rates, and a collective's step and launch (NCCL, medians
# of public tables).
NETWORK = {"scaleup_share": 0.77, "nic_share": 0.9, "step_s": 2e-6, "launch_s": 1e-5}
# entry, attribute, neutral value, factor by which it may be off.
FREE = (
    ("ampere", "gemm_share", 0.75, 1.15),
    ("hopper", "gemm_share", 0.7, 1.15),
    ("blackwell", "gemm_share", 0.7, 1.15),
    ("hopper", "gemm_fp8_share", 0.6, 1.2),
    ("blackwell", "gemm_fp8_share", 0.6, 1.2),
    ("blackwell", "gemm_fp8_mx_share", 0.55, 1.2),
    ("ampere", "attention_share", 0.45, 1.3),
    ("hopper", "attention_share", 0.45, 1.3),
    ("blackwell", "attention_share", 0.45, 1.3),
    ("all", "gemm_pad", 60.0, 1.5),
    ("all", "gemm_depth", 200.0, 1.5),
    ("all", "kernel_s", 4e-6, 1.5),
    ("software-2021", "launch_s", 2e-5, 2.0),
    ("software-2023", "launch_s", 1.5e-5, 2.0),
    ("software-2025", "launch_s", 1e-5, 2.0),
    ("software-2026", "launch_s", 1e-5, 2.0),
    ("software-2023", "launch_moe_s", 2e-3, 2.0),
    ("software-2025", "launch_moe_s", 1e-3, 2.0),
    ("software-2026", "launch_moe_s", 1e-3, 2.0),
    ("software-2023", "routing_moves", 6.0, 2.0),
    ("software-2025", "routing_moves", 6.0, 2.0),
    ("software-2026", "routing_moves", 6.0, 2.0),
    ("all", "unfused_moves", 2.0, 1.5),
    ("all", "power_exponent", 0.5, 1.3),
    ("software-2023", "tensor_hidden", 0.3, 1.5),
    ("software-2025", "tensor_hidden", 0.3, 1.5),
    ("software-2026", "tensor_hidden", 0.3, 1.5),
    ("software-2025", "expert_hidden", 0.3, 1.5),
    ("software-2026", "expert_hidden", 0.3, 1.5),
    ("all", "straggler", 0.005, 2.0),
    ("all", "step_s", 0.005, 3.0),
    ("all", "overlap_cost", 0.2, 1.5),
)
TYPICAL = 0.08  # error of a row, against which a constant's factor is weighed
ROWS_worth = 100.0  # independent rows that all rows together are worth
Values = dict[tuple[str, str, str], float]


def values(logs: np.ndarray) -> Values:
    """Return the constants whose logarithms over the neutral values are given."""
    found = {}
    for (id, name, neutral, _), log in zip(FREE, logs, strict=True):
        limit = 0.95 if name.endswith(("share", "hidden")) else math.inf
        found["compute", id, name] = min(limit, neutral * math.exp(log))
    return found


def errors(rows: list[Row], constants: Values) -> np.ndarray:
    """Return the logarithm of predicted over measured of each row."""
    judged = judge(rows, world=World(catalog(), constants), **NETWORK)
    return np.log1p([j.error for j in judged])


def weigh(rows: list[Row]) -> np.ndarray:
    """Return each row's weight, in all 1: a publication counts by the square root of its rows."""
    publications = [row.publication for row in rows]
    weights = np.array([publications.count(p) ** -0.5 for p in publications])
    return weights / weights.sum()


def fit(rows: list[Row], rounds: int = 6) -> Values:
    """Return the constants with the least weighted absolute log errors, held by their factors."""
    weights, logs, step = weigh(rows) * ROWS_worth / TYPICAL, np.zeros(len(FREE)), 0.02
    hold = np.array([1.0 / math.log(factor) ** 2 for *_, factor in FREE])
    for _ in range(rounds):
        now = errors(rows, values(logs))
        slopes = np.empty((len(rows), len(FREE)))
        for i in range(len(FREE)):
            moved = logs.copy()
            moved[i] += step
            slopes[:, i] = (errors(rows, values(moved)) - now) / step
        pull = weights / np.maximum(np.abs(now), 0.01)
        normal = slopes.T @ (pull[:, None] * slopes) + np.diag(hold)
        move = np.linalg.solve(normal, -slopes.T @ (pull * now) - hold * logs)
        logs = logs + np.clip(move, -0.3, 0.3)
    return values(logs)


def thinned(rows: Iterable[Row]) -> list[Row]:
    """Return rows with every sixth of vTrain's single-node ones, which has many alike."""
    return [r for i, r in enumerate(rows) if "single_node" not in r.label or i % 6 == 0]


def held_out(rows: list[Row]) -> list[tuple[Row, float]]:
    """Return each row with its relative error, predicted by constants that its publication did not
    touch."""
    found = []
    for publication in sorted({row.publication for row in rows}):
        others = [r for r in rows if r.publication != publication]
        own = [r for r in rows if r.publication == publication]
        missed = np.expm1(errors(own, fit(others)))
        found += list(zip(own, missed.tolist(), strict=True))
        sys.stderr.write(f"{publication:44} {_figures(missed.tolist())}\n")
    return found


def _figures(missed: list[float]) -> str:
    sizes = sorted(map(abs, missed))
    median, tenth = np.median(sizes), sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))]
    mean = float(np.mean(sizes))
    return (
        f"{len(sizes):4} rows, median {median:6.1%}, nine in ten {tenth:6.1%}, mean {mean:6.1%}, "
        f"bias {np.median(missed):+6.1%}"
    )


def report(title: str, judged: list[tuple[Row, float]]) -> str:
    """Return the figures of all rows, of each publication and of each region."""
    kinds: dict[str, list[float]] = {}
    for row, error in judged:
        kinds.setdefault(region(row.inputs), []).append(error)
    named = [("all", [error for _, error in judged]), *sorted(kinds.items())]
    return "\n".join([title, *(f"{kind:44} {_figures(own)}" for kind, own in named)]) + "\n"


def write(constants: Values) -> None:
    """Put the fitted constants into the catalog's file, with half their factor as range."""
    held = {("compute", id, name): (neutral, factor) for id, name, neutral, factor in FREE}
    path = DATA / "compute.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        key = ("compute", row["id"], row["attribute"])
        if key in constants:
            value, (neutral, factor) = constants[key], held[key]
            spread = math.sqrt(factor)
            top = min(value * spread, 0.97) if row["unit"] == "1" and value < 1 else value * spread
            row.update(value=f"{value:.4g}", checked="fitted", low=f"{value / spread:.3g}")
            if abs(value / neutral - 1.0) < 1e-3:
                row.update(checked="unchecked", source="assumed: no measured step depends on it")
            row["high"] = f"{top:.3g}"
    _write(path, rows)


def write_errors(judged: list[tuple[Row, float]]) -> None:
    """Put the held-out errors of each region into the catalog's file."""
    path = DATA / "accuracy.csv"
    with path.open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if not r["id"].startswith("step")]
    named = {"step": list(judged)}
    for row, error in judged:
        named.setdefault(f"step-{region(row.inputs)}", []).append((row, error))
    source = "tools/fit_compute.py --held-out on published training steps"
    for id, chosen in sorted(named.items()):
        sizes = sorted(abs(e) for _, e in chosen)
        many = len({r.publication for r, _ in chosen})
        note = f"{len(sizes)} steps of {many} publications, each left out of the fit in turn"
        for attribute, value in (
            ("median_error", float(np.median(sizes))),
            ("nine_in_ten_error", sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))]),
        ):
            rows.append(
                {
                    "id": id,
                    "attribute": attribute,
                    "value": f"{value:.3g}",
                    "unit": "1",
                    "source": source,
                    "checked": "fitted",
                    "note": note,
                }
            )
    _write(path, rows)


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    rows = [r for name in TABLES for r in read_rows(folder / name, World(catalog()))]
    chosen = thinned(rows)
    best = fit(chosen)
    for (_, id, name), value in best.items():
        sys.stdout.write(f"{id:14} {name:24} {value:.4g}\n")
    seen = list(zip(rows, np.expm1(errors(rows, best)).tolist(), strict=True))
    sys.stdout.write(report("fitted", seen))
    if "--held-out" in sys.argv:
        unseen = held_out(chosen)
        sys.stdout.write(report("held out", unseen))
        if "--write" in sys.argv:
            write_errors(unseen)
    if "--write" in sys.argv:
        write(best)
