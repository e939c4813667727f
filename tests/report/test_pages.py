"""The report: one file, nothing fetched, nothing of the user's turned into code, everything in
it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest
from markupsafe import escape

from eastwest.design.bom import Bill, Line
from eastwest.report import pages, shown
from eastwest.report.html import script_safe
from eastwest.report.waterfall import Waterfall, pieces
from eastwest.study.bands import Band
from eastwest.study.comparison import Comparison
from report.comparisons import REFUSED, comparison

VOID = {"meta", "link", "br", "img", "input", "hr", "col", "source"}
HOSTILE = "<script>alert(1)</script></script><img src=x onerror=alert(2)>\"'&lt;\u2028"


class Reader(HTMLParser):
    """Checks that tags nest; keeps attributes, text and scripts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes another tag"

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif not (self.open and self.open[-1] == "style"):
            self.text.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def page() -> str:
    return pages.comparison_page(comparison())


@pytest.fixture(scope="module")
def reader(page: str) -> Reader:
    return read(page)


def hostile() -> Comparison:
    fair = comparison()
    fact = replace(
        fair.facts[0], value=HOSTILE, source=HOSTILE, note=HOSTILE, id=HOSTILE, kind=HOSTILE
    )
    options = tuple(replace(o, label=o.label + HOSTILE, use=HOSTILE) for o in fair.options)
    line = Line("cable", HOSTILE, HOSTILE, 1, 5.0, 5.0, 0.0, HOSTILE)
    return replace(
        fair,
        cluster_line=HOSTILE,
        choice=HOSTILE,
        remarks=(HOSTILE,),
        reasons=tuple(replace(r, text=HOSTILE) for r in fair.reasons),
        options=options,
        refused=(replace(REFUSED, label=HOSTILE, reason=HOSTILE),),
        busbw_Bps=tuple((name + HOSTILE, rates) for name, rates in fair.busbw_Bps),
        bill=Bill(HOSTILE, HOSTILE, (line,)),
        facts=(fact,),
    )


def test_the_page_is_balanced_html_with_distinct_ids(reader: Reader) -> None:
    assert len(reader.ids) == len(set(reader.ids))


