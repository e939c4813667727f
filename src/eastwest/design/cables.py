"""Which pieces join two cages. One idea: the cheapest kind of cable that reaches, else a
transceiver at each end.

A cage of a switch carries one link or several (a twin-port OSFP cage of 800 Gb/s: two of 400 Gb/s).
The catalog says of each piece how many links it carries, at what rate and how far; copper comes
before passive, active and optical cables, and these before transceivers with fibre. A piece that is
faster than needed is taken only where none fits exactly. The choice reads central values, so that
it is the same part in every drawn world; prices and power are the world's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from eastwest.catalog.load import Catalog
from eastwest.errors import UserError
from eastwest.units import format_bits_rate

WHOLE = ("copper", "dac", "acc", "aoc")  # cables with both ends, in the order of preference


@dataclass(frozen=True, slots=True)
class Part:
    """A cable, transceiver or fibre as the catalog has it."""

    id: str
    type: str
    rate_Bps: float  # of the whole piece
    links: int  # links that it carries
    far_links: int  # links in a cage at its far end, 0 for a transceiver
    reach_m: float
    media: frozenset[str]  # MMF, SMF, copper


@dataclass(frozen=True, slots=True)
class Need:
    """What is to be joined: a cage with ``near_links`` links of ``rate_Bps`` to cages with
    ``far_links`` of them."""

    rate_Bps: float
    near_links: int
    far_links: int
    length_m: float
    medium: str = ""  # copper, MMF or SMF where it must be that


@dataclass(frozen=True, slots=True)
class Joint:
    """The pieces of one class of links: one whole cable, or transceivers near and far with fibre
    between."""

    cable: Part | None = None
    near: Part | None = None
    far: Part | None = None
    fibre: Part | None = None


def parts(catalog: Catalog) -> tuple[Part, ...]:
    """Return all cables of the catalog."""

    def number(id: str, attribute: str) -> float:
        return float(catalog.fact("cable", id, attribute).value)

    def text(id: str, attribute: str) -> str:
        return str(catalog.fact("cable", id, attribute).value)

    return tuple(
        Part(
            id,
            text(id, "type"),
            number(id, "rate_Bps"),
            int(number(id, "links")),
            int(number(id, "far_links")),
            number(id, "reach_m"),
            frozenset(text(id, "medium").replace("/", " ").split()) & {"MMF", "SMF", "copper"},
        )
        for id in catalog.ids("cable")
    )


def choose(catalog: Catalog, need: Need) -> Joint:
    """Return the pieces for a class of links. Raises UserError if nothing in the catalog fits."""
    reaching = [
        part
        for part in parts(catalog)
        if part.reach_m >= need.length_m and (not need.medium or need.medium in part.media)
    ]
    found = [*_whole(reaching, need), *_optical(reaching, need)]
    if not found:
        raise UserError(
            f"no cable in the catalog joins {need.near_links} x "
            f"{format_bits_rate(need.rate_Bps)} to "
            f"{need.far_links} x {format_bits_rate(need.rate_Bps)} over {need.length_m:.3g} m",
            hint="eastwest facts cable",
        )
    return min(found, key=lambda ranked: ranked[0])[1]


Ranked = tuple[
    tuple[bool, int, float, float, int, str], Joint
]  # what decides, in this order, and the choice


def _whole(reaching: list[Part], need: Need) -> Iterator[Ranked]:
    wanted_Bps = need.near_links * need.rate_Bps
    for part in reaching:
        fits = (
            part.links == need.near_links
            and part.far_links == need.far_links
            and part.rate_Bps >= wanted_Bps
        )
        if part.type in WHOLE and fits:
            rank = (
                part.rate_Bps > wanted_Bps,
                WHOLE.index(part.type),
                part.rate_Bps,
                part.reach_m,
                1,
                part.id,
            )
            yield rank, Joint(cable=part)


def _ends(reaching: list[Part], links: int, rate_Bps: float) -> list[tuple[Part, int]]:
    """Return the transceivers for a cage, each with the links that share one of its ports (1, or 2
    by a splitter)."""
    return [
        (part, links // part.links)
        for part in reaching
        if part.type == "transceiver"
        and part.rate_Bps >= links * rate_Bps
        and part.links in (links, links / 2)
    ]


def _optical(reaching: list[Part], need: Need) -> Iterator[Ranked]:
    fibres = [part for part in reaching if part.type == "fibre"]
    near_ends = _ends(reaching, need.near_links, need.rate_Bps)
    far_ends = _ends(reaching, need.far_links, need.rate_Bps)
    for (near, near_split), (far, far_split), fibre in itertools.product(
        near_ends, far_ends, fibres
    ):
        # A splitter joins one port that is split to two that are not; otherwise fibres run
        # straight.
        splitter = 2 if near_split != far_split else 1
        port_Bps = need.rate_Bps * max(near_split, far_split)
        if (
            fibre.links == splitter
            and fibre.rate_Bps >= port_Bps
            and near.media & far.media & fibre.media
        ):
            excess = (
                near.rate_Bps > need.near_links * need.rate_Bps
                or far.rate_Bps > need.far_links * need.rate_Bps
            )
            reach_m = near.reach_m + far.reach_m
            split = near_split + far_split
            rate_Bps = near.rate_Bps + far.rate_Bps + fibre.rate_Bps
            name = f"{near.id} {far.id} {fibre.id}"
            yield (
                (excess, len(WHOLE), rate_Bps, reach_m, split, name),
                Joint(near=near, far=far, fibre=fibre),
            )
