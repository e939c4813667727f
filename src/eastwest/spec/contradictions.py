"""Facts of a server that cannot all be true. One idea: what is said of a machine is held against
itself before anything is computed from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eastwest.catalog.load import Catalog
from eastwest.units import format_bits_rate

_LINKS = {
    "nvswitch": "NVSwitch",
    "mesh": "direct links between each two",
    "bridge": "bridges in pairs",
    "pcie": "PCIe alone",
}


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What cannot be, the facts that it is about (the likeliest wrong one first), and a way out."""

    keys: tuple[tuple[str, str, str], ...]
    what: str
    hint: str = ""


class _Server:
    """One server's facts, read shortly."""

    def __init__(self, facts: Catalog, id: str) -> None:
        self.facts, self.id = facts, id

    def text(self, attribute: str) -> str:
        """Return a text fact."""
        return str(self.facts.fact("server", self.id, attribute).value)

    def number(self, attribute: str) -> float:
        """Return a number."""
        return float(self.facts.fact("server", self.id, attribute).value)

    def words(self, attribute: str) -> list[str]:
        """Return the words of a text fact, none where it is not known."""
        known = self.facts.has("server", self.id, attribute)
        return self.text(attribute).split() if known else []

    def keys(self, *attributes: str) -> tuple[tuple[str, str, str], ...]:
        """Return the catalog's keys of some of its facts."""
        return tuple(("server", self.id, attribute) for attribute in attributes)


def contradictions(facts: Catalog, server: str) -> Iterator[Contradiction]:
    """Yield what cannot be of a server's facts."""
    one = _Server(facts, server)
    joins = list(_joins(one))
    # How many GPUs a domain holds is told of links that can be.
    yield from joins or _domain(one)
    for found in (_pcie, _places, _nics):
        yield from found(one)


def _joins(one: _Server) -> Iterator[Contradiction]:
    gpu, links, gpus = one.text("gpu"), one.text("gpu_links"), one.number("gpus")
    known = str(one.facts.fact("gpu", gpu, "joins").value).split()
    if links not in _LINKS:
        yield Contradiction(
            one.keys("gpu_links"), f"expected one of {', '.join(_LINKS)}, not '{links}'"
        )
    elif links not in known and links != "pcie":
        able = " or ".join(_LINKS[k] for k in known)
        yield Contradiction(
            (("server", one.id, "gpu"), *one.keys("gpu_links")),
            f"{one.id} joins its GPUs by {_LINKS[links]}, but {gpu} can be joined by {able} only",
            f"describe the server you have: server: {{gpu: {gpu}, gpus: {gpus:.0f}, "
            f"nics: {one.number('nics'):.0f}, nic: {one.text('nic')}}}",
        )
    if (links == "nvswitch") != (one.number("nvswitches") > 0):
        yield Contradiction(
            one.keys("nvswitches", "gpu_links"),
            f"{one.number('nvswitches'):.0f} NVSwitches, but its GPUs are joined by "
            f"{_LINKS.get(links, links)}",
            "set nvswitches and gpu_links together",
        )
    if links == "bridge" and gpus < 2:
        yield Contradiction(one.keys("gpus", "gpu_links"), "a bridge joins two GPUs; there is one")


def _domain(one: _Server) -> Iterator[Contradiction]:
    gpus, domain = one.number("gpus"), one.number("scaleup_domain_gpus")
    links, servers = one.text("gpu_links"), one.number("domain_servers")
    expected = {"bridge": 2.0, "pcie": 1.0}.get(links, gpus * servers)
    if domain != expected:
        of = f"{servers:.0f} servers" if servers > 1 else "one server"
        yield Contradiction(
            one.keys("gpus", "scaleup_domain_gpus", "gpu_links", "domain_servers"),
            f"a domain of {domain:.0f} GPUs cannot be that of {of} of {gpus:.0f}",
            f"to use fewer GPUs of each server, write gpus_per_server: {gpus:.0f}",
        )
    most = float(one.facts.fact("gpu", one.text("gpu"), "scaleup_domain_gpus").value)
    if domain == expected and domain > most:
        yield Contradiction(
            one.keys("gpus", "scaleup_domain_gpus"),
            f"{_LINKS[links]} join at most {most:.0f} {one.text('gpu')}, not {domain:.0f}",
            "gpu_links: pcie, or fewer gpus",
        )


