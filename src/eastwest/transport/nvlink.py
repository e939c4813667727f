"""NVLink inside a server: a GPU stores into another GPU's memory through the NVSwitch. No NIC, no
host memory."""

from __future__ import annotations

from eastwest.catalog.world import World
from eastwest.transport.endpoint import Endpoint
from eastwest.transport.stages import Path, Place, Stage


def path(name: str, end: Endpoint, world: World) -> Path:
    """Return the path between two GPUs of one NVLink domain, or over PCIe where the server has no
    NVLink."""
    rate = link_Bps(end, world)
    limits = (("the GPU's NVLink", rate),)
    return Path(
        name,
        stages(end, world, launch=True),
        1 << 30,
        1.0,
        rate,
        rate,
        len(end.graph.gpu),
        limits,
        0.0,
        0.0,
        rate,
    )


def link_Bps(end: Endpoint, world: World) -> float:
    """Return the line rate of a GPU's NVLinks, one way."""
    return world.number("gpu", world.text("server", end.graph.id, "gpu"), "scaleup_oneway_Bps")


def stages(end: Endpoint, world: World, launch: bool) -> tuple[Stage, ...]:
    """Return the stages of a store to a peer; ``launch`` if the CPU starts it and waits for it."""
    store = Stage(
        "store through NVLink",
        Place.GPU,
        "sender",
        world.number("stack", "gpu-copy", "nvlink_store_s"),
        byte_s=1.0 / link_Bps(end, world),
        why="a load or store of the GPU, routed by the NVSwitch",
    )
    signal = Stage(
        "start and see the end",
        Place.CPU,
        "sender",
        world.number("stack", "gpu-copy", "signal_s"),
        cpu=True,
        why="the CPU starts the kernel and sees it is done",
    )
    return (signal, store) if launch else (store,)
