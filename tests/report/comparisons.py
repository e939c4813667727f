"""A comparison by hand, of likely size: nine technologies for 1,024 GPUs, one of them refused."""

from __future__ import annotations

import math
from dataclasses import replace

from eastwest.catalog.load import catalog
from eastwest.study.compare import Band, Comparison, Option, Reason
from eastwest.table import Column, Table
from eastwest.transport.stages import Path, Place, Stage
from report import plans

SIZES = tuple(2**p for p in range(10, 34))
RDMA = (
    Stage(
        "post",
        Place.CPU,
        "sender",
        0.12e-6,
        cpu=True,
        why="The proxy thread writes a work request.",
    ),
    Stage("doorbell", Place.PCIE, "sender", 0.2e-6, why="A posted write reaches the NIC."),
    Stage(
        "DMA read",
        Place.PCIE,
        "sender",
        0.5e-6,
        byte_s=2e-11,
        pipelined=True,
        why="The NIC reads GPU memory.",
    ),
    Stage("segment", Place.NIC, "sender", 0.25e-6, packet_s=5e-9, pipelined=True),
    Stage("cable", Place.WIRE, "network", 0.25e-6, byte_s=2e-11, pipelined=True),
    Stage("switches", Place.SWITCH, "network", 0.6e-6),
    Stage("receive", Place.NIC, "receiver", 0.25e-6),
    Stage("DMA write", Place.PCIE, "receiver", 0.3e-6, byte_s=2e-11, pipelined=True),
    Stage("poll", Place.CPU, "receiver", 0.06e-6, cpu=True),
)
ROCE = (*RDMA[:5], replace(RDMA[5], message_s=1.6e-6), *RDMA[6:])
COPY_OUT = Stage(
    "copy to host",
    Place.GPU,
    "sender",
    6e-6,
    byte_s=2e-11,
    copies=1,
    why="A copy is launched on the GPU.",
)
COPY_IN = Stage("copy to GPU", Place.GPU, "receiver", 6e-6, byte_s=2e-11, copies=1)
HOST = Stage("host memory", Place.MEMORY, "sender", 0.1e-6)
STAGED = (COPY_OUT, HOST, *RDMA, HOST, COPY_IN)
TCP = (
    COPY_OUT,
    Stage("system call", Place.CPU, "sender", 0.3e-6, cpu=True),
    Stage("copy to kernel", Place.CPU, "sender", 0.2e-6, byte_s=1e-10, copies=1, cpu=True),
    Stage("TCP/IP out", Place.CPU, "sender", 1.5e-6, cpu=True),
    RDMA[1],
    Stage("NIC out", Place.NIC, "sender", 0.8e-6),
    Stage("cable", Place.WIRE, "network", 0.3e-6, byte_s=8e-11),
    Stage("switches", Place.SWITCH, "network", 2.4e-6),
    Stage(
        "interrupt",
        Place.CPU,
        "receiver",
        4.5e-6,
        cpu=True,
        interrupts=1,
        why="Coalescing adds to the wait.",
    ),
    Stage("TCP/IP in", Place.CPU, "receiver", 2.5e-6, cpu=True),
    Stage("context switch", Place.CPU, "receiver", 3e-6, cpu=True, context_switches=1),
    Stage("copy to user", Place.CPU, "receiver", 0.2e-6, byte_s=1e-10, copies=1, cpu=True),
    COPY_IN,
)
NVME = (
    *TCP[:-2],
    Stage("store", Place.DEVICE, "receiver", 75e-6, why="The drive takes the block."),
    *TCP[-2:],
)


def path(technology: str, stages: tuple[Stage, ...], rate_Bps: float) -> Path:
    return Path(
        technology,
        stages,
        4096,
        0.98,
        rate_Bps,
        rate_Bps,
        8,
        (("NIC", rate_Bps),),
        8.0,
        0.0,
        rate_Bps,
    )


def option(
    technology: str,
    label: str,
    stages: tuple[Stage, ...],
    busbw_Bps: float,
    step_s: float,
    use: str = "data plane",
) -> Option:
    """Return an option whose step is 7.9 s of compute and whose rest is exposed communication."""
    wait = step_s - 7.9
    parts = (
        ("compute", 7.9),
        ("pipeline bubble", 0.15 * wait + 0.5),
        ("exposed data parallel", 0.6 * wait - 0.4),
        ("exposed pipeline", 0.25 * wait - 0.1),
    )
    way = path(technology, stages, busbw_Bps / 8)
    latency = way.latency_s(8)
    return Option(
        technology,
        label,
        use,
        technology == "infiniband-gpudirect",
        technology == "roce-gpudirect",
        "",
        way,
        latency,
        busbw_Bps,
        step_s,
        parts,
        1 - 7.9 / step_s,
        8.0 + latency * 1e6,
        0.0 if stages is RDMA else 3.2e11,
        1480.0 if "infini" in technology else 1210.0,
        92.0,
        Band(step_s * 0.94, step_s * 1.09),
        Band(latency * 0.8, latency * 1.4),
        Band(busbw_Bps * 0.9, busbw_Bps * 1.05),
        Band(1100.0, 1900.0),
    )


