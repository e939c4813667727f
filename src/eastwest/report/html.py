"""One file that holds its whole page. One idea: nothing is fetched, and nothing from the user's
file can become code.

Templates escape all text. The page's policy allows only scripts whose digest it names, and no
connection at all, so that even a mistake here could neither run a stranger's script nor send
anything out.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any

from eastwest.report import palette, shown

if TYPE_CHECKING:
    from jinja2 import Environment
    from plotly.graph_objects import Figure


def _resource(name: str) -> str:
    return (
        resources.files("eastwest.report").joinpath("templates", name).read_text(encoding="utf-8")
    )


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_resource),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "time": shown.time,
        "share": shown.share,
        "place_colour": palette.place,
    }
    return environment


def script_safe(data: str) -> str:
    """Return JSON that stands safely inside a script element: no tag, comment or line separator can
    end it."""
    for character in "<>&\u2028\u2029":
        data = data.replace(character, f"\\u{ord(character):04x}")
    return data


def figure_json(figure: Figure) -> str:
    """Return a figure's data and layout as JSON that is safe inside a page; the page shows the
    legend itself."""
    parts = json.loads(figure.to_json())
    parts["layout"]["showlegend"] = False
    return script_safe(
        json.dumps(
            {"data": parts["data"], "layout": parts["layout"]}, ensure_ascii=False, sort_keys=True
        )
    )


@functools.cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    # The parser of a page knows only line feeds; the digest must be of what it sees.
    return str(get_plotlyjs()).replace("\r\n", "\n").replace("\r", "\n")


def _digest(script: str) -> str:
    return (
        "'sha256-"
        + base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
        + "'"
    )


def version() -> str:
    """Return eastwest's version."""
    try:
        return metadata.version("eastwest")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def render(template: str, charts: bool, **page: Any) -> str:
    """Return a whole page; the same arguments give the same bytes.

    Parameters
    ----------
    template : a file of the templates' folder.
    charts : whether to embed the drawing library (4.8 MB).
    page : what the template names.
    """
    scripts = [_plotly(), _resource("page.js")] if charts else [_resource("page.js")]
    policy = (
        f"default-src 'none'; script-src {' '.join(_digest(s) for s in scripts)}; style-src "
        "'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return (
        _environment()
        .get_template(template)
        .render(
            policy=policy, scripts=scripts, style=_resource("style.css"), version=version(), **page
        )
    )
