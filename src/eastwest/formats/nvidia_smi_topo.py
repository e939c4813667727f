"""``nvidia-smi topo -m``. One idea: a matrix tells which devices share a PCIe switch, a socket, or
NVLinks.

::

            GPU0  GPU1  NIC0   CPU Affinity  NUMA Affinity
    GPU0     X    NV12  PXB    0-15          0
    GPU1    NV12   X    SYS    16-31         1
    NIC0    PXB   SYS    X

PIX and PXB are ways through PCIe switches alone; PHB, NODE and SYS pass the CPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from eastwest.errors import UserError
from eastwest.formats.machine import Machine, sockets_of, switched_links

TITLE = "the matrix of nvidia-smi topo -m"
MOST_DEVICES = 128

_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_CELL = re.compile(r"X|SYS|NODE|PHB|PXB|PIX|SOC|NV[0-9]{1,2}")
_DEVICE = re.compile(r"GPU[0-9]+|NIC[0-9]+|[a-z]+[0-9a-z]*_[0-9a-z_]+")
_NEAR = ("PIX", "PXB")


def recognises(text: str) -> bool:
    """Whether a line of the text begins the matrix."""
    return any(re.match(r"\s*GPU0\s+(GPU1|NIC0|CPU|X)\b", line) for line in _lines(text))


def _lines(text: str) -> list[str]:
    return _ESCAPE.sub("", text).splitlines()


@dataclass(frozen=True, slots=True)
class _Matrix:
    """The devices and what stands between each two; NUMA node by device, -1 where none stands."""

    name: str
    devices: tuple[str, ...]
    cells: dict[tuple[int, int], str]
    numa: tuple[int, ...]

    def indices(self, gpus: bool) -> list[int]:
        """Return the numbers of all GPUs, or of all others."""
        return [i for i, device in enumerate(self.devices) if device.startswith("GPU") == gpus]


def read(text: str, name: str) -> Machine:
    """Return what the matrix tells.

    Raises UserError with file and line for a matrix that is cut, whose rows and columns differ, or
    whose halves do.
    """
    found = _matrix(_lines(text), name)
    gpus, nics = found.indices(True), found.indices(False)
    near = [n for n in nics if any(found.cells[g, n] in _NEAR for g in gpus)]
    used = near or nics
    groups = _groups(found, [*gpus, *used])
    nvlinks = {
        (a, b): int(found.cells[gpus[a], gpus[b]][2:])
        for a in range(len(gpus))
        for b in range(a + 1, len(gpus))
        if found.cells[gpus[a], gpus[b]].startswith("NV")
    }
    links, each, pairs = switched_links(len(gpus), nvlinks)
    sockets, of = _sockets(found, groups)
    places, switch_sockets = _places(groups, of)
    return Machine(
        where=name,
        gpus=len(gpus),
        nics=len(used),
        storage_nics=len(nics) - len(used),
        nic_vendor="NVIDIA" if re.search(r"\bmlx5_", text) else "",
        gpu_links=links,
        gpu_nvlinks=each,
        pairs=pairs,
        gpu_places=tuple(places[g] for g in gpus),
        nic_places=tuple(places[n] for n in used),
        switch_sockets=switch_sockets,
        sockets=sockets,
    )


def _matrix(lines: list[str], name: str) -> _Matrix:
    at = next(i for i, line in enumerate(lines) if line.split()[:1] == ["GPU0"])
    header = _split(lines[at])
    devices = tuple(word for word in header if _DEVICE.fullmatch(word))
    if len(devices) > MOST_DEVICES:
        raise UserError(f"more than {MOST_DEVICES} devices", where=f"{name}:{at + 1}")
    if len(set(devices)) < len(devices):
        raise UserError("a device has two columns", where=f"{name}:{at + 1}")
    numa_at = header.index("NUMA Affinity") if "NUMA Affinity" in header else None
    cells: dict[tuple[int, int], str] = {}
    numa = [-1] * len(devices)
    for row, device in enumerate(devices):
        number = at + 1 + row
        words = _split(lines[number]) if number < len(lines) else []
        where = f"{name}:{number + 1}"
        if not words or words[0] != device:
            said = f"'{words[0][:20]}'" if words else "nothing"
            raise UserError(
                f"rows and columns differ: expected the row of {device}, not {said}",
                where=where,
                hint="is the matrix whole?",
            )
        found = words[1 : 1 + len(devices)]
        if len(found) < len(devices) or not all(_CELL.fullmatch(cell) for cell in found):
            bad = next((c for c in found if not _CELL.fullmatch(c)), "")
            what = f"'{bad[:20]}' is no connection" if bad else f"{len(found)} cells"
            raise UserError(
                f"{what}; expected {len(devices)} of X, NV#, PIX, PXB, PHB, NODE or SYS",
                where=where,
            )
        for column, cell in enumerate(found):
            if (cell == "X") != (row == column):
                raise UserError("X stands where a device meets itself, only there", where=where)
            if column < row and cells[column, row] != cell:
                what = f"{device} to {devices[column]} is {cell} in the row"
                raise UserError(f"{what}, {cells[column, row]} in the column", where=where)
            cells[row, column] = cell
        if numa_at is not None and len(words) > numa_at + 1:
            numa[row] = _node(words[numa_at + 1])
    return _Matrix(name, devices, cells, tuple(numa))


def _split(line: str) -> list[str]:
    """Return the cells of a line: between tabs, or between wide gaps where tabs were lost."""
    if "\t" in line:
        return [cell.strip() for cell in line.strip("\n").lstrip("\t").split("\t")]
    named = re.sub(r"(CPU|NUMA) Affinity", r"\1_Affinity", line)
    named = named.replace("GPU NUMA ID", "GPU_NUMA_ID")
    return [word.replace("_Affinity", " Affinity") for word in named.split()]


def _node(text: str) -> int:
    found = re.match(r"[0-9]{1,3}", text)
    return int(found[0]) if found else -1


def _groups(found: _Matrix, devices: list[int]) -> list[list[int]]:
    """Return devices that reach each other through PCIe switches alone, group by group."""
    groups: list[list[int]] = []
    for device in devices:
        # GPUs that see NVLinks between them say nothing of PCIe: NICs join their groups.
        home = next(
            (g for g in groups if any(found.cells[device, other] in _NEAR for other in g)), None
        )
        if home is None:
            groups.append([device])
            continue
        home.append(device)
        for other in [g for g in groups if g is not home]:
            if any(found.cells[device, o] in _NEAR for o in other):
                home += other
                groups.remove(other)
    return [sorted(group) for group in sorted(groups, key=min)]


def _sockets(found: _Matrix, groups: list[list[int]]) -> tuple[int, list[int]]:
    """Return how many sockets there are, and the one of each group."""
    nodes = [max((found.numa[d] for d in group), default=-1) for group in groups]
    if any(node >= 0 for node in nodes):
        for i, node in enumerate(nodes):
            if node < 0:
                nodes[i] = _neighbour(found, groups, nodes, i)
        return sockets_of(nodes)
    return 1, [0] * len(groups)


def _neighbour(found: _Matrix, groups: list[list[int]], nodes: list[int], i: int) -> int:
    """Return the node of the nearest group that has one, for NICs whose node is not shown."""
    order = ("PHB", "NODE", "SYS", "SOC")
    known = [
        (order.index(cell), nodes[j])
        for j, group in enumerate(groups)
        if nodes[j] >= 0
        for cell in [found.cells[groups[i][0], group[0]]]
        if cell in order
    ]
    return min(known)[1] if known else max(nodes)


def _places(groups: list[list[int]], sockets: list[int]) -> tuple[dict[int, str], tuple[int, ...]]:
    """Return the place of each device, and the socket of each switch: a group of several devices
    shares a switch, one alone hangs at the CPU."""
    places: dict[int, str] = {}
    switch_sockets: list[int] = []
    for group, socket in zip(groups, sockets, strict=True):
        if len(group) > 1:
            place = f"switch{len(switch_sockets)}"
            switch_sockets.append(socket)
        else:
            place = f"socket{socket}"
        places |= dict.fromkeys(group, place)
    return places, tuple(switch_sockets)
