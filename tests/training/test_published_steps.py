"""Predictions against steps that others measured; the network is a plain one, the real one is
judged elsewhere."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from eastwest.catalog.world import shared_nominal
from eastwest.training.published import Judged, judge, read_rows

PUBLISHED = Path(__file__).parents[2] / "../shared/published"
NETWORK = {"scaleup_share": 0.77, "nic_share": 0.9, "step_s": 2e-6, "launch_s": 1e-5}


def judged(table: str) -> list[Judged]:
    path = PUBLISHED / table
    if not path.exists():
        pytest.skip("no published tables beside the project")
    return judge(read_rows(path, shared_nominal()), world=shared_nominal(), **NETWORK)


@pytest.mark.parametrize(
    ("table", "rows", "median", "bias"),
    [
        ("training_a100_multi_node.csv", 73, 0.11, 0.09),
        ("training_a100_single_node.csv", 960, 0.10, 0.04),
        ("training.csv", 300, 0.09, 0.05),
    ],
)
def test_half_of_the_measured_steps_are_predicted_within_about_a_tenth(
    table: str, rows: int, median: float, bias: float
):
    found = judged(table)
    assert len(found) >= rows
    assert statistics.median(abs(j.error) for j in found) < median
    assert abs(statistics.median(j.error for j in found)) < bias


def test_steps_of_22_B_to_1_T_parameters_are_predicted_within_a_fifth():
    """Korthikanti et al. 2022, table 5: full and selective recomputation on 8 to 512 A100."""
    found = [j for j in judged("training.csv") if "korthikanti-t5" in j.row.label]
    assert len(found) == 8
    assert max(abs(j.error) for j in found) < 1 / 5


def test_rows_that_do_not_say_enough_are_left_out():
    found = judged("training.csv")
    assert not any(word in j.row.label for j in found for word in ("LoRA", "BERT", "T5"))
    assert all(j.row.inputs.layout.gpus >= 1 for j in found)
