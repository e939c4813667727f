"""Names and counts against the catalog. One idea: whatever points outside the file is looked up
before it is used."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

from eastwest.catalog.load import Catalog
from eastwest.catalog.technology import named
from eastwest.catalog.world import nominal
from eastwest.errors import UserError
from eastwest.spec.contradictions import contradictions
from eastwest.spec.marks import Path
from eastwest.spec.overrides import Override, find
from eastwest.spec.problems import Collector
from eastwest.spec.quantities import describe
from eastwest.units import format_bits_rate, parse_rate

NAMES: tuple[tuple[Path, str], ...] = (
    (("server",), "server"),
    (("networks", "compute", "switch"), "switch"),
    (("networks", "compute", "nic"), "nic"),
    (("networks", "storage", "switch"), "switch"),
    (("networks", "management", "switch"), "switch"),
)
# What to do where the catalog does not have it.
OWN = {
    "server": "or describe yours: {gpu: h100-sxm, gpus: 8, nics: 8, nic: cx7-ndr}",
    "nic": "or describe yours under catalog: nic:",
    "switch": "or describe yours under catalog: switch:",
}


def check_names(
    values: dict[str, Any],
    overrides: object,
    collector: Collector,
    config_path: Callable[[str, str], FilePath | None],
    facts: Catalog,
) -> None:
    """Note every name of the plain values that the catalog does not know, and what contradicts the
    catalog.

    Looks at the plain values, so that it works whatever else is wrong in the file.

    Parameters
    ----------
    values : the whole file as plain values.
    overrides : what its ``overrides:`` were read to.
    collector : takes what is wrong.
    config_path : tells which file a model's name means, None for the catalog's own.
    facts : the catalog with the file's own entries.
    """
    for path, kind in NAMES:
        name = _at(values, path)
        if isinstance(name, str) and name and not collector.has(path):
            try:
                facts.require(kind, name)
            except UserError as error:
                hint = f"{error.hint} {OWN[kind]}" if kind in OWN else error.hint
                collector.add(path, error.what, hint)
    _check_model(values, facts, collector, config_path)
    for network in ("compute", "storage"):
        _check_switch(values, network, facts, collector)
    _check_compute(values, facts, collector)
    said: dict[tuple[str, str, str], Path] = {}
    if isinstance(overrides, tuple) and all(isinstance(o, Override) for o in overrides):
        said = _override_paths(values, facts)
        facts = facts.with_overrides({o.key: o.value for o in overrides})
    _check_machine(values, facts, said, collector)
    _check_gpus(values, facts, collector)


def _override_paths(values: dict[str, Any], facts: Catalog) -> dict[tuple[str, str, str], Path]:
    """Return where the file overrides each fact that it does."""
    found: dict[tuple[str, str, str], Path] = {}
    for key in values.get("overrides") or {}:
        with contextlib.suppress(UserError):  # noted where overrides are read
            found[find(key, facts).key] = ("overrides", key)
    return found


def _check_machine(
    values: dict[str, Any],
    facts: Catalog,
    said: dict[tuple[str, str, str], Path],
    collector: Collector,
) -> None:
    """Note what the server's facts and the file's NICs contradict."""
    server, compute = values.get("server"), ("networks", "compute")
    if not isinstance(server, str) or server not in facts.ids("server"):
        return
    for found in contradictions(facts, server):
        path = next((said[key] for key in found.keys if key in said), ("server",))
        if not collector.has(path):
            collector.add(path, found.what, found.hint)
    nics, rate = _at(values, (*compute, "nics")), _at(values, (*compute, "rate"))
    slots = facts.has("server", server, "nic_slots")
    if slots and isinstance(nics, int):
        most = float(facts.fact("server", server, "nic_slots").value)
        if nics > most:
            what = f"{nics} NICs do not fit in the {most:.0f} PCIe slots of {server}"
            collector.add((*compute, "nics"), what)
    nic = _nic(values, facts)
    if isinstance(rate, str) and nic in facts.ids("nic"):
        _check_rate(nic, rate, facts, collector)


def _check_rate(nic: str, rate: str, facts: Catalog, collector: Collector) -> None:
    path: Path = ("networks", "compute", "rate")
    port_Bps = float(facts.fact("nic", nic, "port_Bps").value)
    most_Bps = port_Bps * float(facts.fact("nic", nic, "ports").value)
    with contextlib.suppress(UserError):  # a rate that is none is noted where it is read
        if parse_rate(rate) > most_Bps * (1 + 1e-9) and not collector.has(path):
            collector.add(
                path,
                f"{nic} has {format_bits_rate(most_Bps)}, not {format_bits_rate(parse_rate(rate))}",
                "choose a faster nic:, or a lower rate",
            )


def _at(values: object, path: Path) -> object:
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def _check_model(
    values: dict[str, Any],
    facts: Catalog,
    collector: Collector,
    config_path: Callable[[str, str], FilePath | None],
) -> None:
    path: Path = ("job", "model")
    model = _at(values, path)
    if not isinstance(model, str) or not model or collector.has(path):
        return
    file = config_path(model, collector.marks.name)
    if file is not None:
        if not _is_file(file):
            collector.add(
                path,
                f"there is no file {describe(str(file))}",
                "paths are relative to the cluster file",
            )
        return
    try:
        facts.require("model", model)
    except UserError as error:
        hint = (
            error.hint
            if error.hint.startswith("did")
            else f"{error.hint}; or the path of a config.json"
        )
        collector.add(path, error.what, hint)


def _is_file(path: FilePath) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _check_switch(
    values: dict[str, Any], network: str, facts: Catalog, collector: Collector
) -> None:
    path: Path = ("networks", network, "switch")
    switch, technology = _at(values, path), _at(values, ("networks", network, "technology"))
    if not isinstance(switch, str) or not facts.has("switch", switch, "technology"):
        return
    entries = named(nominal(facts), str(technology))
    found = str(facts.fact("switch", switch, "technology").value)
    needs = sorted({p.link_layer for entry in entries for p in entry.packets})
    if needs and found not in needs:
        wanted = " or ".join(needs)
        collector.add(
            path,
            f"{switch} is a switch for {found}; {technology} needs one for {wanted}",
            "eastwest facts switch lists them",
        )


def _check_compute(values: dict[str, Any], facts: Catalog, collector: Collector) -> None:
    """Refuse a technology that the NIC cannot carry, GPUDirect and sockets where it has none (they
    would silently do nothing), and an MTU that it cannot have."""
    compute: Path = ("networks", "compute")
    technology = _at(values, (*compute, "technology"))
    entries = named(nominal(facts), str(technology))
    if not entries:
        return
    wanted = _at(values, (*compute, "gpudirect"))
    usual = wanted if isinstance(wanted, bool) else entries[0].gpudirect
    ways = [entry for entry in entries if entry.gpudirect == usual]
    nic = _nic(values, facts)
    carried = [entry for entry in ways if not nic or entry.carried_by(nic)]
    if (wanted is not None and not ways) or (carried != ways and len(ways) < len(entries)):
        collector.add((*compute, "gpudirect"), *_other_way(str(technology), usual))
    elif not carried:
        only = ", ".join(ways[0].only_nics)
        collector.add((*compute, "technology"), f"{technology} needs a NIC of {only}, not {nic}")
    if _at(values, (*compute, "sockets")) is not None and not any(e.sockets for e in entries):
        collector.add(
            (*compute, "sockets"), f"{technology} has no sockets", "leave it out", at_key=True
        )
    _check_nccl(values, bool(any(e.sockets for e in entries)), bool(usual), collector)
    mtu = _at(values, (*compute, "mtu"))
    if isinstance(mtu, int) and not collector.has((*compute, "mtu")):
        try:
            (carried or entries)[0].packet.payload_bytes(mtu)
        except UserError as error:
            collector.take((*compute, "mtu"), error)


def _check_nccl(
    values: dict[str, Any], has_sockets: bool, gpudirect: bool, collector: Collector
) -> None:
    """Note NCCL's switches that contradict the compute network."""
    said, sockets = values.get("nccl"), _at(values, ("networks", "compute", "sockets"))
    if not isinstance(said, dict):
        return
    counts = [said.get(key) for key in ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")]
    keys = [key for key in ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD") if key in said]
    if keys and not has_sockets:
        what = f"{_at(values, ('networks', 'compute', 'technology'))} has no sockets"
        collector.add(("nccl", keys[0]), what, "leave it out", at_key=True)
    elif keys and isinstance(sockets, int):
        each = [n if isinstance(n, int) else 1 for n in counts]
        if each[0] * each[1] != sockets:
            what = f"NCCL opens {each[0] * each[1]} sockets, but networks.compute.sockets is"
            collector.add(("nccl", keys[0]), f"{what} {sockets}", "leave one of them out")
    if said.get("NCCL_NET_GDR_LEVEL") == "LOC" and gpudirect:
        collector.add(
            ("nccl", "NCCL_NET_GDR_LEVEL"),
            "LOC turns GPUDirect off, but the compute network has it on",
            "set networks.compute.gpudirect: false",
        )


def _nic(values: dict[str, Any], facts: Catalog) -> str:
    """Return the compute network's NIC: the file's, or the server's; empty where neither is
    known."""
    said, server = _at(values, ("networks", "compute", "nic")), values.get("server")
    if isinstance(said, str):
        return said
    known = isinstance(server, str) and facts.has("server", server, "nic")
    return str(facts.fact("server", str(server), "nic").value) if known else ""


def _other_way(technology: str, wanted: bool) -> tuple[str, str]:
    """Say that a technology has no form with GPUDirect, or none without, and what to do."""
    if wanted:
        return f"{technology} cannot reach GPU memory here", "use roce, or set it false"
    return f"{technology} always reaches GPU memory itself", "leave it out, or set it true"


def _check_gpus(values: dict[str, Any], facts: Catalog, collector: Collector) -> None:
    said, servers, server = values.get("gpus"), values.get("servers"), values.get("server")
    if not isinstance(server, str) or not facts.has("server", server, "gpus"):
        return
    each, used = int(facts.fact("server", server, "gpus").value), values.get("gpus_per_server")
    if isinstance(used, int) and not isinstance(used, bool) and used > 0:
        if used > each:
            collector.add(("gpus_per_server",), f"a {server} has {each} GPUs, not {used:,}")
            return
        each = used
    if not all(
        isinstance(n, int) and not isinstance(n, bool) and 0 < n < 10**9 for n in (said, servers)
    ):
        return
    if isinstance(said, int) and isinstance(servers, int) and said != servers * each:
        collector.add(
            ("gpus",),
            f"{said:,} but {servers:,} servers x {each} = {servers * each:,}",
            "correct one of them, or leave gpus out",
        )
