"""A comparison by hand, of likely size: nine technologies for 1,024 GPUs, one of them refused."""

from __future__ import annotations

from dataclasses import replace

from eastwest.catalog.load import catalog
from eastwest.design.bom import Bill, Line
from eastwest.study.bands import Band
from eastwest.study.comparison import Comparison, Option, Refused
from eastwest.study.reasons import Reason
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
        technology=technology,
        label=label,
        use=use,
        in_file=technology == "roce-gpudirect",
        path=way,
        latency_s=latency,
        busbw_Bps=busbw_Bps,
        step_s=step_s,
        parts=parts,
        idle_share=1 - 7.9 / step_s,
        cpu_cores=8.0 + latency * 1e6,
        memory_Bps=0.0 if stages is RDMA else 3.2e11,
        network_USD_per_gpu=1480.0 if "infini" in technology else 1210.0,
        network_W_per_gpu=92.0,
        step_band=Band(step_s * 0.94, step_s * 1.09),
        latency_band=Band(latency * 0.8, latency * 1.4),
        busbw_band=Band(busbw_Bps * 0.9, busbw_Bps * 1.05),
        cost_band=Band(1100.0, 1900.0),
    )


REFUSED = Refused(
    technology="omni-path",
    label="Omni-Path 400G",
    use="data plane",
    in_file=False,
    reason="the switch qm9700 speaks InfiniBand only; Omni-Path needs its own switches",
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
)


def bill() -> Bill:
    switch, nic, cable = "switch", "nic", "cable"
    lines = [
        (switch, "qm9700", "leaf switches", 32, 23500.0, 36000.0, ""),
        (switch, "qm9700", "spine switches", 16, 23500.0, 18000.0, ""),
        (nic, "cx7-ndr", "NICs", 1024, 1750.0, 25600.0, "where the server does not bring them"),
        (cable, "xcvr-mm-800", "transceivers at switches", 1536, 1100.0, 23000.0, ""),
        (cable, "xcvr-mm-400", "transceivers at NICs", 512, 900.0, 4600.0, ""),
        (cable, "fibre-mpo", "fibres", 2048, 120.0, 0.0, "30 m"),
    ]
    return Bill(
        "compute",
        "infiniband",
        tuple(
            Line(k, p, what, n, usd, n * usd, watt, note)
            for k, p, what, n, usd, watt, note in lines
        ),
    )


def busbw(peak_Bps: float, half_bytes: float) -> tuple[float, ...]:
    """Return a curve that reaches half of its peak at the given size."""
    return tuple(peak_Bps * s / (s + half_bytes) for s in SIZES)


def comparison() -> Comparison:
    """Return the whole fixture."""
    facts = catalog()
    words = ("server dgx-h100", "switch qm9700", "nic cx7-ndr", "nccl net")
    used = [fact for word in words for fact in facts.search(word)]
    curves = tuple(
        (o.label, busbw(o.busbw_Bps, o.latency_s * 40 * o.busbw_Bps / 2)) for o in OPTIONS
    )
    return Comparison(
        cluster_line="Llama-3-70B on 1,024 H100 in 128 DGX H100 · tensor 8 × pipeline 4 × data 32 "
        "· 1,024 sequences of 8,192",
        gradient_bytes=4_400_000_000,
        options=OPTIONS,
        refused=(REFUSED,),
        best="infiniband-gpudirect",
        foil="tcp-400g",
        choice="Choose InfiniBand NDR with GPUDirect RDMA. Against TCP/IP it saves 9.1 s of each "
        "step, half of the GPUs' time.",
        reasons=(
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
        remarks=(
            "RoCEv2 400G + GPUDirect RDMA cannot be told apart from it within what is known "
            "(8.8 s to 10.2 s); price, operations and congestion tuning decide between them.",
            "TCP/IP would do below 32 GPUs, or above 60 s of compute a step.",
            "Omni-Path 400G is refused: the switch qm9700 speaks InfiniBand only.",
        ),
        busbw_sizes_bytes=SIZES,
        busbw_Bps=curves,
        line_Bps=8 * 50e9,
        waterfall_bytes=8,
        plan=plans.two_tiers(),
        bill=bill(),
        table=Table("", (Column("technology", "technology"),), tuple((o.label,) for o in OPTIONS)),
        facts=tuple(used),
        uncertainty_worlds=200,
    )
