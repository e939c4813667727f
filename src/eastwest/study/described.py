"""A cluster file from what the machine prints. One idea: what was told is written down, and what
was assumed stands beside its line, to be corrected."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eastwest.catalog.load import catalog
from eastwest.catalog.technology import Technology, technology, technology_ids
from eastwest.catalog.world import World, shared_nominal
from eastwest.errors import UserError
from eastwest.formats import read_machine
from eastwest.formats.machine import Machine
from eastwest.spec.cluster import parse_cluster
from eastwest.study.check import check
from eastwest.units import format_bits_rate

SEQUENCES_PER_GPU = 64  # a batch that any layout over these GPUs can share
# Models and sequences to begin with: the first that the machines can hold.
JOBS = (("llama-3-8b", 4096), ("gpt2-xl", 1024), ("gpt2", 1024))
ASSUMED = "assumed: not told by the files"


@dataclass(frozen=True, slots=True)
class _Part:
    """A name of the catalog, and why it was taken."""

    id: str
    why: str


def cluster_text(files: list[Path], servers: int = 2, gpu: str = "", nic: str = "") -> str:
    """Return a cluster file with the server that the files show.

    ``gpu`` and ``nic`` are entries of the catalog, where the files do not name them. Raises
    UserError for files that cannot be read, and where a GPU or NIC is neither told nor given.
    """
    machine, world = read_machine(files), shared_nominal()
    if not machine.nics:
        raise UserError("there is no NIC in it", where=machine.where)
    a_gpu = _gpu(machine, gpu, world)
    a_nic = _nic(machine, nic, a_gpu.id, world)
    rate_Bps = machine.nic_Bps or world.number("nic", a_nic.id, "port_Bps")
    tech, switch = _network(a_nic.id, rate_Bps, world)
    head = [
        f"# Written by eastwest init from {', '.join(file.name for file in files)}.",
        "name: my-cluster",
        _line("servers", servers, ASSUMED, ""),
        "server:",
        *_server(machine, a_gpu, a_nic),
        "networks:",
        "  compute:",
        _line("technology", tech.name, ASSUMED, "    "),
        _line("switch", switch, f"{ASSUMED} (eastwest facts switch)", "    "),
        "    topology: fat-tree",
        "job:",
    ]
    batch = servers * machine.gpus * SEQUENCES_PER_GPU
    texts = ["\n".join([*head, *_job(model, batch, length)]) + "\n" for model, length in JOBS]
    return next((text for text in texts if _can_run(text)), texts[-1])


def _job(model: str, batch: int, sequence: int) -> list[str]:
    return [
        _line("model", model, "your model, or its config.json", "  "),
        f"  global_batch: {batch}",
        f"  sequence: {sequence}",
    ]


def _can_run(text: str) -> bool:
    try:
        check(parse_cluster(text))
    except UserError:
        return False
    return True


def _server(machine: Machine, gpu: _Part, nic: _Part) -> list[str]:
    rate = format_bits_rate(machine.nic_Bps).replace(" ", "") if machine.nic_Bps else ""
    links = machine.gpu_links
    told: list[tuple[str, object, str]] = [
        ("gpu", gpu.id, gpu.why),
        ("gpus", machine.gpus, ""),
        ("gpu_links", links, "" if links else ASSUMED),
        ("pairs", machine.pairs, ""),
        ("nics", machine.nics, ""),
        ("nic", nic.id, nic.why),
        ("nic_rate", rate, ""),
        ("storage_nics", machine.storage_nics or "", "NICs far from every GPU"),
        ("sockets", machine.sockets or "", ""),
        ("cpu", machine.cpu, ""),
        ("pcie_gen", machine.pcie_gen or "", ""),
        ("pcie_lanes", machine.pcie_lanes or "", ""),
        ("pcie_switches", len(machine.switch_sockets) if machine.gpu_places else "", ""),
        ("switch_sockets", _listed(machine.switch_sockets), ""),
        ("gpu_places", _listed(machine.gpu_places), ""),
        ("nic_places", _listed(machine.nic_places), ""),
    ]
    return [_line(key, value, why, "  ") for key, value, why in told if value != ""]


def _listed(values: tuple[object, ...]) -> str:
    return f"[{', '.join(str(value) for value in values)}]" if values else ""


def _line(key: str, value: object, why: str, indent: str) -> str:
    return f"{indent}{key}: {value}" + (f"  # {why}" if why else "")


def _told(kind: str, said: str, device: str, world: World) -> _Part | None:
    """Return the entry that the user says, or the PCI device tells; None where neither does."""
    if said:
        return _Part(catalog().require(kind, said), "")
    entry = device.replace(":", "-")
    if world.has("pci-device", entry, kind):
        return _Part(world.text("pci-device", entry, kind), f"PCI device {device}")
    return None


def _gpu(machine: Machine, said: str, world: World) -> _Part:
    """Return the GPU: as said, as the PCI device tells, or the first with so many NVLinks."""
    if told := _told("gpu", said, machine.gpu_device, world):
        return told
    fitting = [
        id
        for id in catalog().ids("gpu")
        if machine.gpu_nvlinks
        and world.text("gpu", id, "vendor") == "NVIDIA"
        and world.number("gpu", id, "scaleup_links") == machine.gpu_nvlinks
        and machine.gpu_links in world.text("gpu", id, "joins").split()
        and machine.gpus <= max(2, world.number("gpu", id, "scaleup_domain_gpus"))
    ]
    if not fitting:
        raise UserError(
            "the files do not name the GPU",
            where=machine.where,
            hint="say it, such as --gpu h100-sxm; eastwest facts gpu lists them",
        )
    kin = _kin(machine, fitting, world)
    likeliest = world.text("server", kin, "gpu") if kin else fitting[0]
    others = ", ".join(id for id in fitting if id != likeliest)
    return _Part(
        likeliest,
        f"assumed: has {machine.gpu_nvlinks} NVLinks" + (f", as have {others}" if others else ""),
    )


def _kin(machine: Machine, gpus: list[str], world: World) -> str:
    """Return the server of the catalog that is most like the machine, of those with such GPUs."""

    def like(server: str) -> tuple[bool, bool, bool]:
        nic = world.text("server", server, "nic")
        return (
            machine.nic_vendor in ("", world.text("nic", nic, "vendor")),
            world.number("server", server, "gpus") == machine.gpus,
            world.number("server", server, "nics") == machine.nics,
        )

    servers = [s for s in catalog().ids("server") if world.text("server", s, "gpu") in gpus]
    return max(servers, key=like, default="")


def _nic(machine: Machine, said: str, gpu: str, world: World) -> _Part:
    """Return the NIC: as said, as the PCI device tells, or that of the server most like it."""
    if told := _told("nic", said, machine.nic_device, world):
        return told
    if kin := _kin(machine, [gpu], world):
        return _Part(world.text("server", kin, "nic"), f"assumed: that of {kin}")
    raise UserError(
        "the files do not name the NIC",
        where=machine.where,
        hint="say it, such as --nic cx7-ndr; eastwest facts nic lists them",
    )


def _network(nic: str, rate_Bps: float, world: World) -> tuple[Technology, str]:
    """Return the first technology that the NIC carries, and a switch of it that is fast enough."""
    card = world.text("nic", nic, "protocols")
    own = [technology(world, id) for id in technology_ids(world)]
    special = [tech for tech in own if nic in tech.only_nics]
    speaks_ib = any(word in card for word in ("IB", "NDR", "HDR", "XDR"))
    usual = "infiniband" if speaks_ib else "roce" if "RoCE" in card else "ethernet-tcp"
    for tech in (*special, *(t for t in own if t.name == usual and t.carried_by(nic))):
        for switch in tech.switches:
            if world.number("switch", switch, "port_Bps") >= rate_Bps:
                return tech, switch
    raise UserError(f"no switch of the catalog takes {nic}", hint="write the file by hand")
