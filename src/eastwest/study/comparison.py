"""What a comparison holds. One idea: an option can be built and has all its figures, or it is
refused and has none, only the reason.

The order of ``options`` and of ``refused`` is the catalog's, the file's own technology first.
"""

from __future__ import annotations

import html
from dataclasses import dataclass

from eastwest.catalog.load import Fact
from eastwest.design.bom import Bill
from eastwest.errors import InternalError
from eastwest.fabric.plan import Plan
from eastwest.study.bands import Band
from eastwest.study.reasons import Reason
from eastwest.study.situation import Situation
from eastwest.table import Table
from eastwest.transport.stages import Path


@dataclass(frozen=True, slots=True)
class Option:
    """One technology that can be built here, with what the job does on it.

    The bands (5-95 %) are None where no worlds were drawn.
    """

    technology: str
    label: str
    use: str  # data plane, storage, management
    in_file: bool  # whether it is what the cluster file says
    path: Path
    latency_s: float  # 8 B one way
    busbw_Bps: float  # all-reduce of the job's gradients
    step_s: float
    parts: tuple[tuple[str, float], ...]  # where the step goes: name and seconds, adding up to it
    idle_share: float  # of the GPUs' time, 0 … 1
    cpu_cores: float  # a server
    memory_Bps: float  # host memory traffic a server
    network_USD_per_gpu: float
    network_W_per_gpu: float
    step_band: Band | None = None
    latency_band: Band | None = None
    busbw_band: Band | None = None
    cost_band: Band | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """One technology that cannot be built here, and why."""

    technology: str
    label: str
    use: str
    in_file: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Judged:
    """An option with what it was judged from: its network and what that costs."""

    situation: Situation
    bill: Bill
    option: Option


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer: options, the choice, its reasons in numbers, what would change it, and all that
    it rests on.

    ``best`` is the technology that is chosen, ``foil`` the one that choice and reasons hold it
    against; it is empty where there is no other.
    """

    cluster_line: str  # the model, the GPUs and servers, the layout and the batch
    gradient_bytes: int
    options: tuple[Option, ...]
    refused: tuple[Refused, ...]
    best: str
    foil: str
    choice: str  # one sentence: choose …
    reasons: tuple[Reason, ...]
    remarks: tuple[str, ...]  # ties, what would change the choice, refusals, overrides, errors
    busbw_sizes_bytes: tuple[int, ...]
    busbw_Bps: tuple[tuple[str, tuple[float, ...]], ...]  # label, and all-reduce at each size
    line_Bps: float  # line rate of all of a server's NICs in the chosen network
    waterfall_bytes: int
    plan: Plan | None  # of the chosen compute network
    bill: Bill  # of that network
    table: Table  # the comparison itself
    facts: tuple[Fact, ...]
    uncertainty_worlds: int = 0

    def option(self, technology: str) -> Option:
        """Return the option of a technology that can be built.

        Raises InternalError for any other.
        """
        for option in self.options:
            if option.technology == technology:
                return option
        raise InternalError(f"'{technology}' is not among the options")

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(self.choice)}</b></p>{self.table._repr_html_()}"