def _pcie(one: _Server) -> Iterator[Contradiction]:
    gen = one.number("pcie_gen")
    known = sorted(id for id in one.facts.ids("pcie") if id.startswith("gen"))
    if f"gen{gen:.0f}" not in known:
        yield Contradiction(
            one.keys("pcie_gen"),
            f"expected a PCIe generation of {', '.join(k[3:] for k in known)}, not {gen:g}",
        )
    if one.text("nic_at") == "switch" and one.number("pcie_switches") < 1:
        yield Contradiction(
            one.keys("nic_at", "pcie_switches"),
            "NICs hang on the GPUs' PCIe switches, but there is no PCIe switch",
            "nic_at: cpu, or pcie_switches: 1 or more",
        )
    if (one.text("gpu_attach") == "c2c") != (one.number("c2c_Bps") > 0):
        yield Contradiction(
            one.keys("gpu_attach", "c2c_Bps"),
            f"its GPUs hang on {one.text('gpu_attach')}, but their link to the CPU's chip has "
            f"{format_bits_rate(one.number('c2c_Bps'))}",
        )


def _places(one: _Server) -> Iterator[Contradiction]:
    hubs = {f"switch{n}" for n in range(int(one.number("pcie_switches")))}
    hubs |= {f"socket{n}" for n in range(int(one.number("sockets")))}
    for attribute, count in (("gpu_places", "gpus"), ("nic_places", "nics")):
        places, wanted = one.words(attribute), int(one.number(count))
        if places and len(places) != wanted:
            yield Contradiction(
                one.keys(attribute, count), f"{len(places)} places for {wanted} {count}"
            )
        for lost in [place for place in places if place not in hubs][:1]:
            yield Contradiction(
                one.keys(attribute),
                f"there is no {lost} for the {'GPU' if count == 'gpus' else 'NIC'} to hang on",
                f"there are {', '.join(sorted(hubs)[:12])}",
            )
    sockets = one.words("switch_sockets")
    if sockets and len(sockets) != int(one.number("pcie_switches")):
        yield Contradiction(
            one.keys("switch_sockets", "pcie_switches"),
            f"{len(sockets)} sockets for {one.number('pcie_switches'):.0f} PCIe switches",
        )
    if any(int(socket) >= one.number("sockets") for socket in sockets):
        yield Contradiction(
            one.keys("switch_sockets", "sockets"),
            f"there are {one.number('sockets'):.0f} sockets, counted from 0",
        )
    for pair in one.words("pairs"):
        a, b = (int(end) for end in pair.partition(":")[0].split("-"))
        if a == b or max(a, b) >= one.number("gpus"):
            yield Contradiction(
                one.keys("pairs", "gpus"),
                f"{pair} does not join two of {one.number('gpus'):.0f} GPUs, counted from 0",
            )
            break


def _nics(one: _Server) -> Iterator[Contradiction]:
    nic = one.text("nic")
    port_Bps = float(one.facts.fact("nic", nic, "port_Bps").value)
    port_Bps *= float(one.facts.fact("nic", nic, "ports").value)
    if one.number("nic_Bps") > port_Bps * (1 + 1e-9):
        yield Contradiction(
            (*one.keys("nic_Bps"), ("nic", nic, "port_Bps")),
            f"{nic} has {format_bits_rate(port_Bps)}, "
            f"not {format_bits_rate(one.number('nic_Bps'))}",
        )
    slots = one.facts.has("server", one.id, "nic_slots")
    if slots and one.number("nics") > one.number("nic_slots"):
        yield Contradiction(
            one.keys("nics", "nic_slots"),
            f"{one.number('nics'):.0f} NICs do not fit in {one.number('nic_slots'):.0f} PCIe slots",
        )
