"""A server of one's own. One idea: a few keys are enough, and what they leave open follows from
them, from the server it is like, or from the usual.

::

    server: {gpu: a100-80-pcie, gpus: 2, nics: 1, nic: cx6-dx}
    server: {like: hgx-v100, nics: 1, nic_at: cpu, acs: true}

The description becomes facts of a catalog entry, like any server's, so that nothing after this
knows that it was not in the catalog.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from eastwest.catalog.load import Catalog, Fact
from eastwest.errors import UserError
from eastwest.spec.quantities import Rate, custom, describe
from eastwest.spec.section import Name, Section

Few = Annotated[int, Field(ge=1, le=144)]
Some = Annotated[int, Field(ge=0, le=144)]
Place = Annotated[str, Field(pattern=r"^(switch|socket)[0-9]{1,3}$")]


def _tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Places = Annotated[tuple[Place, ...], BeforeValidator(_tuple), Field(max_length=144)]
Sockets = Annotated[tuple[Some, ...], BeforeValidator(_tuple), Field(max_length=144)]


def _pairs(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(
        r"\d{1,3}-\d{1,3}:\d{1,2}( \d{1,3}-\d{1,3}:\d{1,2})*", value
    ):
        return value
    raise custom(
        f"expected pairs of GPUs with their links, such as '0-1:4 2-3:4', not {describe(value)}"
    )


class OwnServer(Section):
    """A server as a file describes it; names of fields are the catalog's attributes."""

    name: Annotated[str, Field(min_length=1, max_length=80)] | None = Field(
        default=None, description="A name for reports."
    )
    like: Name | None = Field(
        default=None, description="The server of the catalog that it is like but for these keys."
    )
    gpu: Name | None = Field(default=None, description="The GPU, a name from the catalog.")
    gpus: Few | None = Field(default=None, description="GPUs of the server.")
    nics: Few | None = Field(default=None, description="NICs for the compute network.")
    nic: Name | None = Field(default=None, description="The NIC, a name from the catalog.")
    nic_Bps: Rate | None = Field(
        default=None, alias="nic_rate", description="The rate of one NIC; its port's if left out."
    )
    nic_slots: Few | None = Field(default=None, description="PCIe slots that can take a NIC.")
    nic_at: Literal["switch", "cpu"] | None = Field(
        default=None, description="Where NICs hang: switch (that of the GPUs) or cpu."
    )
    gpu_links: Literal["nvswitch", "mesh", "bridge", "pcie"] | None = Field(
        default=None,
        description="What joins the GPUs: nvswitch, mesh (direct links between each two), bridge "
        "(direct links in pairs) or pcie (nothing else).",
    )
    pairs: Annotated[str, BeforeValidator(_pairs)] | None = Field(
        default=None, description="Direct links between GPUs, such as '0-1:4 2-3:4'."
    )
    pcie_gen: Annotated[int, Field(ge=2, le=6)] | None = Field(
        default=None, description="PCIe generation of the server's slots."
    )
    pcie_lanes: Literal[1, 2, 4, 8, 16] | None = Field(
        default=None, description="Lanes of a GPU's or NIC's slot."
    )
    pcie_switches: Some | None = Field(
        default=None, description="PCIe switches between the CPUs and the GPUs."
    )
    acs: bool | None = Field(
        default=None,
        description="Whether access control services are on: traffic between two devices of a "
        "PCIe switch then goes up to the CPU.",
    )
    virtual_machine: bool | None = Field(
        default=None, description="Whether it is one; access control services are then on."
    )
    ats: bool | None = Field(
        default=None,
        description="Whether address translation services spare a virtual machine that way.",
    )
    sockets: Annotated[int, Field(ge=1, le=8)] | None = Field(
        default=None, description="CPU sockets."
    )
    cores: Annotated[int, Field(ge=1, le=2048)] | None = Field(
        default=None, description="CPU cores of all sockets."
    )
    cpu_vendor: Literal["intel", "amd", "arm"] | None = Field(
        default=None, alias="cpu", description="The CPU's maker: intel, amd or arm."
    )
    memory_Bps: Rate | None = Field(
        default=None, alias="memory_rate", description="Memory bandwidth of one socket."
    )
    socket_link_Bps: Rate | None = Field(
        default=None, alias="socket_link", description="Rate between two sockets, one way."
    )
    storage_nics: Some | None = Field(default=None, description="NICs for the storage network.")
    storage_nic_Bps: Rate | None = Field(
        default=None, alias="storage_rate", description="The rate of one of those."
    )
    power_W: Annotated[int, Field(ge=100, le=200_000)] | None = Field(
        default=None, alias="power", description="Power in watts, at the most."
    )
    rack_units: Annotated[int, Field(ge=1, le=60)] | None = Field(
        default=None, description="Height in rack units."
    )
    gpu_places: Places | None = Field(
        default=None, description="Where each GPU hangs, such as [switch0, switch0, socket1]."
    )
    nic_places: Places | None = Field(default=None, description="Where each NIC hangs.")
    switch_sockets: Sockets | None = Field(
        default=None, description="The socket of each PCIe switch, such as [0, 0, 1, 1]."
    )

    @model_validator(mode="after")
    def _enough(self) -> OwnServer:
        missing = [key for key in ("gpu", "gpus", "nics", "nic") if getattr(self, key) is None]
        if self.like is None and missing:
            raise custom(
                f"a server needs {', '.join(missing)}",
                "such as {gpu: a100-80-pcie, gpus: 2, nics: 1, nic: cx6-dx}; or like: and what is "
                "different",
            )
        return self


