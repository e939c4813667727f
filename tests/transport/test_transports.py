"""What must hold for every transport: order, bounds and conservation, in drawn worlds."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastwest.catalog.packets import packet_format
from eastwest.catalog.technology import Network, technology
from eastwest.catalog.world import World, draw
from eastwest.errors import UserError
from eastwest.fabric.server import server_graph
from eastwest.transport import TRANSPORTS, abilities
from eastwest.transport.endpoint import Endpoint, Way
from eastwest.transport.stages import Path, Place
from transport.worlds import STORE, TECHNOLOGIES, WORLD, endpoint, path, way

WORLDS = (WORLD, *draw(5, seed=7))
SERVERS = (
    "dgx-h100",
    "dgx-a100",
    "aws-p4d",
    "oci-h100",
    "gb200-nvl72",
    "azure-nd-h100-v5",
    "mi300x-8",
    "hgx-v100",
)
SIZES = st.integers(1, 2**31)
techs, worlds, servers = (
    st.sampled_from(TECHNOLOGIES),
    st.sampled_from(WORLDS),
    st.sampled_from(SERVERS),
)


@settings(max_examples=60, deadline=None)
@given(techs, worlds, servers, SIZES, SIZES)
def test_a_larger_message_never_arrives_earlier(
    id: str, world: World, server: str, a: int, b: int
) -> None:
    one = path(id, world, server)
    assert one.latency_s(min(a, b)) <= one.latency_s(max(a, b)) * (1 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(techs, worlds, SIZES, st.sampled_from([1, 3]), st.floats(0.1, 100), st.floats(0, 100))
def test_more_switches_or_cable_never_help(
    id: str, world: World, size: int, switches: int, metre: float, more: float
) -> None:
    near = path(id, world, switches=switches, metre=metre).latency_s(size)
    assert near < path(id, world, switches=switches + 2, metre=metre).latency_s(size)
    assert near <= path(id, world, switches=switches, metre=metre + more).latency_s(size)


@settings(max_examples=40, deadline=None)
@given(techs, worlds, servers, st.floats(0.1e9, 200e9), st.floats(1, 4))
def test_a_faster_line_never_slows(
    id: str, world: World, server: str, nic_Bps: float, factor: float
) -> None:
    slow, fast = (path(id, world, server, nic_Bps=rate) for rate in (nic_Bps, nic_Bps * factor))
    assert slow.rate_Bps <= fast.rate_Bps * (1 + 1e-12)
    assert slow.alone_Bps <= fast.alone_Bps * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(["tcp-400g", "tcp-100g", "nvmeof-tcp"]),
    worlds,
    st.floats(1, 200),
    st.floats(1, 4),
)
def test_more_cores_never_slow(id: str, world: World, cores: float, factor: float) -> None:
    tech = technology(world, id)
    end, over = endpoint(tech, world), way(tech, world)
    few, many = (
        TRANSPORTS[tech.transport]
        .path(id, tech.packet, replace(end, cores=count), over, world)
        .rate_Bps
        for count in (cores, cores * factor)
    )
    assert few <= many * (1 + 1e-12)


def _check(one: Path, nic_Bps: float) -> None:
    figures = [
        one.rate_Bps,
        one.alone_Bps,
        one.wire_Bps,
        one.header_efficiency,
        one.latency_s(8),
        one.latency_s(1 << 30),
    ]
    assert all(math.isfinite(f) and f > 0 for f in figures)
    assert 0 < one.header_efficiency < 1
    assert one.rate_Bps <= nic_Bps * one.header_efficiency * (1 + 1e-12)
    assert one.rate_Bps <= one.alone_Bps <= one.wire_Bps * (1 + 1e-12)
    assert one.limits[0][1] == one.rate_Bps
    rates = [rate for _, rate in one.limits]
    assert rates == sorted(rates)
    assert len({name for name, _ in one.limits}) == len(one.limits)
    assert math.isfinite(one.cpu_cores)
    assert one.cpu_cores >= 0
    assert one.memory_Bps >= 0


@settings(max_examples=60, deadline=None)
@given(techs, worlds, servers)
def test_rates_are_positive_and_the_first_limit_is_the_rate(
    id: str, world: World, server: str
) -> None:
    _check(path(id, world, server), technology(world, id).nic_Bps)


REGISTERED = [(name, id) for name in TRANSPORTS for id in TRANSPORTS[name].ABILITIES.packets]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(REGISTERED), worlds, servers, st.floats(0.1e9, 200e9), st.data(), SIZES, SIZES
)
def test_every_registered_transport_in_each_of_its_formats_obeys_the_laws(
    which: tuple[str, str], world: World, server: str, nic_Bps: float, data: st.DataObject, a, b
) -> None:
    name, format = which
    packet, graph = packet_format(world, format), server_graph(world, server)
    mtu = data.draw(st.sampled_from(packet.ends_bytes()))
    nics = data.draw(st.integers(1, len(graph.nic)))
    end = Endpoint(graph, 100.0, nic_Bps, nics, mtu, sockets=data.draw(st.integers(0, 8)))
    over = Way(2, 20.0, 1, 1e-6)
    one = TRANSPORTS[name].path(name, packet, replace(end, store=STORE), over, world)
    _check(one, nic_Bps)
    assert one.latency_s(min(a, b)) <= one.latency_s(max(a, b)) * (1 + 1e-12)
    assert max(a, b) / one.latency_s(max(a, b)) <= one.wire_Bps * (1 + 1e-9)
    able = TRANSPORTS[name].ABILITIES
    copied = not able.reaches_gpu or (able.through_store and packet.kernel)
    assert (one.memory_Bps > 0.0) == copied


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["infiniband", "roce"]), worlds, servers, SIZES)
def test_staging_never_beats_gpudirect(fabric: str, world: World, server: str, size: int) -> None:
    direct, staged = (path(f"{fabric}-{how}", world, server) for how in ("gpudirect", "staged"))
    assert direct.latency_s(size) < staged.latency_s(size)
    assert direct.rate_Bps >= staged.rate_Bps * (1 - 1e-12)


@pytest.mark.parametrize("id", TECHNOLOGIES)
def test_every_stage_says_why_and_only_cpus_are_counted_as_cpus(id: str) -> None:
    for stage in path(id).stages:
        assert stage.why, stage.name
        assert not stage.cpu or stage.place is Place.CPU, stage.name
        assert stage.side in ("sender", "network", "receiver")


@pytest.mark.parametrize("id", TECHNOLOGIES)
def test_the_timeline_adds_up_to_the_latency(id: str) -> None:
    for size in (1, 8, 4096, 4097, 1 << 20):
        one = path(id)
        assert sum(t for _, t in one.timeline(size)) == pytest.approx(one.latency_s(size))


def test_large_messages_run_at_the_slowest_pipelined_rate() -> None:
    one = path("infiniband-gpudirect")
    size = 1 << 30
    assert size / one.latency_s(size) == pytest.approx(one.alone_Bps, rel=0.01)


def test_gpudirect_leaves_the_host_alone_and_tcp_does_not() -> None:
    direct, tcp = path("infiniband-gpudirect"), path("tcp-400g")
    assert direct.memory_Bps == 0.0
    assert direct.cpu_cores < 2
    assert [direct.count(what) for what in ("copies", "context_switches", "interrupts")] == [
        0,
        0,
        0,
    ]
    assert [tcp.count(what) for what in ("copies", "context_switches", "interrupts")] == [4, 1, 1]
    assert tcp.cpu_cores > 20
    assert tcp.cpu_s(8) > 10 * direct.cpu_s(8)


def test_ndr_with_gpudirect_gives_nearly_the_line_rate_on_a_dgx_h100() -> None:
    one = path("infiniband-gpudirect")
    assert 48e9 <= one.rate_Bps <= 50e9 * one.header_efficiency


def test_eight_400g_ports_are_far_from_full_with_tcp() -> None:
    one = path("tcp-400g")
    assert one.rate_Bps < 0.4 * one.wire_Bps
    assert "line" not in one.limits[0][0]


def test_one_core_receives_what_cai_et_al_measured() -> None:
    # SIGCOMM 2021: about 42 Gb/s a core with all optimisations; our flow also pays no GPU copy by
    # the CPU.
    tech = technology(WORLD, "tcp-100g")
    end = replace(endpoint(tech), sockets=1)
    limits = dict(TRANSPORTS["tcp"].path("", tech.packet, end, way(tech), WORLD).limits)
    assert limits["one core for the one connection"] == pytest.approx(42e9 / 8, rel=0.08)


def test_a_store_is_shared_by_all_servers() -> None:
    tech = technology(WORLD, "nvmeof-rdma")
    end = endpoint(tech)
    assert end.store is not None
    half = replace(end, store=replace(end.store, servers=2 * end.store.servers))
    rates = [
        TRANSPORTS["nvmeof"].path("", tech.packet, e, way(tech), WORLD).rate_Bps
        for e in (end, half)
    ]
    assert rates[0] == pytest.approx(2 * rates[1])


def test_a_detour_through_a_store_that_is_not_there_is_refused() -> None:
    tech = technology(WORLD, "nvmeof-rdma")
    with pytest.raises(UserError, match="needs a storage network"):
        TRANSPORTS["nvmeof"].path(
            "", tech.packet, replace(endpoint(tech), store=None), way(tech), WORLD
        )


def test_a_message_through_the_store_waits_for_flash() -> None:
    flash = WORLD.number("stack", "nvmeof", "flash_read_s") + WORLD.number(
        "stack", "nvmeof", "flash_write_s"
    )
    assert path("nvmeof-rdma").latency_s(8) > flash
    drives = 1 / WORLD.number("stack", "nvmeof", "drive_write_Bps") + 1 / WORLD.number(
        "stack", "nvmeof", "drive_read_Bps"
    )
    assert path("nvmeof-rdma").latency_s(1 << 20) > flash + (1 << 20) * drives


def test_every_registered_transport_is_used_by_a_technology_and_has_a_path() -> None:
    used = {technology(WORLD, id).transport for id in TECHNOLOGIES}
    assert used == set(TRANSPORTS)
    assert all(callable(TRANSPORTS[name].path) for name in TRANSPORTS)


@pytest.mark.parametrize("id", TECHNOLOGIES)
def test_a_technology_says_of_its_transport_what_the_transport_declares(id: str) -> None:
    tech = technology(WORLD, id)
    able = abilities(tech)
    assert {packet.id for packet in tech.packets} <= set(able.packets)
    assert able.reaches_gpu or not tech.gpudirect
    assert (tech.sockets > 0) >= able.kernel
    assert able.through_store == (tech.network is Network.STORAGE)
    assert able.carries_gpus == (tech.network is not Network.STORAGE)
    assert tech.packet.payload_bytes(tech.mtu_bytes)


@pytest.mark.parametrize("id", TECHNOLOGIES)
def test_a_technology_names_what_the_catalog_has(id: str) -> None:
    tech = technology(WORLD, id)
    for switch in tech.switches:
        assert (
            WORLD.text("switch", switch, "technology") == tech.packet.link_layer
            or tech.network is Network.MANAGEMENT
        )
        assert WORLD.number("switch", switch, "port_Bps") >= tech.nic_Bps
    assert not tech.nic or tech.nic in WORLD.catalog.ids("nic")
    assert tech.use
    assert WORLD.has("wire", tech.fec, "link_s")
