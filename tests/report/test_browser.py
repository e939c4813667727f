"""The report in a real browser: no error on its console, nothing wider than a phone. Skipped where
Chromium is not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from eastwest.report import pages
from report.comparisons import comparison

CHROMIUM = next(
    (
        found
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    ),
    None,
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

# A window is never narrower than 500 px, a frame is; the page within stays what it is.
FRAME = """<!DOCTYPE html><meta charset="utf-8">
<iframe id="f" style="width:{width}px;height:900px;border:0"></iframe>
<pre id="out"></pre><script>
const frame = document.getElementById("f");
frame.srcdoc = {page};
frame.onload = () => setTimeout(() => {{
  const inside = frame.contentDocument, root = inside.documentElement;
  const wide = [...inside.querySelectorAll("body *")].filter(
    e => !e.closest(".scroll, svg, thead") && e.getBoundingClientRect().right > {width} + 1);
  document.getElementById("out").textContent = JSON.stringify({{
    width: root.scrollWidth,
    charts: inside.querySelectorAll(".plot .main-svg").length,
    wide: wide.map(e => e.tagName + "." + e.className)
  }});
}}, 500);
</script>"""


def browse(folder: Path, page: str, width: int) -> tuple[dict[str, object], str]:
    """Return what the page measures inside a frame of the width, and what the console said."""
    wrapper = folder / "frame.html"
    quoted = (
        json.dumps(page)
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )
    wrapper.write_text(FRAME.format(width=width, page=quoted), encoding="utf-8")
    assert CHROMIUM is not None
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={folder / 'profile'}",
        "--enable-logging=stderr",
        "--virtual-time-budget=15000",
        "--dump-dom",
        wrapper.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    said = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return json.loads(found[1].replace("&amp;", "&")), said


@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_draws_its_charts_without_errors_and_fits(tmp_path: Path, width: int) -> None:
    seen, said = browse(tmp_path, pages.comparison_page(comparison()), width)
    assert said == ""
    assert seen["charts"] == 4 * 3  # a chart of plotly is three layers
    assert seen["wide"] == []
    assert isinstance(seen["width"], int)
    assert seen["width"] <= width
