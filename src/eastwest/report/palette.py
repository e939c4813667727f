"""Colours with one meaning each. One idea: middle brightness, so that each reads on white, on black
and on paper.

The hues are told apart with the usual colour-vision deficiencies (they start from Okabe and Ito's
set, 2008); each technology also has a marker shape and a dash, so that nothing is told by colour
alone.
"""

from __future__ import annotations

from collections.abc import Iterable

TECHNOLOGY = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#b85c93",
    "#a8780b",
    "#4b9cd3",
    "#7a7f87",
    "#7c62c4",
    "#c2473f",
)
MARKERS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "cross",
    "x",
    "star",
    "pentagon",
)
DASHES = ("solid", "solid", "solid", "dash", "dot", "dash", "dashdot", "dot", "dashdot")
RAIL = ("#0072b2", "#d55e00", "#009e73", "#b85c93", "#a8780b", "#4b9cd3", "#7a7f87", "#7c62c4")

# A step's useful work is grey; what keeps the GPUs waiting stands out.
USEFUL = "#8b96a3"
WAITING = ("#d1495b", "#e08a1e", "#2e86ab", "#7d5ba6", "#3a9d6e", "#b0772f", "#5c6f82", "#c77daf")

PLACE = {
    "CPU": "#d1495b",
    "GPU": "#3a9d6e",
    "NIC": "#2f7dc0",
    "PCIe": "#63b3d9",
    "memory": "#d79a15",
    "wire": "#9aa3ad",
    "switch": "#5f6b78",
    "device": "#8d5fb0",
}
OTHER_PLACE = "#777777"


def technology(index: int) -> str:
    """Return the colour of the page's index-th technology; beyond the last the colours repeat, the
    markers do not help."""
    return TECHNOLOGY[index % len(TECHNOLOGY)]


def marker(index: int) -> str:
    """Return the marker of the index-th technology; shifted each time round, so that colour and
    marker stay a pair."""
    return MARKERS[(index + index // len(MARKERS)) % len(MARKERS)]


def dash(index: int) -> str:
    """Return the line's dash of the index-th technology."""
    return DASHES[index % len(DASHES)]


def parts(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each part of a step, in the order in which parts first appear."""
    colours: dict[str, str] = {}
    for name in names:
        if name not in colours:
            waiting = sum(c != USEFUL for c in colours.values())
            colours[name] = (
                USEFUL if name.startswith("compute") else WAITING[waiting % len(WAITING)]
            )
    return colours


def place(name: str) -> str:
    """Return the colour of a place of work."""
    return PLACE.get(name, OTHER_PLACE)


def ink_on(colour: str) -> str:
    """Return black or white, whichever reads better on the colour (relative luminance as in WCAG
    2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"
