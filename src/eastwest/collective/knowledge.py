"""What the collectives know of one world. One idea: each constant is looked up once, so that
formulas stay short."""

from __future__ import annotations

from eastwest.catalog.world import World
from eastwest.collective.communicator import Communicator


class Knowledge:
    """Fitted constants (kind ``fitted``) and NCCL's step times (kind ``nccl``) of one world,
    remembered."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._seen: dict[tuple[str, str, str], float] = {}

    def _number(self, kind: str, id: str, attribute: str) -> float:
        key = (kind, id, attribute)
        if key not in self._seen:
            self._seen[key] = self.world.number(kind, id, attribute)
        return self._seen[key]

    def of(self, name: str, generation: str = "all") -> float:
        """Return a fitted constant, of one GPU generation or of all."""
        return self._number("fitted", generation, name)

    def protocol_share(self, protocol: str) -> float:
        """Return the share of the wire that is payload: LL sends 4 of 8 bytes, LL128 120 of 128,
        Simple all."""
        return self._number("fitted", "all", f"{protocol}_share")

    def ll_max_Bps(self, comm: Communicator) -> float:
        """Return the bus bandwidth that LL does not exceed (NCCL's ``llMaxBws``)."""
        if comm.nodes == 1:
            return self._number("nccl", comm.generation, "ll_max_1n_Bps")
        return self._number("nccl", comm.cpu, f"ll_max_{'2n' if comm.nodes == 2 else '4n'}_Bps")

    def launch_s(self, comm: Communicator) -> float:
        """Return what every collective takes before it begins: a kernel launch on this generation's
        servers."""
        return self.of("launch_s", comm.generation)

    def base_s(self, algorithm: str, protocol: str, comm: Communicator) -> float:
        """Return launch plus NCCL's base latency of a pair."""
        return self.launch_s(comm) + self._number("nccl", "base", f"{algorithm}_{protocol}_s")

    def inside_step_s(self, algorithm: str, protocol: str, comm: Communicator) -> float:
        """Return the time of a step inside a node; Simple's was fitted for each GPU generation."""
        if protocol == "simple" and algorithm in ("ring", "pairwise"):
            return self.of("ring_simple_step_s", comm.generation)
        algorithm = "ring" if algorithm == "pairwise" else algorithm
        return self._number("nccl", "nvlink" if comm.links else "pci", f"{algorithm}_{protocol}_s")

    def between_step_s(self, algorithm: str, protocol: str, comm: Communicator) -> float:
        """Return the time of a step between nodes, on the InfiniBand that NCCL's constants were
        taken on."""
        algorithm = "ring" if algorithm == "pairwise" else algorithm
        known = self._number("nccl", "net", f"{algorithm}_{protocol}_s")
        if protocol == "simple":
            known *= self.of("network_step_factor")
        return known

    def wait_s(self, comm: Communicator) -> float:
        """Return what a message between nodes takes beyond that InfiniBand."""
        return max(0.0, comm.network_latency_s - self.of("network_reference_s"))

    def inside_Bps(self, comm: Communicator) -> float:
        """Return what a ring gets of a GPU's links, one way: never more than they carry."""
        if comm.rings:
            one_link = comm.link_Bps / max(1, comm.links)
            relay = self.of("relay_share") if comm.relayed else 1.0
            return comm.rings * one_link * relay * self.of("ring_share", comm.generation)
        share = self.of(
            "ring_share" if comm.links else "pcie_share", comm.generation if comm.links else "all"
        )
        return min(comm.link_Bps * share, comm.usable_Bps)

    def exchange_Bps(self, comm: Communicator) -> float:
        """Return what a GPU gets to all others of its node at once, one way."""
        inside = self.inside_Bps(comm)
        line = comm.rings * comm.link_Bps / max(1, comm.links) if comm.rings else comm.link_Bps
        return inside * min(1.0, comm.exchange_Bps / line)

    def between_Bps(self, comm: Communicator) -> float:
        """Return what NCCL's channels get of a node's NICs, one way: a channel drives one NIC, and
        the search stops at so many channels."""
        most = min(self._number("nccl", "search", "max_channels"), comm.max_channels)
        driven = most / max(1, comm.nics)
        return self.all_nics_Bps(comm) * min(1.0, driven)

    def all_nics_Bps(self, comm: Communicator) -> float:
        """Return what a node's GPUs get of all of its NICs, one way, each through its own."""
        return comm.node_Bps * self.of("network_share")
