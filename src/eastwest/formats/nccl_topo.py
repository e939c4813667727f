"""NCCL's topology XML (``NCCL_TOPO_DUMP_FILE``). One idea: a tree of PCI devices under CPUs tells
where each GPU and NIC hangs.

::

    <system>
      <cpu numaid="0" vendor="AuthenticAMD">
        <pci busid="0000:01:00.0" class="0x060400">                a PCIe switch
          <pci class="0x030200" device="0x20b2" …> <gpu> <nvlink …/> </gpu> </pci>
          <pci class="0x020700" device="0x101b" …> <nic> <net speed="200000"/> </nic> </pci>

Read by expat, which stops at the first document type, entity or depth that no such file has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from eastwest.errors import UserError
from eastwest.formats.machine import Machine, sockets_of, switched_links

TITLE = "the XML of NCCL_TOPO_DUMP_FILE"
DEEPEST = 64
MOST_ELEMENTS = 20_000
MOST_DEVICES = 128

_GPU, _ACCELERATOR, _NIC = ("0x0300", "0x0302"), "0x1200", "0x02"
_GENERATION = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
_NVSWITCH_CLASS = "0x068000"


@dataclass(slots=True)
class _Element:
    """One element of the tree, and the line where it begins."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[_Element] = field(default_factory=list)

    def get(self, name: str) -> str:
        """Return an attribute, empty where it is not."""
        return self.attributes.get(name, "")

    def walk(self) -> Iterator[_Element]:
        """Yield the element and all below it, in the order of the file."""
        yield self
        for child in self.children:
            yield from child.walk()


def recognises(text: str) -> bool:
    """Whether the text is XML."""
    return text.lstrip("\ufeff \t\r\n").startswith("<")


def read(text: str, name: str) -> Machine:
    """Return what the XML tells.

    Raises UserError with file and line for XML that is cut, hostile or of something else.
    """
    system = _parse(text, name)
    _check(system, name)
    cpus = [e for e in system.children if e.tag == "cpu"]
    found = [(cpu, device, hub) for cpu in cpus for device, hub in _devices(cpu)]
    gpus = [f for f in found if _is_gpu(f[1])]
    nics = [f for f in found if not _is_gpu(f[1])]
    if not gpus:
        raise UserError("there is no GPU in it", where=name)
    if len(found) > MOST_DEVICES:
        raise UserError(f"more than {MOST_DEVICES} devices", where=name)
    arm = any("arm" in cpu.get("arch") or "aarch" in cpu.get("arch") for cpu in cpus)
    sockets, of = sockets_of([_whole(cpu.get("numaid"), 0) for cpu in cpus], arm)
    socket = {id(cpu): s for cpu, s in zip(cpus, of, strict=True)}
    hubs = {id(hub): n for n, hub in enumerate(_unique(hub for _, _, hub in found))}
    switch_sockets = {hubs[id(hub)]: socket[id(cpu)] for cpu, _, hub in found if hub is not None}
    near = [n for n in nics if any(n[2] is g[2] is not None for g in gpus)] or nics

    def place(cpu: _Element, hub: _Element | None) -> str:
        return f"socket{socket[id(cpu)]}" if hub is None else f"switch{hubs[id(hub)]}"

    links, each, pairs = _nvlinks([device for _, device, _ in gpus])
    gens = [_GENERATION.get(_number(d.get("link_speed")), 0) for _, d, _ in gpus]
    lanes = [_whole(d.get("link_width"), 0) for _, d, _ in gpus]
    nets = [net for _, device, _ in near for net in device.walk() if net.tag == "net"]
    return Machine(
        where=name,
        gpus=len(gpus),
        nics=len(near),
        storage_nics=len(nics) - len(near),
        gpu_device=_device(gpus[0][1]),
        nic_device=_device(near[0][1]) if near else "",
        nic_Bps=max((_number(net.get("speed")) for net in nets), default=0.0) * 1e6 / 8,
        gpu_links=links,
        gpu_nvlinks=each,
        pairs=pairs,
        gpu_places=tuple(place(cpu, hub) for cpu, _, hub in gpus),
        nic_places=tuple(place(cpu, hub) for cpu, _, hub in near),
        switch_sockets=tuple(switch_sockets[n] for n in sorted(switch_sockets)),
        sockets=sockets,
        pcie_gen=min(gens),
        pcie_lanes=min(lanes),
        cpu=_vendor(cpus[0], arm),
    )