def refused() -> Option:
    nan = math.nan
    reason = "the switch qm9700 speaks InfiniBand only; Omni-Path needs its own switches"
    return Option(
        "omni-path",
        "Omni-Path 400G",
        "data plane",
        False,
        False,
        reason,
        None,
        nan,
        nan,
        nan,
        (),
        nan,
        nan,
        nan,
        nan,
        nan,
    )


OPTIONS = (
    option("infiniband-gpudirect", "InfiniBand NDR + GPUDirect RDMA", RDMA, 370e9, 9.31),
    option("infiniband-staged", "InfiniBand NDR, host-staged", STAGED, 190e9, 10.6),
    option("roce-gpudirect", "RoCEv2 400G + GPUDirect RDMA", ROCE, 352e9, 9.38),
    option("roce-staged", "RoCEv2 400G, host-staged", STAGED, 180e9, 10.7),
    option("tcp-400g", "TCP/IP, 8 × 400GbE", TCP, 41e9, 18.4),
    option("tcp-100g", "TCP/IP, 8 × 100GbE", TCP, 36e9, 19.9),
    option("nvmeof-rdma", "NVMe-oF (through the store)", NVME, 9e9, 52.0, "storage"),
    option("gigabit", "Gigabit Ethernet", TCP, 0.11e9, 3890.0, "management"),
    refused(),
)


def bill() -> Table:
    columns = (
        Column("part", "part", right=False),
        Column("what", "what", right=False),
        Column("count", "count", lambda v: f"{v:,}"),
        Column("unit_USD", "$ each", lambda v: f"${v:,.0f}"),
        Column("sum_USD", "$", lambda v: f"${v:,.0f}"),
        Column("power_W", "W", lambda v: f"{v:,.0f}"),
        Column("note", "note", right=False),
    )
    lines = [
        ("qm9700", "leaf switches", 32, 23500.0, 36000.0, ""),
        ("qm9700", "spine switches", 16, 23500.0, 18000.0, ""),
        ("cx7-ndr", "NICs", 1024, 1750.0, 25600.0, "in the server's price where it brings them"),
        ("xcvr-mm-800", "transceivers at switches", 1536, 1100.0, 23000.0, ""),
        ("xcvr-mm-400", "transceivers at NICs", 512, 900.0, 4600.0, ""),
        ("fibre-mpo", "fibres", 2048, 120.0, 0.0, "30 m"),
    ]
    rows = [(p, w, n, u, n * u, watts, note) for p, w, n, u, watts, note in lines]
    total = ("total", "", None, None, sum(r[4] for r in rows), sum(r[5] for r in rows), "")
    return Table("Bill of the compute network (infiniband)", columns, (*rows, total))


def busbw(peak_Bps: float, half_bytes: float) -> tuple[float, ...]:
    """Return a curve that reaches half of its peak at the given size."""
    return tuple(peak_Bps * s / (s + half_bytes) for s in SIZES)


def comparison() -> Comparison:
    """Return the whole fixture."""
    facts = catalog()
    words = ("server dgx-h100", "switch qm9700", "nic cx7-ndr", "nccl net")
    used = [fact for word in words for fact in facts.search(word)]
    curves = tuple(
        (o.label, busbw(o.busbw_Bps, o.latency_s * 40 * o.busbw_Bps / 2))
        for o in OPTIONS
        if not o.refused
    )
    return Comparison(
        "Llama-3-70B on 1,024 H100 in 128 DGX H100 · tensor 8 × pipeline 4 × data 32 · 1,024 "
        "sequences of 8,192",
        4_400_000_000,
        OPTIONS,
        "Choose InfiniBand NDR with GPUDirect RDMA. Against TCP/IP it saves 9.1 s of each "
        "step, half of the GPUs' time.",
        (
            Reason(
                5.9,
                "the kernel copies each byte 4 times at 10 GB/s a core, and 112 cores a server "
                "are not enough",
            ),
            Reason(
                2.1, "the payload crosses host memory on both sides, which all eight GPUs share"
            ),
            Reason(1.1, "3 interrupts and context switches a message, 4 µs each"),
        ),
        (
            "RoCEv2 400G + GPUDirect RDMA cannot be told apart from it within what is known "
            "(8.8 s to 10.2 s); price, "
            "operations and congestion tuning decide between them.",
            "TCP/IP would do below 32 GPUs, or above 60 s of compute a step.",
            "Omni-Path 400G is refused: the switch qm9700 speaks InfiniBand only.",
        ),
        SIZES,
        curves,
        8,
        plans.two_tiers(),
        bill(),
        Table("", (Column("technology", "technology"),), tuple((o.label,) for o in OPTIONS)),
        tuple(used),
        200,
        "TCP/IP, 8 × 400GbE",
    )
