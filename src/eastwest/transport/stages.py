"""A message's life as stages. One idea: latency is the sum along the list, throughput its most
loaded resource.

Each stage says where it happens and who works, what it costs a message, a packet and a byte, and
what it leaves on the host: copies, context switches, interrupts. The same list drives ``explain``,
the endpoint terms of the engines and the CPU figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Place(StrEnum):
    """Who works in a stage."""

    CPU = "CPU"
    GPU = "GPU"
    NIC = "NIC"
    PCIE = "PCIe"
    MEMORY = "memory"
    WIRE = "wire"
    SWITCH = "switch"
    DEVICE = "device"  # a storage device


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a message.

    ``message_s``, ``packet_s`` and ``byte_s`` are what the stage takes for a message, for each
    packet and for each byte. For the latency of one message, stages that pipeline by packet
    (``pipelined``) add the time of one packet instead of all: the slowest pipelined stage alone
    adds the rest. ``cpu`` tells that these are seconds of a CPU core.
    """

    name: str
    place: Place
    side: str  # sender, network, receiver
    message_s: float = 0.0
    packet_s: float = 0.0
    byte_s: float = 0.0
    pipelined: bool = False
    cpu: bool = False
    copies: int = 0
    context_switches: int = 0
    interrupts: int = 0
    why: str = ""  # one sentence for people
    running_s: float | None = (
        None  # message_s where a collective's kernel already runs; None: the same
    )


@dataclass(frozen=True, slots=True)
class Path:
    """A transport between two endpoints of one cluster: its stages and the limits that many
    messages share.

    ``rate_Bps`` is the payload rate of one NIC's worth of traffic with every GPU of the server
    sending and receiving at once (what a ring all-reduce does); ``alone_Bps`` with one GPU alone.
    ``limits`` names each resource with the payload rate a NIC that it would allow, the binding one
    first. ``cpu_cores`` are the cores of one server busy when all its NICs run at ``rate_Bps``,
    ``memory_Bps`` its host memory traffic then.
    """

    technology: str
    stages: tuple[Stage, ...]
    packet_bytes: int  # payload of one packet
    header_efficiency: float  # payload over wire bytes at full packets
    rate_Bps: float
    alone_Bps: float
    nics: int  # a server
    limits: tuple[tuple[str, float], ...]
    cpu_cores: float
    memory_Bps: float
    wire_Bps: float  # payload rate of one NIC's line, if nothing else bound it

    def latency_s(self, size_bytes: int) -> float:
        """Return the one-way time of one message alone in the network."""
        return sum(t for _, t in self.timeline(size_bytes))

    def timeline(self, size_bytes: int) -> tuple[tuple[Stage, float], ...]:
        """Return each stage with the time that it adds to one message of this size."""
        packets = max(1, math.ceil(size_bytes / self.packet_bytes))
        first = min(size_bytes, self.packet_bytes)
        rest = [
            (packets - 1) * s.packet_s + (size_bytes - first) * s.byte_s if s.pipelined else 0.0
            for s in self.stages
        ]
        slowest = max(range(len(rest)), key=rest.__getitem__) if rest else 0
        out = []
        for i, s in enumerate(self.stages):
            if s.pipelined:
                time = (
                    s.message_s + s.packet_s + first * s.byte_s + (rest[i] if i == slowest else 0.0)
                )
            else:
                time = s.message_s + packets * s.packet_s + size_bytes * s.byte_s
            out.append((s, time))
        return tuple(out)

    def step_latency_s(self) -> float:
        """Return the one-way time of a small message between two running collective kernels."""
        return sum(
            (s.message_s if s.running_s is None else s.running_s) + s.packet_s for s in self.stages
        )

    def cpu_s(self, size_bytes: int) -> float:
        """Return the CPU time, both hosts together, that one message of this size costs."""
        packets = max(1, math.ceil(size_bytes / self.packet_bytes))
        return sum(
            s.message_s + packets * s.packet_s + size_bytes * s.byte_s for s in self.stages if s.cpu
        )

    def count(self, what: str) -> int:
        """Return how many ``copies``, ``context_switches`` or ``interrupts`` one message leaves on
        both hosts."""
        return sum(getattr(s, what) for s in self.stages)