def _parse(text: str, name: str) -> _Element:
    """Return the tree. Raises UserError at the line where it is not one."""
    parser = expat.ParserCreate()
    stack: list[_Element] = []
    roots: list[_Element] = []
    count = 0

    def refuse(what: str, hint: str = "") -> None:
        raise UserError(what, f"{name}:{parser.CurrentLineNumber}", hint)

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if len(stack) >= DEEPEST or count > MOST_ELEMENTS:
            refuse("deeper or larger than any topology of a server")
        element = _Element(tag, attributes, parser.CurrentLineNumber)
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def forbidden(*_: object) -> int:
        refuse("a topology has no document type and no entities", "the file is not NCCL's")
        return 0

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.StartDoctypeDeclHandler = forbidden
    parser.EntityDeclHandler = forbidden
    parser.ExternalEntityRefHandler = forbidden
    try:
        parser.Parse(text.lstrip("\ufeff \t\r\n"), True)
    except expat.ExpatError as error:
        what = f"the XML is broken or cut: {expat.ErrorString(error.code)}"
        raise UserError(what, f"{name}:{error.lineno}") from None
    if roots[0].tag != "system":
        raise UserError(
            f"expected <system>, not <{roots[0].tag[:40]}>",
            f"{name}:{roots[0].line}",
            "NCCL_TOPO_DUMP_FILE writes it",
        )
    return roots[0]


def _check(system: _Element, name: str) -> None:
    """Refuse a tree that no machine is: a device twice (or in itself), or links to itself."""
    seen: dict[str, int] = {}
    for element in system.walk():
        bus = element.get("busid")
        if element.tag == "pci" and bus:
            if bus in seen:
                raise UserError(
                    f"device {bus[:20]} stands twice, first in line {seen[bus]}",
                    f"{name}:{element.line}",
                )
            seen[bus] = element.line
            for link in (e for child in element.children for e in child.children):
                if link.tag == "nvlink" and link.get("target") == bus:
                    raise UserError(f"an NVLink of {bus[:20]} to itself", f"{name}:{link.line}")


def _devices(cpu: _Element) -> Iterator[tuple[_Element, _Element | None]]:
    """Yield each GPU and NIC under a CPU with the PCIe switch right below the CPU that it shares
    with others, None where it hangs alone."""
    for top in cpu.children:
        below = [e for e in top.walk() if e.tag == "pci" and _is_device(e)]
        for device in below:
            yield device, top if len(below) > 1 else None


def _is_device(element: _Element) -> bool:
    return _is_gpu(element) or element.get("class").startswith(_NIC)


def _is_gpu(element: _Element) -> bool:
    kind = element.get("class")
    return kind.startswith((*_GPU, _ACCELERATOR)) or any(c.tag == "gpu" for c in element.children)


def _unique(hubs: Iterator[_Element | None]) -> list[_Element]:
    found: list[_Element] = []
    for hub in hubs:
        if hub is not None and not any(hub is other for other in found):
            found.append(hub)
    return found


def _nvlinks(gpus: list[_Element]) -> tuple[str, int, str]:
    """Return what joins the GPUs; nothing where the file does not tell (as those for virtual
    machines do not)."""
    if not any(child.tag == "gpu" for gpu in gpus for child in gpu.children):
        return "", 0, ""
    number = {gpu.get("busid"): n for n, gpu in enumerate(gpus)}
    direct: dict[tuple[int, int], int] = {}
    switched = 0
    for n, gpu in enumerate(gpus):
        links = [e for e in gpu.walk() if e.tag == "nvlink"]
        to_switch = sum(
            _whole(e.get("count"), 1) for e in links if e.get("tclass") == _NVSWITCH_CLASS
        )
        switched = max(switched, to_switch)
        for link in links:
            peer = number.get(link.get("target"))
            if peer is not None and peer > n:
                direct[n, peer] = direct.get((n, peer), 0) + _whole(link.get("count"), 1)
    if switched:
        return "nvswitch", switched, ""
    links_of, each, pairs = switched_links(len(gpus), direct)
    return ("mesh", each, pairs) if links_of == "nvswitch" else (links_of, each, pairs)


def _device(element: _Element) -> str:
    ids = [element.get(name).removeprefix("0x").lower() for name in ("vendor", "device")]
    known = all(re.fullmatch("[0-9a-f]{4}", id) for id in ids) and ids != ["0000", "0000"]
    return ":".join(ids) if known else ""


def _vendor(cpu: _Element, arm: bool) -> str:
    if arm:
        return "arm"
    return {"GenuineIntel": "intel", "AuthenticAMD": "amd"}.get(cpu.get("vendor"), "")


def _number(text: str) -> float:
    found = re.match(r"[0-9]{1,9}(\.[0-9]{1,6})?", text.strip())
    return float(found[0]) if found else 0.0


def _whole(text: str, default: int) -> int:
    return int(text) if re.fullmatch("[0-9]{1,4}", text) else default
