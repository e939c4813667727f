"""The step graph of one class of equal ranks. One idea: a pass through a layer is a chain, and all
else hangs on chains.

A forward pass (backward the same way round, its blocks in the other order)::

    weights > gather > keys and values > attention > scatter > gather > dispatch > feed-forward >
    combine > scatter
                                                                                       … next layer
                                                                                       … > head,
                                                                                       send
"""

from __future__ import annotations

from dataclasses import replace

from eastwest.training.operations import PART, Operation
from eastwest.training.plan import Message, Plan


def operations(
    p: Plan, seconds: tuple[float, ...], exposed: tuple[float, ...]
) -> tuple[Operation, ...]:
    """Return a rank's operations in the order of a microbatch, then what a step has once.

    ``seconds`` are of each of the plan's messages, ``exposed`` what all repetitions of it add to
    the step.
    """
    talk = {
        m.name: _communication(m, s, e)
        for m, s, e in zip(p.messages, seconds, exposed, strict=True)
    }
    found = _pass(p, talk, "forward", ())
    last = _ends(found)
    if p.recompute.forward_s:
        found += _pass(p, talk, "recompute", last)
        last = _ends(found)
    found += _pass(p, talk, "backward", last)
    gradients = [
        replace(talk[m.name], depends_on=_ends(found)) for m in p.messages if m.phase == "gradients"
    ]
    after = tuple(g.name for g in gradients) or _ends(found)
    rest = p.inputs.machine.step_s
    once = [
        _compute("optimizer", "memory", p.optimizer_s, 1.0, "step", "optimizer", after),
        _compute(
            "rest of the step", "compute", rest, 1.0, "step", "rest of the step", ("optimizer",)
        ),
    ]
    weights = [
        replace(talk[m.name], depends_on=("optimizer",)) for m in p.messages if m.phase == "weights"
    ]
    return (*found, *gradients, *once, *weights)


def _ends(found: list[Operation]) -> tuple[str, ...]:
    """Return the name of the last operation that computes or that a layer waits for (nothing waits
    for a send here)."""
    return (next(o.name for o in reversed(found) if o.kind != "send"),)


def _pass(
    p: Plan, talk: dict[str, Operation], phase: str, before: tuple[str, ...]
) -> list[Operation]:
    """Return one pass as a chain that starts after ``before``."""
    computing = {o.name: o for o in _computing(p, phase)}
    blocks = [
        [
            f"{phase} attention gather",
            f"{phase} keys and values gather",
            f"{phase} attention",
            f"{phase} keys and values scatter",
            f"{phase} attention scatter",
            f"{phase} attention all-reduce",
        ],
        [
            f"{phase} feed-forward gather",
            f"{phase} dispatch",
            f"{phase} feed-forward",
            f"{phase} combine",
            f"{phase} feed-forward scatter",
            f"{phase} feed-forward all-reduce",
        ],
    ]
    weights = [f"weights {phase}", f"expert weights {phase}"]
    if phase == "backward":
        names = [f"{phase} head", *weights, *blocks[1], *blocks[0]]
    else:
        names = [*weights, *blocks[0], *blocks[1], f"{phase} head"]
    chain: list[Operation] = []
    for name in [*names, f"{phase} send"]:
        operation = computing.get(name) or talk.get(name)
        if operation:
            chain.append(replace(operation, depends_on=before))
            before = (name,)
    return chain


def _computing(p: Plan, phase: str) -> list[Operation]:
    """Return what a pass computes; a layer that the host launches too slowly is stretched as a
    whole."""
    times, repeats = p.times, p.layers * p.microbatches
    back, part = phase == "backward", "recomputation" if phase == "recompute" else "compute"
    whole = {
        "forward": times.layer.forward_s,
        "backward": times.layer.backward_s,
        "recompute": p.recompute.forward_s,
    }
    a, f = (x.backward_s if back else x.forward_s for x in (times.attention, times.ffn))
    found = [
        _compute(
            f"{phase} {block}", "compute", whole[phase] * own / (a + f), repeats, "layer", part
        )
        for block, own in (("attention", a), ("feed-forward", f))
    ]
    if phase != "recompute":
        head = times.head.backward_s if back else times.head.forward_s
        stages = p.inputs.layout.pipeline
        found.append(
            _compute(f"{phase} head", "compute", head, p.microbatches / stages, "microbatch", part)
        )
    return found


def _compute(
    name: str,
    kind: str,
    seconds: float,
    repeats: float,
    scope: str,
    part: str,
    depends_on: tuple[str, ...] = (),
) -> Operation:
    return Operation(
        name, kind, seconds, seconds, repeats, scope, part, "compute", None, "", 0.0, depends_on
    )


def _communication(m: Message, seconds: float, exposed: float) -> Operation:
    kind = "send" if m.op == "send" else "collective"
    return Operation(
        m.name,
        kind,
        seconds,
        exposed / m.repeats,
        m.repeats,
        m.scope,
        PART[m.kind],
        m.kind,
        m.group,
        m.op,
        m.size_bytes,
        (),
    )
