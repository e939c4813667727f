"""What all charts share. One idea: no frame, no axis that is not read, and each label above its
bar, so that a chart fits a phone.

Text from the user's file is escaped, as plotly reads a little HTML in labels.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'
CHOSEN = " ✓"  # behind the name of what is chosen
INK, SOFT, GRID = "#1c2126", "#5d6670", "#dfe3e6"


def label(text: str) -> str:
    """Return text as plotly shows it literally."""
    return escape(text, quote=False)


def blank(height: int, margin: dict[str, int]) -> Figure:
    """Return a figure without data, on no ground of its own, so that it suits light and dark.

    Parameters
    ----------
    height : in pixels, at least 40.
    margin : pixels at ``l``, ``r``, ``t`` and ``b``.
    """
    from plotly import graph_objects as go

    figure = go.Figure()
    figure.update_layout(
        template={},
        height=max(40, height),
        margin=margin,
        font={"family": FONT, "size": 13, "color": INK},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        hoverlabel={"font": {"family": FONT, "size": 13}, "align": "left"},
        hovermode="closest",
        showlegend=True,
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": "#7d8792", "activecolor": "#0072b2"},
        legend={"orientation": "h", "y": -0.15, "x": 0},
        barmode="overlay",
        dragmode=False,
        # Text that does not fit into its bar is left out rather than shrunk to nothing.
        uniformtext={"minsize": 10, "mode": "hide"},
    )
    return figure


def bars_above(figure: Figure, rows: int, axis: dict[str, Any]) -> None:
    """Set the axes of a chart whose labels stand above the bars.

    Parameters
    ----------
    figure : with bars at y = 0, 1, …
    rows : how many bars.
    axis : of the bars' lengths, as plotly has it.
    """
    figure.update_xaxes(
        zeroline=False, gridcolor=GRID, fixedrange=True, ticks="outside", tickcolor=GRID, **axis
    )
    figure.update_yaxes(visible=False, range=[rows - 0.38, -0.62], fixedrange=True)


def row_text(figure: Figure, row: int, left: str, right: str, bold: bool = False) -> None:
    """Write above a bar.

    Parameters
    ----------
    figure : with bars at y = 0, 1, …
    row : which bar.
    left : its name, escaped.
    right : its value.
    bold : whether it stands out.
    """
    for x, anchor, text in ((0, "left", left), (1, "right", right)):
        figure.add_annotation(
            x=x,
            xref="paper",
            xanchor=anchor,
            y=row - 0.43,
            yref="y",
            yanchor="middle",
            showarrow=False,
            text=f"<b>{text}</b>" if bold else text,
            align=anchor,
        )
