"""MSCCL's XML: real files are proven; malformed, hostile and deadlocking ones are refused."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastwest.collective.msccl import parse, read
from eastwest.collective.prove import Verdict, prove
from eastwest.errors import UserError

SAMPLES = Path(__file__).parent / "msccl"
RING = SAMPLES / "custom_ring_allreduce_8npus.xml"


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.xml")), ids=lambda path: path.stem)
def test_real_files_are_proven(path: Path):
    verdict = prove(read(path))
    assert verdict.fault == ""
    assert verdict.most_sent == pytest.approx(2 * 7 / 8)


TWO = """<algo name="x" proto="Simple" nchannels="1" ngpus="2" coll="{coll}" inplace="{inplace}">
  <gpu id="0" i_chunks="{i}" o_chunks="{o}" s_chunks="1">
    <tb id="0" send="1" recv="1" chan="0">
{a}
    </tb>
  </gpu>
  <gpu id="1" i_chunks="{i}" o_chunks="{o}" s_chunks="1">
    <tb id="0" send="0" recv="0" chan="0">
{b}
    </tb>
  </gpu>
</algo>
"""


def steps(*rows: str) -> str:
    """Rows such as ``s i0 o1``: type, source and target; further words are depid and deps."""
    lines = []
    for number, row in enumerate(rows):
        kind, source, target, *dep = row.split()
        block, step = dep or ("-1", "-1")
        lines.append(
            f'<step s="{number}" type="{kind}" srcbuf="{source[0]}" srcoff="{source[1:]}" '
            f'dstbuf="{target[0]}" dstoff="{target[1:]}" cnt="1" depid="{block}" deps="{step}" '
            'hasdep="0"/>'
        )
    return "\n".join(lines)


def verdict(tmp_path: Path, a: str, b: str, coll="allgather", i=1, o=2, inplace=0) -> Verdict:
    path = tmp_path / "x.xml"
    path.write_text(TWO.format(coll=coll, inplace=inplace, i=i, o=o, a=a, b=b))
    return prove(read(path))


@pytest.mark.parametrize(
    ("coll", "i", "o", "a", "b"),
    [
        (
            "allgather",
            1,
            2,
            steps("s i0 o0", "cpy i0 o0", "r i0 o1"),
            steps("s i0 o1", "cpy i0 o1", "r i0 o0"),
        ),
        ("allreduce", 1, 1, steps("s i0 i0", "rrc i0 o0"), steps("s i0 i0", "rrc i0 o0")),
        ("allreduce", 1, 1, steps("s i0 i0", "r i0 o0"), steps("rrcs i0 o0")),
        ("reduce", 1, 1, steps("rrc i0 o0"), steps("s i0 i0")),
        ("reduce", 1, 1, steps("r i0 s0", "cpy i0 o0", "nop i0 i0", "re s0 o0"), steps("s i0 i0")),
        ("broadcast", 1, 1, steps("cpy i0 o0", "s o0 i0"), steps("r i0 o0")),
        (
            "alltoall",
            2,
            2,
            steps("s i1 o0", "cpy i0 o0", "r i0 o1"),
            steps("s i0 o1", "cpy i1 o1", "r i0 o0"),
        ),
        ("reducescatter", 2, 1, steps("s i1 o0", "rrc i0 o0"), steps("s i0 o0", "rrc i1 o0")),
    ],
)
def test_each_type_of_step_does_what_it_says(tmp_path, coll, i, o, a, b):
    assert verdict(tmp_path, a, b, coll, i, o).fault == ""


def test_a_wrong_file_is_refuted_with_the_line_of_the_first_bad_move(tmp_path):
    a, b = steps("s s0 o0", "cpy i0 o0", "r i0 o1"), steps("s i0 o1", "cpy i0 o1", "r i0 o0")
    fault = verdict(tmp_path, a, b).fault
    assert fault == (
        f"{tmp_path}/x.xml:4: move 0 (step 0, channel 0: rank 0 scratch chunk 0 -> rank 1 scratch "
        "chunk 1) reads rank 0 scratch chunk 0 before anything is there"
    )


def test_both_waiting_for_the_others_message_is_a_deadlock(tmp_path):
    a, b = steps("r i0 o1", "s i0 o0", "cpy i0 o0"), steps("r i0 o0", "s i0 o1", "cpy i0 o1")
    assert "waits in a circle" in verdict(tmp_path, a, b).fault


def test_more_messages_than_a_connection_holds_are_a_deadlock(tmp_path):
    a, b = steps(*["s i0 o0"] * 2, *["r i0 o0"] * 2), steps(*["s i0 o0"] * 2, *["r i0 o0"] * 2)
    assert "waits in a circle" in verdict(tmp_path, a, b, "allreduce", 1, 1).fault


def test_a_promise_that_is_not_kept_is_told(tmp_path):
    a, b = steps("s i0 o0", "cpy i0 o0", "r i0 o0"), steps("s i0 o1", "cpy i0 o1", "r i0 o0")
    assert verdict(tmp_path, a, b).fault == (
        "rank 0 ends with chunk 1 of rank 1 in output chunk 0; promised was chunk 0 of rank 0"
    )


GOOD = TWO.format(
    coll="allreduce",
    inplace=0,
    i=1,
    o=1,
    a=steps("s i0 i0", "rrc i0 o0"),
    b=steps("s i0 i0", "rrc i0 o0"),
)
BOMB = '<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><algo name="&b;"/>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.xml:1: not XML: no element found"),
        ("<algo", "x.xml:1: not XML: unclosed token"),
        (BOMB, "x.xml:1: a document type is not allowed here"),
        ("<algo name='&b;'/>", "x.xml:1: not XML: undefined entity"),
        ("<gpu/>", "x.xml:1: <gpu> stands inside of <algo> only"),
        ("<alg/>", "x.xml:1: unknown element 'alg' (did you mean 'algo'?)"),
        ("<algo ngpus='2'/>", "x.xml:1: <algo> has no nchannels"),
        (GOOD.replace('ngpus="2"', 'ngpus="-9"'), "x.xml:1: 2 <gpu> stand here, not -9"),
        (
            GOOD.replace('ngpus="2"', 'ngpus="9999999999"'),
            "x.xml:1: ngpus is '9999999999'; expected a whole number",
        ),
        (
            GOOD.replace('"allreduce"', '"custom"'),
            "x.xml:1: unknown coll 'custom' (valid: allgather, allreduce, alltoall, broadcast, "
            "reduce, reduce_scatter, reducescatter)",
        ),
        (GOOD.replace('<gpu id="1"', '<gpu id="2"'), "x.xml:8: id is 2; expected 1, in order"),
        (
            GOOD.replace('i_chunks="1"', 'i_chunks="2"', 1),
            "x.xml:8: its chunks do not fit the collective",
        ),
        (GOOD.replace('send="1"', 'send="0"'), "x.xml:3: send is 0, no other GPU"),
        (
            GOOD.replace('type="s"', 'type="sr"', 1),
            "x.xml:4: unknown type 'sr' (did you mean 's'?)",
        ),
        (
            GOOD.replace('srcbuf="i"', 'srcbuf="x"', 1),
            "x.xml:4: unknown srcbuf 'x' (valid: i, o, s)",
        ),
        (
            GOOD.replace('type="s"', 'type="nop"', 1),
            "x.xml:11: GPU 0 sends 0 times to GPU 1 on channel 0, which receives 1 times",
        ),
        (
            GOOD.replace('cnt="1"', 'cnt="2"', 1),
            "x.xml:11: receives 1 chunks of the 2 sent in line 4",
        ),
        (
            GOOD.replace('depid="-1" deps="-1"', 'depid="0" deps="7"', 1),
            "x.xml:4: waits for step 7 of block 0, which is no other step of its GPU",
        ),
        (
            GOOD.replace('dstoff="0"', 'dstoff="5"'),
            "x.xml:5: move 2: it is outside of its target's buffer",
        ),
    ],
)
def test_what_is_no_schedule_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "x.xml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        prove(read(path))
    assert str(caught.value).removeprefix(f"{tmp_path}/") == message


def test_steps_that_only_wait_for_each_other_are_a_circle(tmp_path):
    text = GOOD.replace("rrc", "nop").replace('type="s"', 'type="nop"')
    text = text.replace('depid="-1" deps="-1"', 'depid="0" deps="1"', 1)
    path = tmp_path / "x.xml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"x\.xml:4: waits for itself in a circle"):
        read(path)


@given(
    at=st.integers(0, 10**6),
    new=st.sampled_from(["", "0", "-1", "9", "99999999", "s", "rrcs", "<", "&", '"', "o", "tb"]),
    length=st.integers(0, 12),
)
def test_a_damaged_file_ends_with_a_verdict_or_one_message(tmp_path_factory, at, new, length):
    text = RING.read_text()
    at %= len(text)
    path = tmp_path_factory.mktemp("damaged") / "x.xml"
    path.write_text(text[:at] + new + text[at + length :])
    with contextlib.suppress(UserError):
        prove(read(path))


def test_a_deep_file_is_refused_at_its_second_level():
    with pytest.raises(UserError, match="stands at the top only"):
        parse(GOOD.split("\n")[0] * 100_000, "x.xml")