def key_of(attribute: str) -> str:
    """Return the key of a description that says an attribute, empty if none does."""
    field = OwnServer.model_fields.get(attribute)
    return (field.alias or attribute) if field else ""


def server_id(said: OwnServer) -> str:
    """Return the entry's name: from its own, from what it is like, or from its GPUs."""
    text = said.name or (f"own-{said.like}" if said.like else f"own-{said.gpu}-{said.gpus}")
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "own-server"


def server_facts(said: OwnServer, facts: Catalog, source: str) -> tuple[Fact, ...]:
    """Return the facts of the entry that a description stands for.

    Raises UserError, with the key as its place, for a GPU, a NIC or a server to be like that the
    catalog does not have.
    """
    for key, kind in (("like", "server"), ("gpu", "gpu"), ("nic", "nic")):
        if (name := getattr(said, key)) is not None:
            try:
                facts.require(kind, name)
            except UserError as error:
                raise UserError(error.what, key, _way_on(kind, error.hint)) from None
    return _Describer(said, facts, source).facts()


def _way_on(kind: str, hint: str) -> str:
    more = f"or describe it under catalog: {kind}:, with like: and what is different"
    return f"{hint} {more}" if kind != "server" else hint


@dataclass(frozen=True, slots=True)
class _Describer:
    """Puts an entry together: what is said, else what its like has, else what is usual."""

    said: OwnServer
    catalog: Catalog
    source: str

    def facts(self) -> tuple[Fact, ...]:
        """Return all facts of the entry."""
        id, said = server_id(self.said), self._said()
        like = self._like()
        usual = self._usual({**like, **said})
        for attribute in self._stale():
            like.pop(attribute, None)
        found = {**usual, **like, **said}
        found |= self._following(found)
        return tuple(
            Fact(
                "server", id, a, f.value, f.low, f.high, self._unit(a), f.source, f.checked, f.note
            )
            for a, f in found.items()
        )

    def _unit(self, attribute: str) -> str:
        units = {"nic_slots": "1", "pairs": "", "gpu_places": "", "nic_places": ""}
        if attribute in units or attribute == "switch_sockets":
            return units.get(attribute, "")
        example = self.catalog.ids("server")[0]
        return self.catalog.fact("server", example, attribute).unit

    def _user(self, attribute: str, value: float | str) -> Fact:
        number = float(value) if not isinstance(value, str) else float("nan")
        kept = value if isinstance(value, str) else float(value)
        return Fact("server", "", attribute, kept, number, number, "", self.source, "user", "")

    def _said(self) -> dict[str, Fact]:
        """Return what the description says, as facts."""
        skipped = {"like", "virtual_machine", "ats"}
        found = {}
        for name in OwnServer.model_fields:
            value = getattr(self.said, name)
            if value is None or name in skipped:
                continue
            if isinstance(value, tuple):
                value = " ".join(str(part) for part in value)
            found[name] = self._user(name, value)
        if self.said.acs is None and self.said.virtual_machine is not None:
            controlled = self.said.virtual_machine and not self.said.ats
            found["acs"] = self._user("acs", controlled)
        return found

    def _like(self) -> dict[str, Fact]:
        if self.said.like is None:
            return {}
        return {
            attribute: fact
            for (kind, id, attribute), fact in self.catalog.facts.items()
            if (kind, id) == ("server", self.said.like)
        }

    def _stale(self) -> set[str]:
        """Return what its like cannot tell any more, since what it followed from is different."""
        said, stale = self.said, {"name"}
        if said.gpu or said.gpus:
            stale |= {"power_W", "pairs", "gpu_places", "gpu_attach", "c2c_Bps"}
        if said.gpu:
            stale |= {"gpu_links", "nvswitches"}
        if said.gpu_links:
            stale |= {"nvswitches", "pairs"}
        if said.nic:
            stale.add("nic_Bps")
        if said.nics or said.nic_at:
            stale |= {"nic_cages", "nic_places", "port_map"}
        if said.pcie_switches is not None or said.sockets:
            stale |= {"gpu_places", "nic_places", "switch_sockets", "nic_at"}
        return stale

    def _usual(self, known: dict[str, Fact]) -> dict[str, Fact]:
        """Return what is usual of a server with these GPUs and NICs."""
        gpu, gpus = str(known["gpu"].value), int(float(known["gpus"].value))
        nic, nics = str(known["nic"].value), float(known["nics"].value)
        kin, gpu_name = self._kin(gpu), self.catalog.fact("gpu", gpu, "name").value
        links = str(known["gpu_links"].value) if self.said.gpu_links else self._links(gpu, gpus)
        on_board = links == "nvswitch" or (links == "mesh" and gpus > self._default("mesh_gpus"))
        switches = gpus // self._default("gpus_per_pcie_switch") if on_board else 0
        if self.said.pcie_switches is not None:
            switches = self.said.pcie_switches
        sockets = self.said.sockets or min(2, -(-gpus // self._default("gpus_per_socket")))
        gen = self.said.pcie_gen or int(self._number("gpu", gpu, "pcie_gen"))
        power = self._row("all", "power_W", gpus * self._number("gpu", gpu, "power_W"))
        attach, c2c = ("pcie", 0.0)
        if kin and self.catalog.fact("server", kin, "gpu_attach").value == "c2c":
            attach, c2c = "c2c", self._number("server", kin, "c2c_Bps")
        nvswitches = self._number("server", kin, "nvswitches") if kin else 0.0
        plain: dict[str, float | str] = {
            "name": self.said.name or f"own server, {gpus} {gpu_name}",
            "gpu_links": links,
            "nvswitches": max(1.0, nvswitches) if links == "nvswitch" else 0.0,
            "domain_servers": 1,
            "nic_Bps": self._number("nic", nic, "port_Bps"),
            "nic_cages": nics,
            "nic_at": "switch" if switches else "cpu",
            "acs": 0,
            "sockets": sockets,
            "pcie_switches": switches,
            "pcie_gen": gen,
            "pcie_lanes": 16,
            "gpu_attach": attach,
            "c2c_Bps": c2c,
            "storage_nics": 0,
            "storage_nic_Bps": self._number("nic", nic, "port_Bps"),
            "oob_ports": 1,
            "rack_units": max(1, -(-gpus // self._default("gpus_per_rack_unit"))),
            "port_map": "-",
        }
        cores = self._row(f"gen{gen}", "cores_per_socket", times=sockets)
        return {a: self._user(a, value) for a, value in plain.items()} | {
            "cpu_vendor": self._user("cpu_vendor", "arm")
            if attach == "c2c"
            else self._row("all", "cpu_vendor"),
            "cores": Fact(
                "server",
                "",
                "cores",
                cores.value,
                float(cores.value),
                float(cores.value),
                "",
                cores.source,
                cores.checked,
                cores.note,
            ),
            "memory_Bps": self._row(f"gen{gen}", "memory_Bps"),
            "socket_link_Bps": self._row(f"gen{gen}", "socket_link_Bps"),
            "power_W": power,
        }

    def _following(self, found: dict[str, Fact]) -> dict[str, Fact]:
        """Return what follows from the rest: how many GPUs one domain of links holds."""
        links, gpus = str(found["gpu_links"].value), float(found["gpus"].value)
        servers = float(found["domain_servers"].value)
        domain = {"bridge": 2.0, "pcie": 1.0}.get(links, gpus * servers)
        return {"scaleup_domain_gpus": self._user("scaleup_domain_gpus", domain)}

    def _links(self, gpu: str, gpus: int) -> str:
        """Return what usually joins so many of these GPUs."""
        known = str(self.catalog.fact("gpu", gpu, "joins").value).split()
        if known[0] == "nvswitch" and "mesh" in known and gpus <= self._default("mesh_gpus"):
            return "mesh"
        return "pcie" if gpus == 1 else known[0]

    def _kin(self, gpu: str) -> str:
        """Return a server of the catalog with the same GPU, empty if there is none."""
        servers = self.catalog.ids("server")
        return next((s for s in servers if self.catalog.fact("server", s, "gpu").value == gpu), "")

    def _number(self, kind: str, id: str, attribute: str) -> float:
        return float(self.catalog.fact(kind, id, attribute).value)

    def _default(self, attribute: str) -> int:
        return int(self._number("server-default", "all", attribute))

    def _row(self, id: str, attribute: str, more: float = 0.0, times: float = 1.0) -> Fact:
        """Return a usual value with its range, plus and times what this server has."""
        row = self.catalog.fact("server-default", id, attribute)
        if isinstance(row.value, str):
            return row
        low, value, high = (x * times + more for x in (row.low, row.value, row.high))
        return Fact(
            "server", "", attribute, value, low, high, "", row.source, row.checked, row.note
        )
