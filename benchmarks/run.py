"""Speed and memory, printed beside what is wanted. Run it on a quiet machine: ``make bench``.

Each command line is run as a user runs it, in a process of its own; the formula path is timed
inside one process.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples/llama3-70b-1024xh100.yaml"
LARGE = ROOT / "examples/131072xh100-roce.yaml"


def run(arguments: list[str]) -> tuple[float, float]:
    """Run eastwest with arguments; return wall seconds and peak MiB of the process."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "eastwest", *arguments], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"eastwest {' '.join(arguments)} ended with {process.returncode}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def best(arguments: list[str], repeats: int = 3) -> tuple[float, float]:
    """Return the least time and the most memory of several runs."""
    runs = [run(arguments) for _ in range(repeats)]
    return min(t for t, _ in runs), max(m for _, m in runs)


def points_per_second(seconds: float = 3.0) -> float:
    """Return how many (cluster, job) points a second the formula path evaluates on one core."""
    from eastwest.study.sweep_point import points

    done, start = 0, time.perf_counter()
    for _ in points(EXAMPLE):
        done += 1
        if time.perf_counter() - start > seconds:
            break
    return done / (time.perf_counter() - start)


def fabric_arrays() -> tuple[float, float]:
    """Return seconds and this process' peak MiB for the arrays of 131,072 GPUs with all three
    networks."""
    from eastwest.spec.cluster import load_cluster
    from eastwest.study.situation import cluster_fabric

    cluster = load_cluster(LARGE)
    start = time.perf_counter()
    fabric = cluster_fabric(cluster)
    took = time.perf_counter() - start
    sys.stdout.write(f"  ({fabric.nodes:,} nodes, {fabric.links:,} directed links)\n")
    return took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def line(what: str, value: float, unit: str, wanted: str) -> None:
    """Print one figure beside what is wanted."""
    sys.stdout.write(f"{what:58} {value:10.4g} {unit:9} wanted {wanted}\n")


def main() -> None:
    """Measure and print all."""
    t, m = best(["--help"], 7)
    line("eastwest --help", t, "s", "below 0.3")
    t, m = best(["compare", str(EXAMPLE)])
    line("eastwest compare, 1,024 GPUs", t, "s", "below 3")
    line("", m, "MiB", "below 400")
    with tempfile.TemporaryDirectory() as folder:
        t, m = best(["compare", str(EXAMPLE), "--html", f"{folder}/report.html"])
    line("eastwest compare --html, 1,024 GPUs", t, "s", "")
    t, m = best(["compare", str(EXAMPLE), "--uncertainty"], 1)
    line("eastwest compare --uncertainty, 1,024 GPUs", t, "s", "")
    t, m = best(["compare", str(LARGE)], 1)
    line("eastwest compare, 131,072 GPUs", t, "s", "below 20")
    line("", m, "MiB", "below 2048")
    line("formula path on one core", points_per_second(), "points/s", "at least 2000")
    t, m = fabric_arrays()
    line("fabric arrays of 131,072 GPUs, three networks", t, "s", "below 20")
    line("", m, "MiB", "below 2048")


if __name__ == "__main__":
    main()
