"""Collectives by formula. One idea: an algorithm is what it loads on each resource a byte, and how
many steps it waits.

A family of algorithms, one file each, registered here by NCCL's name. An algorithm is a module with

- ``OPERATIONS``: what it can do; ``PROTOCOLS``: how;
- ``ADDS``: where switches add for it, ``"node"`` (NVSwitch) or ``"network"`` (SHARP), if anywhere;
- ``OPTIMAL``: whether it loads the narrowest cut no more than it must;
- ``refusal(operation, comm) -> str``: why it cannot run on this communicator, empty if it can;
- ``cost(operation, protocol, comm, know) -> Cost``: its latency and its algorithm bandwidth;
- ``schedule(program)``: its moves, chunk by chunk, which :mod:`eastwest.collective.prove` proves.

To add one: write ``x.py`` with those and add a line to ``ALGORITHMS``; the laws that every one
obeys (``tests/collective/test_laws.py``) then hold it too. What NCCL would choose is
:mod:`eastwest.collective.nccl_tuner`; what it will take is :mod:`eastwest.collective.estimate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from eastwest.collective.communicator import Communicator
from eastwest.collective.knowledge import Knowledge
from eastwest.registry import Registry

if TYPE_CHECKING:
    from eastwest.collective.program import Program


@dataclass(frozen=True, slots=True)
class Cost:
    """Time = ``latency_s`` + hypot(``wait_s``, bytes / ``rate_Bps``) + ``ramp_s`` x bytes /
    (bytes + half), as ``estimate`` adds them.

    ``wait_s`` is what the network's latency adds to NCCL's own steps: chunks in flight hide it
    behind the transfer, the more the more there are.
    ``rate_Bps`` is the algorithm bandwidth and ``limit`` names what bounds it; ``ramp_s`` is what a
    pipeline of growing chunks loses at the most (it fills and drains once for each of its steps);
    ``tree_like`` marks pipelines whose rate at medium sizes NCCL corrects by a table.
    """

    latency_s: float
    rate_Bps: float
    limit: str
    ramp_s: float = 0.0
    tree_like: bool = False
    wait_s: float = 0.0


class Algorithm(Protocol):
    """What an algorithm's module offers."""

    OPERATIONS: tuple[str, ...]
    PROTOCOLS: tuple[str, ...]
    ADDS: tuple[str, ...]
    OPTIMAL: bool

    def refusal(self, operation: str, comm: Communicator) -> str:
        """Return why the algorithm cannot run here, or an empty string."""
        ...

    def cost(self, operation: str, protocol: str, comm: Communicator, know: Knowledge) -> Cost:
        """Return latency and algorithm bandwidth."""
        ...

    def schedule(self, program: Program) -> None:
        """Write down the moves of the program's operation."""
        ...


ALGORITHMS: Registry[Algorithm] = Registry(
    "algorithm",
    {
        "ring": "eastwest.collective.ring",
        "tree": "eastwest.collective.tree",
        "nvls": "eastwest.collective.nvls",
        "nvls_tree": "eastwest.collective.nvls_tree",
        "collnet_direct": "eastwest.collective.collnet",
        "collnet_chain": "eastwest.collective.collnet_chain",
        "pat": "eastwest.collective.pat",
        "hierarchical": "eastwest.collective.hierarchical",
        "pairwise": "eastwest.collective.pairwise",
    },
)
