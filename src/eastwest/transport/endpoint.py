"""What every transport starts from: the two ends and the way between them.

One idea: a transport knows stages; where the message starts, how many switches it crosses and how
long the cables are comes from here.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from eastwest.catalog.world import World
from eastwest.errors import UserError
from eastwest.fabric.cabling import end_s, metre_s
from eastwest.fabric.server import Flow, Route, ServerGraph, Structure, joined, route
from eastwest.transport.stages import Place, Stage


@dataclass(frozen=True, slots=True)
class Store:
    """Storage targets that servers share: how many servers and targets, and what a target has."""

    servers: int
    targets: int
    ports: int  # of a target
    port_Bps: float
    drives: int  # of a target


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server as a transport sees it; both ends are alike.

    ``in_gpu`` tells whether the payload starts and ends in GPU memory; ``inline`` whether it goes
    with the doorbell (small messages from host memory, as ``ib_write_lat`` sends them).
    """

    graph: ServerGraph
    cores: float
    nic_Bps: float  # line rate of one NIC, one way
    nics: int
    mtu_bytes: int
    sockets: int = 0
    in_gpu: bool = True
    inline: bool = False
    store: Store | None = None


@dataclass(frozen=True, slots=True)
class Way:
    """The network between two servers: its links and their cable, its switches and their time.

    Numbers may be fractions where the way is the mean of several. Raises UserError for numbers
    below zero.
    """

    links: float
    metres: float  # of all cables together
    switches: float
    switching_s: float  # port to port, all switches together
    fec: str = "fec-kp4"

    def __post_init__(self) -> None:
        if min(self.links, self.metres, self.switches, self.switching_s) < 0:
            raise UserError("a way needs lengths and switches that are not negative")

    def stages(self, world: World, wire_Bps: float) -> tuple[Stage, ...]:
        """Return the wire and switch stages; ``wire_Bps`` is the payload rate at which bytes enter
        the wire."""
        link_s, cable_s = end_s(world, self.fec), metre_s(world)
        wire = Stage(
            "cables, FEC and modules",
            Place.WIRE,
            "network",
            message_s=self.links * link_s + self.metres * cable_s,
            byte_s=1.0 / wire_Bps,
            pipelined=True,
            why=f"{self.links:.3g} links, {self.metres:.0f} m of cable",
        )
        if not self.switches:
            return (wire,)
        many = "es" if self.switches > 1 else ""
        why = f"{self.switches:.3g} switch{many}, cut-through"
        switches = Stage("switches", Place.SWITCH, "network", message_s=self.switching_s, why=why)
        return wire, switches


@functools.lru_cache(maxsize=256)
def pairs(form: Structure, nics: int) -> tuple[tuple[int, int, float], ...]:
    """Return (GPU, NIC, share of the NIC's traffic) of each GPU and NIC that work together, with so
    many NICs used."""
    built, gpus = len(form.nic), len(form.gpu)
    if nics < built:
        # Fewer NICs than the server's own: every GPU sends through the nearest of those that are
        # used.
        return tuple((g, g * nics // gpus * built // nics, nics / gpus) for g in range(gpus))
    return tuple(
        (g, r % built, 1.0 / len(form.gpus_of_nic[r % built]))
        for r in range(nics)
        for g in form.gpus_of_nic[r % built]
    )


def direct_flows(end: Endpoint) -> tuple[Flow, ...]:
    """Return the flows with every NIC sending and receiving at rate 1 between it and GPU memory."""
    return _direct_flows(end.graph.structure, end.nics)


@functools.lru_cache(maxsize=256)
def _direct_flows(form: Structure, nics: int) -> tuple[Flow, ...]:
    flows: list[Flow] = []
    for g, r, share in pairs(form, nics):
        flows += [
            (route(form, form.gpu[g], form.nic[r]), share),
            (route(form, form.nic[r], form.gpu[g]), share),
        ]
    return tuple(flows)


def staged_ways(form: Structure, gpu: int, nic: int) -> tuple[Route, Route]:
    """Return the way out (GPU to host memory to NIC) and the way in; the buffer lies on the NIC's
    socket."""
    memory = form.dram[form.socket_of_nic[nic]]
    out = joined(route(form, form.gpu[gpu], memory), route(form, memory, form.nic[nic]))
    back = joined(route(form, form.nic[nic], memory), route(form, memory, form.gpu[gpu]))
    return out, back


def staged_flows(end: Endpoint, cpu_copies: int = 0) -> tuple[Flow, ...]:
    """Return the flows through host memory; each copy by the CPU reads and writes the memory once
    more."""
    return _staged_flows(end.graph.structure, end.nics, cpu_copies)


@functools.lru_cache(maxsize=256)
def _staged_flows(form: Structure, nics: int, cpu_copies: int) -> tuple[Flow, ...]:
    flows: list[Flow] = []
    for g, r, share in pairs(form, nics):
        flows += [(way, share) for way in staged_ways(form, g, r)]
        root, memory = form.root[form.socket_of_nic[r]], form.dram[form.socket_of_nic[r]]
        again = joined(route(form, memory, root), route(form, root, memory))
        flows += [(again, share)] * (2 * cpu_copies)
    return tuple(flows)


def binding(limits: list[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Return limits ascending, each name once."""
    seen: dict[str, float] = {}
    for name, rate in sorted(limits, key=lambda pair: (pair[1], pair[0])):
        seen.setdefault(name, rate)
    return tuple(seen.items())
