"""Routes on fabrics of cluster files: they lead where they should, and collide as real ones do."""

from __future__ import annotations

import numpy as np
import pytest

from eastwest.engine import flow
from eastwest.errors import UserError
from eastwest.fabric.graph import Fabric, Network
from eastwest.fabric.lookup import port_table
from eastwest.spec.cluster import load_cluster
from eastwest.study.situation import cluster_fabric
from eastwest.traffic import RouteSet, messages
from eastwest.traffic.routing import ROUTINGS, links_of, routed
from laws import simulated

FILE = """
name: routed
servers: {servers}
server: dgx-h100
networks:
  compute: {{technology: infiniband, switch: qm9700, topology: {topology}}}
  management: {{switch: sn2201}}
job: {{model: llama-3-70b, parallel: {{tensor: 8}}, global_batch: 1024, sequence: 8192}}
"""
routings = pytest.mark.parametrize("routing", list(ROUTINGS))
COMPUTE = Network.COMPUTE


@pytest.fixture(scope="module", params=["rail-optimised", "fat-tree"])
def fabric(request, tmp_path_factory) -> Fabric:
    return built(tmp_path_factory.mktemp("x") / "cluster.yaml", 128, request.param)


def built(path, servers: int, topology: str) -> Fabric:
    path.write_text(FILE.format(servers=servers, topology=topology))
    return cluster_fabric(load_cluster(path))


def shifted(fabric: Fabric, servers: int) -> tuple[np.ndarray, np.ndarray]:
    """Each NIC sends to the NIC of its rail so many servers on."""
    nic = port_table(fabric, COMPUTE).nic[:, :, 0]
    return nic.ravel(), np.roll(nic, -servers, axis=0).ravel()


def most_on_a_link(routes: RouteSet) -> float:
    return float(np.bincount(routes.link, routes.share).max())


@routings
def test_every_route_leads_from_source_to_target(fabric, routing):
    source, target = np.random.default_rng(1).permuted(np.stack(shifted(fabric, 40)), axis=1)
    apart = source != target
    source, target = source[apart], target[apart]
    routes = routed(fabric, COMPUTE, source, target, routing)
    routes.check(links_of(fabric), messages(source, target, 1.0))
    assert set(fabric.link_network[routes.link].tolist()) == {int(COMPUTE)}


@routings
def test_the_same_seed_routes_alike(fabric, routing):
    ends = shifted(fabric, 40)
    one, two = (routed(fabric, COMPUTE, *ends, routing, seed=3) for _ in range(2))
    assert np.array_equal(one.link, two.link)
    assert np.array_equal(one.share, two.share)


def test_sprayed_permutations_run_at_line_rate(fabric):
    for servers in (1, 31, 64):
        ends = shifted(fabric, servers)
        routes = routed(fabric, COMPUTE, *ends, "spray")
        assert most_on_a_link(routes) == pytest.approx(1.0)


def test_modulo_routes_of_shifted_leaves_share_no_link(fabric):
    routes = routed(fabric, COMPUTE, *shifted(fabric, 64), "d-mod-k")
    assert most_on_a_link(routes) == 1.0


def test_hashed_flows_collide_by_chance_and_otherwise_with_each_seed(fabric):
    ends = shifted(fabric, 64)
    most = [most_on_a_link(routed(fabric, COMPUTE, *ends, "ecmp", seed)) for seed in range(5)]
    assert min(most) >= 2
    # Balls into bins: more than seven of 32 flows on one of 32 links is rarer than one in 10,000.
    assert max(most) <= 8
    links = [routed(fabric, COMPUTE, *ends, "ecmp", seed).link.tolist() for seed in range(2)]
    assert links[0] != links[1]


def test_the_engine_pays_for_collisions_what_the_fullest_link_says(fabric):
    source, target = shifted(fabric, 64)
    links, work = links_of(fabric), messages(source, target, 1e9)
    times = {}
    for routing in ("spray", "d-mod-k", "ecmp"):
        routes = routed(fabric, COMPUTE, source, target, routing)
        times[routing] = simulated("flow", links, work, routes).sent_s.max()
    rate = links.rate_Bps[routes.link].min()
    assert times["spray"] == pytest.approx(1e9 / rate)
    assert times["d-mod-k"] == pytest.approx(1e9 / rate)
    assert times["ecmp"] == pytest.approx(most_on_a_link(routes) * 1e9 / rate)


def test_switches_that_hash_alike_leave_links_of_the_next_tier_idle(tmp_path):
    fabric = built(tmp_path / "cluster.yaml", 512, "fat-tree")
    assert fabric.link_tier.max() >= 3, "three tiers"
    ends = shifted(fabric, 256)
    used = {}
    for routing in ("ecmp", "ecmp-polarised"):
        link = np.unique(routed(fabric, COMPUTE, *ends, routing).link)
        used[routing] = np.count_nonzero(fabric.link_tier[link] == 3)
    assert used["ecmp-polarised"] < 0.7 * used["ecmp"]


@routings
def test_routes_go_around_what_has_failed(fabric, routing):
    source, target = shifted(fabric, 64)
    before = routed(fabric, COMPUTE, source, target, routing)
    trunk = fabric.link_tier[before.link] > 1
    broken = tuple(np.unique(before.link[trunk])[:5].tolist())
    after = routed(fabric, COMPUTE, source, target, routing, failed=broken)
    assert not set(broken) & set(after.link.tolist())
    after.check(links_of(fabric), messages(source, target, 1.0))


def test_a_port_that_is_cut_off_is_named_by_the_engine(fabric):
    table = port_table(fabric, COMPUTE)
    source, target = shifted(fabric, 1)
    cut = int(table.link[5, 0, 0])
    routes = routed(fabric, COMPUTE, source, target, failed=(cut, cut + 1))
    with pytest.raises(UserError, match=r"message 32 has no route from node \d+ to node \d+"):
        flow.simulate(links_of(fabric), messages(source, target, 1.0), routes)


def test_an_unknown_routing_is_refused_with_the_nearest_name(fabric):
    with pytest.raises(UserError, match="unknown routing 'ecpm'"):
        routed(fabric, COMPUTE, *shifted(fabric, 1), "ecpm")


def test_a_way_takes_as_long_as_its_links_and_the_switches_between(fabric):
    source, target = (ends[:1] for ends in shifted(fabric, 64))
    routes = routed(fabric, COMPUTE, source, target)
    inner = fabric.link_target[routes.link[:-1]]
    expected = fabric.link_latency_s[routes.link].sum() + fabric.node_latency_s[inner].sum()
    assert routes.latency_s(links_of(fabric))[0] == pytest.approx(expected)
