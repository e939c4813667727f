"""NCCL's switches, by NCCL's own names. One idea: what a user exports is written as it is, read as
NCCL reads it, and refused where NCCL does not know it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from eastwest.errors import nearest
from eastwest.spec.quantities import custom, describe
from eastwest.spec.section import Section

# NCCL's words for what eastwest names after them.
ALGORITHMS = {
    "ring": "ring",
    "tree": "tree",
    "collnetdirect": "collnet_direct",
    "collnetchain": "collnet_chain",
    "nvls": "nvls",
    "nvlstree": "nvls_tree",
    "pat": "pat",
}
PROTOCOLS = {"ll": "ll", "ll128": "ll128", "simple": "simple"}
_WRITTEN = {
    "ring": "Ring",
    "tree": "Tree",
    "collnetdirect": "CollnetDirect",
    "collnetchain": "CollnetChain",
    "nvls": "NVLS",
    "nvlstree": "NVLSTree",
    "pat": "PAT",
    "ll": "LL",
    "ll128": "LL128",
    "simple": "Simple",
}


def _some_of(known: dict[str, str]) -> BeforeValidator:
    """Return the check of a list such as ``Ring,Tree`` or ``^Tree`` (all but that)."""

    def read(value: Any) -> Any:
        names = ", ".join(_WRITTEN[name] for name in known)
        if not isinstance(value, str) or not value.strip("^ "):
            raise custom(f"expected some of {names}, not {describe(value)}", "such as Ring,Tree")
        words = [word.strip() for word in value.removeprefix("^").split(",")]
        for word in words:
            if word.lower() not in known:
                close = nearest(word.lower(), known)
                hint = f"did you mean '{_WRITTEN[close]}'?" if close else ""
                raise custom(f"NCCL knows no {describe(word)}; expected some of {names}", hint)
        said = {known[word.lower()] for word in words}
        kept = set(known.values()) - said if value.startswith("^") else said
        if not kept:
            raise custom(f"{describe(value)} leaves nothing")
        return tuple(name for name in known.values() if name in kept)

    return BeforeValidator(read)


def _listed(known: dict[str, str]) -> WithJsonSchema:
    words = "|".join(_WRITTEN[name] for name in known)
    return WithJsonSchema({"type": "string", "pattern": rf"^\^?({words})(,({words}))*$"})


Algorithms = Annotated[tuple[str, ...], _some_of(ALGORITHMS), _listed(ALGORITHMS)]
Protocols = Annotated[tuple[str, ...], _some_of(PROTOCOLS), _listed(PROTOCOLS)]
Switch = Literal[0, 1]
Channels = Annotated[int, Field(ge=1, le=64)]

LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS")  # from one device to two sockets
# What no model of ours has a place for: said by check, so that nobody takes it for modelled.
NOT_MODELLED = ("NCCL_CROSS_NIC", "NCCL_MIN_NCHANNELS", "NCCL_IB_QPS_PER_CONNECTION")


class Nccl(Section):
    """NCCL's environment, as far as it changes what is sent how."""

    NCCL_ALGO: Algorithms | None = Field(
        default=None, description="Algorithms that may be chosen, such as Ring,Tree or ^NVLS."
    )
    NCCL_PROTO: Protocols | None = Field(
        default=None, description="Protocols that may be chosen, such as LL,Simple or ^LL128."
    )
    NCCL_NVLS_ENABLE: Literal[0, 1, 2] | None = Field(
        default=None, description="Whether NVSwitches may add: 0, 1, or 2 to find out."
    )
    NCCL_COLLNET_ENABLE: Switch | None = Field(
        default=None, description="Whether the network's switches may add (SHARP): 0 or 1."
    )
    NCCL_NET_GDR_LEVEL: Literal["LOC", "PIX", "PXB", "PHB", "SYS"] | None = Field(
        default=None,
        description="How far apart a GPU and its NIC may be for GPUDirect: LOC (never), PIX, PXB, "
        "PHB or SYS.",
    )
    NCCL_PXN_DISABLE: Switch | None = Field(
        default=None,
        description="Whether messages may not be handed to the GPU beside the right NIC: 0 or 1.",
    )
    NCCL_CROSS_NIC: Literal[0, 1, 2] | None = Field(
        default=None, description="Whether a ring may change rails: 0, 1, or 2 to find out."
    )
    NCCL_MIN_NCHANNELS: Channels | None = Field(default=None, description="Channels at the least.")
    NCCL_MAX_NCHANNELS: Channels | None = Field(default=None, description="Channels at the most.")
    NCCL_SOCKET_NTHREADS: Annotated[int, Field(ge=1, le=16)] | None = Field(
        default=None, description="Threads that serve a connection over TCP."
    )
    NCCL_NSOCKS_PERTHREAD: Annotated[int, Field(ge=1, le=64)] | None = Field(
        default=None, description="TCP connections of each of those threads."
    )
    NCCL_P2P_DISABLE: Switch | None = Field(
        default=None, description="Whether GPUs may not reach each other's memory: 0 or 1."
    )
    NCCL_IB_QPS_PER_CONNECTION: Annotated[int, Field(ge=1, le=128)] | None = Field(
        default=None, description="Queue pairs of a connection."
    )

    @model_validator(mode="after")
    def _fits(self) -> Nccl:
        least, most = self.NCCL_MIN_NCHANNELS, self.NCCL_MAX_NCHANNELS
        if least and most and least > most:
            raise custom(f"NCCL_MIN_NCHANNELS {least} is above NCCL_MAX_NCHANNELS {most}")
        if (self.sockets or 0) > MOST_SOCKETS:
            raise custom(
                f"NCCL_SOCKET_NTHREADS times NCCL_NSOCKS_PERTHREAD is {self.sockets}; NCCL takes "
                f"at most {MOST_SOCKETS}"
            )
        return self

    @property
    def sockets(self) -> int | None:
        """TCP connections of a NIC to each peer; None where nothing is said of them."""
        threads, each = self.NCCL_SOCKET_NTHREADS, self.NCCL_NSOCKS_PERTHREAD
        return (threads or 1) * (each or 1) if threads or each else None

    def said(self) -> dict[str, Any]:
        """Return what is set, by NCCL's names, as one writes it."""
        found = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, tuple):
                written = {**ALGORITHMS, **PROTOCOLS}
                value = ",".join(_WRITTEN[k] for k, v in written.items() if v in value)
            if value is not None:
                found[name] = value
        return found

    def not_modelled(self) -> tuple[str, ...]:
        """Return the names of what is set and changes no figure here."""
        return tuple(name for name in NOT_MODELLED if getattr(self, name) is not None)


MOST_SOCKETS = 64