def test_the_page_loads_nothing(reader: Reader) -> None:
    for tag, attributes in reader.tags:
        for name in ("src", "href", "srcset", "data", "poster", "action"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:")), f"<{tag} {name}={value}>"
    styles = [a.get("style") or "" for _, a in reader.tags]
    assert not any("url(" in s for s in styles)


def test_the_policy_of_the_page_forbids_every_connection_and_foreign_script(reader: Reader) -> None:
    policy = next(
        a["content"] or ""
        for t, a in reader.tags
        if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.split("style-src")[0]
    assert "http" not in policy


def test_the_policy_names_the_digests_of_the_scripts_as_they_stand(
    page: str, reader: Reader
) -> None:
    import base64
    import hashlib

    policy = unescape(page[: page.index("<style>")])
    code = [s for s in reader.scripts if not s.startswith("{")]
    assert len(code) == 2
    for script in code:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_the_answer_comes_before_everything_else(page: str) -> None:
    order = [
        page.index(f'id="{name}"')
        for name in (
            "answer",
            "technologies",
            "step",
            "busbw",
            "latency",
            "fabric",
            "cost",
            "remarks",
            "facts",
        )
    ]
    assert order == sorted(order)
    assert order[0] < page.index(str(escape(comparison().choice))) < order[1]


def test_every_option_reason_remark_part_and_constant_is_on_the_page(reader: Reader) -> None:
    text = " ".join(" ".join(reader.text).split())
    fair = comparison()
    for words in (
        *[o.label for o in fair.options],
        *[r.text for r in fair.reasons],
        *fair.remarks,
        *[line.what for line in fair.bill.lines],
        *[f"{f.id} {f.attribute}" for f in fair.facts],
        *[f.source for f in fair.facts],
        REFUSED.label,
        REFUSED.reason,
    ):
        assert " ".join(words.split()) in text


def test_the_key_figures_are_those_of_the_chosen_option_and_its_rival(reader: Reader) -> None:
    text = " ".join(" ".join(reader.text).split())
    assert "9.31 s a training step 8.75 – 10.1 s" in text
    assert "15 % of the GPUs' time idle" in text
    assert "9.09 s saved a step against TCP/IP, 8 × 400GbE 49 % of its step" in text


def test_without_a_foil_nothing_is_saved_against_it() -> None:
    text = " ".join(read(pages.comparison_page(replace(comparison(), foil=""))).text)
    assert "a training step" in text
    assert "saved a step" not in text


def test_the_same_comparison_gives_the_same_bytes(page: str) -> None:
    assert pages.comparison_page(comparison()) == page


def test_the_page_holds_no_date_unless_it_is_given_one(page: str) -> None:
    assert "Made by eastwest" in page
    assert "Made on a Tuesday by eastwest" in pages.comparison_page(
        comparison(), made="on a Tuesday"
    )


def test_nothing_from_the_users_file_becomes_markup_or_script() -> None:
    reader = read(pages.comparison_page(hostile()))
    assert all(tag != "img" for tag, _ in reader.tags)
    assert all(not name.startswith("on") for _, attributes in reader.tags for name in attributes)
    code = [s for s in reader.scripts if not s.startswith("{")]
    assert len(code) == 2
    assert "alert(2)" in " ".join(reader.text)


def test_hostile_names_are_text_in_charts_too() -> None:
    reader = read(pages.comparison_page(hostile()))
    charts = [json.loads(s) for s in reader.scripts if s.startswith("{")]
    assert len(charts) == 4
    shown_texts = [a["text"] for c in charts for a in c["layout"].get("annotations", [])]
    assert any("&lt;script&gt;" in t for t in shown_texts)
    allowed = re.compile(r"</?b>|<br>|<extra></extra>")
    for chart in charts:
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', json.dumps(chart, ensure_ascii=False)):
            assert "<" not in allowed.sub("", text)


def test_json_cannot_end_its_script_element() -> None:
    text = script_safe(json.dumps({"name": HOSTILE}, ensure_ascii=False))
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"name": HOSTILE}


def test_a_comparison_without_plan_reasons_bands_or_costs_still_makes_a_page() -> None:
    fair = comparison()
    bare = replace(
        fair,
        options=tuple(
            replace(o, step_band=None, latency_band=None, busbw_band=None, cost_band=None)
            for o in fair.options
        ),
        reasons=(),
        remarks=(),
        plan=None,
        bill=Bill("compute", "ethernet", ()),
        facts=(),
        uncertainty_worlds=0,
    )
    assert "5–95 %" not in " ".join(read(pages.comparison_page(bare)).text)


def test_a_waterfalls_widths_are_percent_of_its_own_whole() -> None:
    made = pieces([("a", "CPU", "sender", 1e-6, ""), ("b", "NIC", "sender", 3e-6, "")])
    fall = Waterfall("x", made)
    assert [(fall.percent(p.start_s), fall.percent(p.seconds)) for p in made] == [
        (0.0, 25.0),
        (25.0, 75.0),
    ]
    assert shown.time(fall.total_s) == "4 µs"


def test_figures_are_written_as_these_readers_write_them() -> None:
    assert shown.time(1.21e-6) == "1.21 µs"
    assert shown.share(0.004) == "0.4 %"
    assert shown.share(1.0) == "100 %"
    assert shown.band(Band(8.75, 10.1), shown.time) == "8.75 – 10.1 s"
    assert shown.band(Band(0.9, 1.1), shown.time) == "900 ms – 1.1 s"
    assert shown.money_short(1_689_600.0) == "$1.69 M"
    assert shown.quantity(50e9, "B/s") == "50 GB/s"
    assert shown.quantity(330e6, "1/s") == "330,000,000 1/s"
    assert shown.time(float("nan")) == "–"


def test_the_explanation_shows_every_stage_of_every_technology_without_the_drawing_library() -> (
    None
):
    post = ("post", "CPU", "sender", 1e-7, "The host asks.")
    wire = ("wire" + HOSTILE, "wire", "network", 3e-7, "")
    falls = [
        Waterfall("RDMA", pieces([post, wire])),
        Waterfall("TCP", pieces([("copy", "CPU", "sender", 8e-7, "")])),
    ]
    made = pages.explain_page("a cluster", 8, falls, ("A remark.",), comparison().facts)
    reader = read(made)
    text = " ".join(" ".join(reader.text).split())
    for words in (
        "One message of 8 B, stage by stage",
        "RDMA: 400 ns",
        "TCP: 800 ns",
        "The host asks.",
        "A remark.",
    ):
        assert words in text
    assert len(made) < 100_000
    assert len(reader.scripts) == 1
