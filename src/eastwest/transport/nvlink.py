"""GPU to GPU inside a server. One idea: a GPU stores into another's memory over what joins them;
no NIC."""

from __future__ import annotations

from eastwest.catalog.world import World
from eastwest.fabric.server import peer_way
from eastwest.transport.endpoint import Endpoint
from eastwest.transport.stages import Path, Place, Stage


def path(name: str, end: Endpoint, world: World, pair: tuple[int, int] = (0, 1)) -> Path:
    """Return the path between two GPUs: of one NVLink domain, or over PCIe where nothing else joins
    them."""
    way = peer_way(end.graph, world, *pair)
    what = "the GPU's NVLink" if way.scale_up else f"PCIe through {way.passes}"
    return Path(
        name,
        stages(end, world, launch=True, pair=pair),
        1 << 30,
        1.0,
        way.rate_Bps,
        way.rate_Bps,
        len(end.graph.gpu),
        ((what, way.rate_Bps),),
        0.0,
        0.0,
        way.rate_Bps,
    )


def joined_directly(end: Endpoint, world: World, pair: tuple[int, int]) -> bool:
    """Whether NVLink (or its like) joins two GPUs of a server."""
    return peer_way(end.graph, world, *pair).scale_up


def stages(
    end: Endpoint, world: World, launch: bool, pair: tuple[int, int] = (0, 1)
) -> tuple[Stage, ...]:
    """Return the stages of a store to a peer; ``launch`` if the CPU starts it and waits for it."""
    way = peer_way(end.graph, world, *pair)
    store = Stage(
        "store through NVLink" if way.scale_up else "store over PCIe",
        Place.GPU if way.scale_up else Place.PCIE,
        "sender",
        world.number("stack", "gpu-copy", "nvlink_store_s") if way.scale_up else way.latency_s,
        byte_s=1.0 / way.rate_Bps,
        why=f"a load or store of the GPU, through {way.passes}",
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
