"""The flow engine beside SimGrid: a permutation of 1,024 flows with staggered starts on a fat tree
of 1,024 hosts (three tiers, k = 16), in one run, kernels warm.

Run it on a quiet machine: ``make bench``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from eastwest.engine import flow
from eastwest.traffic import Links, Messages, RouteSet, messages

SCRIPT = Path(__file__).parent.parent / "tests/real/simgrid_flows.py"
K, RATE_Bps = 16, 12.5e9  # ports a switch: a fat tree of k^3/4 hosts
HOSTS = K**3 // 4


def fat_tree() -> tuple[Links, int]:
    """Return hosts, edge, aggregation and core switches; up-links first, then down-links in the
    same order, and their number each way."""
    half = K // 2
    pod, edge, up = (axis.ravel() for axis in np.indices((K, half, half)))
    edges, middles = HOSTS + pod * half + edge, HOSTS + K * half + pod * half
    cores = HOSTS + 2 * K * half + edge * half + up
    low = np.concatenate([np.arange(HOSTS), edges, middles + edge])
    high = np.concatenate([edges, middles + up, cores])
    rate_Bps = np.full(2 * len(low), RATE_Bps)
    ends = np.concatenate([low, high]), np.concatenate([high, low])
    return Links(*ends, rate_Bps, np.zeros(2 * len(low))), len(low)


def permutation(seed: int = 1) -> tuple[Links, Messages, RouteSet]:
    """Each host sends to another, over switches drawn as by a hash, from the first millisecond
    on."""
    draw, half, (links, down) = np.random.default_rng(seed), K // 2, fat_tree()
    source = draw.permutation(HOSTS)
    target = np.roll(source, 1)
    middle, core = draw.integers(half, size=(2, HOSTS))
    a, b = source // half, target // half  # edge switches
    rise = np.stack(
        [source, HOSTS + a * half + middle, 2 * HOSTS + a // half * half**2 + middle * half + core],
        1,
    )
    fall = (
        np.stack(
            [
                2 * HOSTS + b // half * half**2 + middle * half + core,
                HOSTS + b * half + middle,
                target,
            ],
            1,
        )
        + down
    )
    through, kept = np.concatenate([rise, fall], 1), np.ones((HOSTS, 6), np.bool_)
    kept[a == b, 1:5] = False
    kept[a // half == b // half, 2:4] = False
    first = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    routes = RouteSet(first, through[kept], np.ones(int(kept.sum())))
    size = draw.uniform(32e6, 64e6, HOSTS).round()
    return links, messages(source, target, size, np.sort(draw.uniform(0, 1e-3, HOSTS))), routes


def ours(case: tuple[Links, Messages, RouteSet]) -> tuple[float, np.ndarray]:
    """Return the best of five runs in seconds, and when the messages end."""
    ends, took = np.zeros(0), []
    for _ in range(6):
        begin = time.process_time()
        ends = flow.simulate(*case).finish_s
        took.append(time.process_time() - begin)
    return min(took[1:]), ends


def theirs(case: tuple[Links, Messages, RouteSet]) -> tuple[float, np.ndarray] | None:
    """Return SimGrid's seconds for the simulation alone, and its ends; None where it is missing."""
    links, work, routes = case
    flows = [
        {
            "links": routes.link[routes.first[i] : routes.first[i + 1]].tolist(),
            "size": float(work.size_bytes[i]),
            "start": float(work.start_s[i]),
            "cap": 0,
        }
        for i in range(work.count)
    ]
    text = json.dumps({"links": [(float(rate), 0.0) for rate in links.rate_Bps], "flows": flows})
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        return None
    run = [python, str(SCRIPT)]
    done = subprocess.run(run, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    result = json.loads(done.stdout)
    return result["seconds"], np.array(result["ends"])


def main() -> None:
    """Measure and print both."""
    case = permutation()
    took, ends = ours(case)
    print(f"flow engine, a permutation of 1,024 staggered flows {took:18.4f} s")
    found = theirs(case)
    if found is None:
        print("SimGrid is not here (Debian: python3-simgrid), so nothing is compared")
        return
    seconds, other = found
    apart = np.abs(other / ends - 1).max()
    print(f"SimGrid, the same flows, its run alone {seconds:29.4f} s")
    print(f"so many times faster {seconds / took:47.1f}          wanted at least 20")
    print(f"largest difference of an end {apart:39.2e}          wanted below 1e-2")


if __name__ == "__main__":
    sys.exit(main())
