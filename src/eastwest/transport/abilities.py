"""What a transport can do. One idea: who must decide by it asks its declaration, not its name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a transport's module declares of itself.

    ``packets`` are the formats it can travel in (entries of ``packet.csv``). ``reaches_gpu`` tells
    that its NIC can read and write GPU memory itself, so that no byte crosses host memory;
    ``carries_gpus`` that it can be the network between GPUs; ``through_store`` that a message
    goes by storage targets, over the storage network's NICs and switches, which all servers share;
    ``kernel`` that the hosts' kernels carry the payload, over ``sockets`` that a cluster file may
    count.
    """

    packets: tuple[str, ...]
    reaches_gpu: bool = False
    carries_gpus: bool = True
    through_store: bool = False
    kernel: bool = False
