"""The flow engine beside SimGrid on networks and flows drawn at random.

SimGrid (LGPL) runs in a process of its own with the system's Python, as Debian's python3-simgrid
installs it. Flows wait for their latency and then share links in inverse proportion to it, as its
model CM02 has it; here that is a delay and a weight.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eastwest.traffic import messages
from laws import simulated
from networks import leaf_spine, way

SCRIPT = Path(__file__).parent / "simgrid_flows.py"
PYTHON = shutil.which("python3", path="/usr/bin:/bin")


def without_simgrid() -> str:
    """Why SimGrid cannot be run, empty if it can."""
    if PYTHON is None:
        return "the system has no python3"
    tried = subprocess.run([PYTHON, "-c", "import simgrid"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "the system's Python has no SimGrid (python3-simgrid)"


MISSING = without_simgrid()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def simgrid(case: dict[str, object]) -> list[float]:
    run = [str(PYTHON), str(SCRIPT)]
    out = subprocess.run(run, input=json.dumps(case), capture_output=True, text=True, check=True)
    ends: list[float] = json.loads(out.stdout)["ends"]
    return ends


@pytest.mark.parametrize("seed", range(16))
def test_times_are_simgrids_within_1_percent(seed: int):
    draw = np.random.default_rng(seed)
    leaves, hosts, spines = draw.integers(2, 5, 3)
    net = leaf_spine(leaves, hosts, spines, 1.0, 1.0)
    links = len(net.ends)
    net.rates = (draw.choice([1.0, 2.0, 4.0], links) * 1e9).tolist()
    net.latencies = (draw.uniform(1.0, 5.0, links) * 1e-6).tolist()
    n = int(draw.integers(5, 60))
    ends = [draw.choice(leaves * hosts, 2, replace=False).tolist() for _ in range(n)]
    ways = [way(a, b, leaves, hosts, int(draw.integers(spines))) for a, b in ends]
    routes = net.through(*ways)
    size = np.round(10 ** draw.uniform(4, 8, n))
    start = np.sort(draw.uniform(0, 0.05, n))
    cap = np.where(draw.random(n) < 0.3, draw.uniform(0.1, 2.0, n) * 1e9, np.inf)
    latency_s = routes.latency_s(net.links)

    rates = replace(net.links, latency_s=np.zeros(links))
    work = messages(
        [a for a, _ in ends],
        [b for _, b in ends],
        size,
        start,
        delay_s=latency_s,
        cap_Bps=cap,
        weight=latency_s.min() / latency_s,
    )
    ours = simulated("flow", rates, work, routes).finish_s
    flows = [
        {
            "links": routes.link[routes.first[i] : routes.first[i + 1]].tolist(),
            "size": float(size[i]),
            "start": float(start[i]),
            "cap": float(cap[i]) if np.isfinite(cap[i]) else 0,
        }
        for i in range(n)
    ]
    theirs = simgrid({"links": list(zip(net.rates, net.latencies, strict=True)), "flows": flows})
    assert (ours - start).tolist() == pytest.approx((np.array(theirs) - start).tolist(), rel=0.01)
