"""Inside the server. One idea: GPU, NIC and memory are nodes of one graph, so a detour costs what
its links cost.

::

    GPU0 … GPU7 ── NVSwitch (every GPU to every other)
      │      │
    PCIe switch 0 … 3 ── NIC0 … NIC7          GPUDirect: GPU ─ PCIe switch ─ NIC
      │                                       staged:    GPU ─ PCIe switch ─ root ─ DRAM ─ root ─
      PCIe switch ─ NIC
    root complex 0 ── root complex 1
      │   ╲                │                  storage NICs and the BMC hang on root complexes
    DRAM 0  BMC          DRAM 1

``structure`` knows who hangs where, ``graph`` gives its links the rates of a world, ``ways`` finds
the way between two nodes, ``bottlenecks`` tells what flows get that share links, ``peers`` what
joins the GPUs.
"""

from eastwest.fabric.server.bottlenecks import Flow, Loads, bottlenecks
from eastwest.fabric.server.graph import ServerGraph, server_graph
from eastwest.fabric.server.peers import Peers, PeerWay, peer_way, peers
from eastwest.fabric.server.structure import Counts, LinkClass, Structure, structure
from eastwest.fabric.server.ways import Route, distance, joined, route

__all__ = [
    "Counts",
    "Flow",
    "LinkClass",
    "Loads",
    "PeerWay",
    "Peers",
    "Route",
    "ServerGraph",
    "Structure",
    "bottlenecks",
    "distance",
    "joined",
    "peer_way",
    "peers",
    "route",
    "server_graph",
    "structure",
]
