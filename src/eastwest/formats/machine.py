"""What is told of one machine. One idea: each format fills in what it knows, and says nothing of
the rest."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace

from eastwest.catalog.world import shared_nominal
from eastwest.errors import UserError


@dataclass(frozen=True, slots=True)
class Machine:
    """A server as a tool shows it; what a tool does not tell is empty, or zero.

    ``gpu_device`` and ``nic_device`` are PCI ids such as ``10de:20b2``; ``nic_vendor`` is the
    catalog's; ``gpu_nvlinks`` counts the
    NVLinks of one GPU; ``pairs`` are direct links such as ``0-1:4``; places are those of
    :class:`eastwest.fabric.server.structure.Counts`, by numbers of switches and NUMA nodes;
    ``storage_nics`` are those that hang far from every GPU. ``where`` is the file.
    """

    where: str
    gpus: int
    nics: int
    storage_nics: int = 0
    gpu_device: str = ""
    nic_device: str = ""
    nic_vendor: str = ""
    nic_Bps: float = 0.0
    gpu_links: str = ""
    gpu_nvlinks: int = 0
    pairs: str = ""
    gpu_places: tuple[str, ...] = ()
    nic_places: tuple[str, ...] = ()
    switch_sockets: tuple[int, ...] = ()
    sockets: int = 0
    pcie_gen: int = 0
    pcie_lanes: int = 0
    cpu: str = ""


_COUNTED = ("gpus", "nics")
_PLACED = ("gpu_places", "nic_places", "switch_sockets", "sockets")


def merged(machines: list[Machine]) -> Machine:
    """Return one machine from what several files tell; the first that knows a thing is believed.

    Raises UserError where two files count GPUs or NICs differently: they are not of one machine.
    """
    found = machines[0]
    for other in machines[1:]:
        for name in _COUNTED:
            ours, theirs = getattr(found, name), getattr(other, name)
            if ours != theirs and ours and theirs:
                raise UserError(
                    f"{theirs} {name.removesuffix('s').upper()}s, but {ours} in {found.where}",
                    where=other.where,
                    hint="the files are not of one machine",
                )
        # Places are one picture: they come from one file, whole.
        placed = bool(found.gpu_places)
        for field in fields(Machine):
            if field.name in _PLACED and placed:
                continue
            if not getattr(found, field.name) and getattr(other, field.name):
                found = replace(found, **{field.name: getattr(other, field.name)})
    return found


def sockets_of(numa_nodes: list[int], arm: bool = False) -> tuple[int, list[int]]:
    """Return how many sockets NUMA nodes mean, and the socket of each node that is named.

    A socket can be split into several nodes (NPS4): servers have two sockets if more than one node,
    and nodes are numbered socket by socket. An Arm CPU beside each GPU is a socket of its own.
    """
    known = sorted(set(numa_nodes))
    if len(known) <= 1:
        return 1, [0] * len(numa_nodes)
    if arm:
        return len(known), [known.index(node) for node in numa_nodes]
    nodes = 2
    while nodes <= known[-1]:
        nodes *= 2
    return 2, [node * 2 // nodes for node in numa_nodes]


def switched_links(gpus: int, nvlinks: dict[tuple[int, int], int]) -> tuple[str, int, str]:
    """Return what joins GPUs, the NVLinks of one, and the pairs where links are direct, from the
    NVLinks that each two GPUs see between them.

    Behind NVSwitches each two see all links of a GPU; direct links are shared by its peers.
    """
    if not nvlinks:
        return "pcie", 0, ""
    listed = " ".join(f"{a}-{b}:{n}" for (a, b), n in sorted(nvlinks.items()))
    each = [sum(n for pair, n in nvlinks.items() if g in pair) for g in range(gpus)]
    partners = [sum(g in pair for pair in nvlinks) for g in range(gpus)]
    if max(partners) == 1:
        return "bridge", max(each), listed
    counts = set(nvlinks.values())
    whole = len(nvlinks) == gpus * (gpus - 1) // 2
    # More than a GPU has can only be the same links, seen from each peer.
    if whole and len(counts) == 1 and max(each) > _most_nvlinks():
        return "nvswitch", counts.pop(), ""
    return "mesh", max(each), listed


@functools.cache
def _most_nvlinks() -> int:
    world = shared_nominal()
    gpus = world.catalog.ids("gpu")
    nvidia = [gpu for gpu in gpus if world.text("gpu", gpu, "vendor") == "NVIDIA"]
    return max(int(world.number("gpu", gpu, "scaleup_links")) for gpu in nvidia)
