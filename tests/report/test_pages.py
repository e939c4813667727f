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

from eastwest.report import pages, shown
from eastwest.report.html import script_safe
from eastwest.study.compare import Band, Comparison
from eastwest.table import Column, Table
from report.comparisons import OPTIONS, comparison

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
    columns = (Column("part", HOSTILE, right=False), Column("sum_USD", "$"))
    options = tuple(replace(o, label=o.label + HOSTILE, use=HOSTILE) for o in fair.options[:-1])
    return replace(
        fair,
        cluster_line=HOSTILE,
        choice=HOSTILE,
        remarks=(HOSTILE,),
        reasons=tuple(replace(r, text=HOSTILE) for r in fair.reasons),
        options=(*options, replace(fair.options[-1], label=HOSTILE, refused=HOSTILE)),
        busbw_Bps=tuple((name + HOSTILE, rates) for name, rates in fair.busbw_Bps),
        bill=Table(HOSTILE, columns, ((HOSTILE, 5.0), ("total", 5.0)), (HOSTILE,)),
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
        *[str(row[1]) for row in fair.bill.rows],
        *[f"{f.id} {f.attribute}" for f in fair.facts],
        *[f.source for f in fair.facts],
        OPTIONS[-1].refused,
    ):
        assert " ".join(words.split()) in text


def test_the_key_figures_are_those_of_the_chosen_option_and_its_rival(reader: Reader) -> None:
    text = " ".join(" ".join(reader.text).split())
    assert "9.31 s a training step 8.75 – 10.1 s" in text
    assert "15 % of the GPUs' time idle" in text
    assert "9.09 s saved a step against TCP/IP, 8 × 400GbE 49 % of its step" in text


def test_without_a_named_rival_the_next_kind_of_transport_is_taken() -> None:
    other = pages.rival(replace(comparison(), against=""))
    assert other is not None
    # RoCE with GPUDirect is faster, but it is the same kind: the host does nothing in it either.
    assert other.technology == "infiniband-staged"


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


def test_a_comparison_without_plan_reasons_bands_or_bill_still_makes_a_page() -> None:
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
        bill=Table("", (), ()),
        facts=(),
        uncertainty_worlds=0,
        busbw_Bps=(),
        busbw_sizes_bytes=(),
    )
    assert "5–95 %" not in " ".join(read(pages.comparison_page(bare)).text)


def test_if_every_technology_is_refused_the_page_says_why() -> None:
    fair = comparison()
    none = replace(
        fair, options=(OPTIONS[-1],), choice="None can be built.", busbw_Bps=(), reasons=()
    )
    text = " ".join(read(pages.comparison_page(none)).text)
    assert "None can be built." in text
    assert OPTIONS[-1].refused in text


def test_a_waterfall_begins_each_stage_where_the_one_before_it_ended() -> None:
    fall = pages.waterfall("x", [("a", "CPU", "sender", 1e-6), ("b", "NIC", "sender", 3e-6)])
    assert [(r.bar.left, r.bar.width) for r in fall.rows] == [(0.0, 25.0), (25.0, 75.0)]
    assert fall.total == "4 µs"


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
    paths = [
        ("RDMA", [("post", "CPU", "sender", 1e-7), ("wire" + HOSTILE, "wire", "network", 3e-7)]),
        ("TCP", [("copy", "CPU", "sender", 8e-7)]),
    ]
    made = pages.explain_page(
        "a cluster", 8, paths, {"RDMA": ("The host asks.", "")}, ("A remark.",), comparison().facts
    )
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
