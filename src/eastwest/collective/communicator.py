"""Who talks: the ranks of one collective and what they may use. One idea: a collective sees rates,
never technologies.

A *node* here is what NCCL calls one: the GPUs that share an NVLink domain (a server, or a whole
rack of GB200).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from eastwest.errors import UserError

OPERATIONS = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "all_to_all",
    "send_receive",
)
PROTOCOLS = ("ll", "ll128", "simple")


@dataclass(frozen=True, slots=True)
class Communicator:
    """The ranks of a collective, and the rates that it has for itself.

    ``ranks`` GPUs in ``nodes`` NVLink domains; ``link_Bps`` the NVLink (or PCIe) line rate of one
    GPU, one way; ``node_Bps`` the payload rate, one way, that all NICs of one node give this
    collective; ``nics`` how many they are; ``network_latency_s`` the one-way time of a small
    message between two nodes beyond the host's own work; ``memory_Bps`` what one GPU's memory
    reads and writes together.
    """

    ranks: int
    nodes: int
    generation: str  # of the GPU: volta, ampere, hopper, blackwell
    cpu: str  # vendor: intel, amd, arm
    link_Bps: float
    links: int  # NVLinks of one GPU, 0 for PCIe only
    node_Bps: float
    nics: int
    network_latency_s: float
    memory_Bps: float  # of one GPU
    switched: bool = True  # every GPU reaches every other of its node at the full rate (NVSwitch)
    in_switch: bool = False  # NVSwitch reduces and multicasts (NVLS)
    sharp: bool = False  # the network's switches can reduce (SHARP)
    collnet: bool = False  # and NCCL is told to use that (NCCL_COLLNET_ENABLE=1 and its plug-in)
    rings: int = 0  # disjoint rings of single links, for GPUs wired without NVSwitch
    algorithms: tuple[str, ...] = ()  # that NCCL may choose (NCCL_ALGO), all if empty
    allowed_protocols: tuple[str, ...] = PROTOCOLS  # NCCL_PROTO
    pxn: bool = True  # messages go to the GPU beside the right NIC first, where NVLink joins them
    max_channels: float = math.inf  # NCCL_MAX_NCHANNELS
    exchange_Bps: float = math.inf  # what a GPU sends to all others of its node at once, at most
    usable_Bps: float = math.inf  # what a GPU's links carry after their own protocol, at most
    relayed: bool = False  # those rings pass through a GPU between two that have no link
    near_nics: bool = True  # a GPU reaches its NIC through PCIe switches or NVLink alone

    def __post_init__(self) -> None:
        if not (self.ranks >= 1 and 1 <= self.nodes <= self.ranks):
            raise UserError(
                f"a collective needs at least one rank a node, not {self.ranks} ranks on "
                f"{self.nodes} nodes"
            )
        if not (
            0 < self.link_Bps < math.inf
            and 0 < self.node_Bps < math.inf
            and 0 < self.memory_Bps < math.inf
            and 0 <= self.network_latency_s < math.inf
        ):
            raise UserError("a collective needs positive finite rates")

    @property
    def per_node(self) -> float:
        """Ranks a node, on average."""
        return self.ranks / self.nodes

    @property
    def local(self) -> int:
        """Ranks of the fullest node."""
        return -(-self.ranks // self.nodes)

    @property
    def protocols(self) -> tuple[str, ...]:
        """NCCL's protocols here: LL128 needs stores that arrive whole, which NCCL trusts to NVLink
        and PCIe switches, not to a CPU between them (``ncclTopoTuneModel``)."""
        whole = (self.links > 0 or self.local == 1) and (self.nodes == 1 or self.near_nics)
        here = PROTOCOLS if whole else ("ll", "simple")
        return tuple(p for p in here if p in self.allowed_protocols)

    def may(self, algorithm: str, operation: str) -> bool:
        """Whether NCCL is left to choose an algorithm (NCCL_ALGO); it never takes the ring from
        what is no all-reduce, so that programs run with NCCL_ALGO=Tree."""
        kept = algorithm == "ring" and operation != "all_reduce"
        return kept or not self.algorithms or algorithm in self.algorithms

    @property
    def no_sharp(self) -> str:
        """Why the network's switches do not add for this collective; empty if they do."""
        if not self.sharp:
            return "the network's switches do not reduce (SHARP is on InfiniBand switches)"
        return "" if self.collnet else "NCCL is not told to use SHARP (NCCL_COLLNET_ENABLE=1)"


def bus_factor(operation: str, ranks: int) -> float:
    """Return busbw over algbw, as nccl-tests defines it (doc/PERFORMANCE.md): 0 where one rank has
    nobody to send to."""
    if operation == "all_reduce":
        return 2.0 * (ranks - 1) / ranks
    if operation in ("all_gather", "reduce_scatter", "all_to_all"):
        return (ranks - 1) / ranks
    return 1.0


def steps(operation: str, ranks: int) -> int:
    """Return the steps of a ring: 2(n-1) for all-reduce, n-1 for the two halves, n for the others
    (as NCCL counts)."""
    if operation == "all_reduce":
        return 2 * (ranks - 1)
    return ranks - 1 if operation in ("all_gather", "reduce_scatter", "all_to_all") else ranks
