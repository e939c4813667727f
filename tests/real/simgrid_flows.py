"""Runs in the system's Python, which has SimGrid: flows in, the times when they end out, as JSON.

Its network model is made plain max-min: no window, no factors, no cross traffic, no weight by
bandwidth.
"""

import json
import sys
import time

from simgrid import Actor, Comm, Engine, Host, LinkInRoute, NetZone, this_actor

NEUTRAL = (
    "network/model:CM02",
    "network/TCP-gamma:0",
    "network/latency-factor:1",
    "network/bandwidth-factor:1",
    "network/weight-S:0",
    "network/crosstraffic:0",
    "surf/precision:1e-12",
    "maxmin/precision:1e-9",
)


def platform(case):
    """Hosts with a route from one to the other for each flow: its ends are hosts of its own."""
    zone = NetZone.create_full_zone("all")
    links = []
    for number, (rate, latency) in enumerate(case["links"]):
        link = zone.create_link(f"l{number}", [rate])
        link.set_latency(latency)
        links.append(link.seal())
    for number, flow in enumerate(case["flows"]):
        ends = [zone.create_host(f"{end}{number}", 1e9).seal() for end in "ab"]
        route = [LinkInRoute(links[link]) for link in flow["links"]]
        if flow["cap"]:  # a link of its own: this version cannot limit what hosts send directly
            route.append(LinkInRoute(zone.create_link(f"cap{number}", [flow["cap"]]).seal()))
        zone.add_route(ends[0].netpoint, ends[1].netpoint, None, None, route, False)
    zone.seal()


def send(flows, ends):
    """One actor starts all flows at their times, then waits for each."""
    comms = []
    for number in sorted(range(len(flows)), key=lambda number: flows[number]["start"]):
        flow = flows[number]
        this_actor.sleep_until(flow["start"])
        hosts = Host.by_name(f"a{number}"), Host.by_name(f"b{number}")
        comms.append((number, Comm.sendto_async(*hosts, int(flow["size"]))))
    for number, comm in comms:
        comm.wait()
        ends[number] = comm.finish_time


def main():
    """Read a case on stdin, write the ends on stdout."""
    case = json.load(sys.stdin)
    engine = Engine(
        ["simgrid", *(f"--cfg={setting}" for setting in NEUTRAL), "--log=root.thres:error"]
    )
    platform(case)
    ends = [0.0] * len(case["flows"])
    Actor.create("sender", Host.by_name("a0"), send, case["flows"], ends)
    begin = time.process_time()
    engine.run()
    seconds = time.process_time() - begin
    json.dump({"ends": ends, "seconds": seconds}, sys.stdout)


main()
