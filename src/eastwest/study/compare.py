"""Which network must the data plane be, and why? (types first: the report is written against them)"""

from __future__ import annotations

from dataclasses import dataclass

from eastwest.catalog.load import Fact
from eastwest.fabric.topology import Plan
from eastwest.table import Table
from eastwest.transport.stages import Path


@dataclass(frozen=True, slots=True)
class Band:
    """The 5-95 % band of a figure over drawn worlds."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Option:
    """One technology, judged for this cluster and job. ``refused`` tells why it cannot be built, empty if it can."""

    technology: str
    label: str
    use: str  # data plane, storage, management
    chosen: bool
    in_file: bool  # whether it is what the cluster file says
    refused: str
    path: Path | None  # None where refused
    latency_s: float  # 8 B one way
    busbw_Bps: float  # all-reduce of the job's gradients
    step_s: float
    parts: tuple[tuple[str, float], ...]  # where the step goes: ("compute", s), ("exposed data parallel", s), …
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
class Reason:
    """One mechanism and what it costs a step."""

    seconds: float
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer: options, the choice, its reasons in numbers, what would change it, and all that it rests on."""

    cluster_line: str  # "Llama-3-70B on 1,024 H100 in 128 DGX H100 · tensor 8 x pipeline 4 x data 32 · …"
    gradient_bytes: int
    options: tuple[Option, ...]
    choice: str  # one sentence: choose …
    reasons: tuple[Reason, ...]
    remarks: tuple[str, ...]  # what cannot be told apart, what would change the choice, refusals, overrides
    busbw_sizes_bytes: tuple[int, ...]
    busbw_Bps: tuple[tuple[str, tuple[float, ...]], ...]  # label -> all-reduce busbw at each size
    waterfall_bytes: int
    plan: Plan | None  # of the chosen (or the file's) compute network
    bill: Table  # of that network: part, count, unit price, sum, power
    table: Table  # the comparison itself
    facts: tuple[Fact, ...]
    uncertainty_worlds: int = 0
    against: str = ""  # label of the option that choice and reasons compare with
