"""Units: strict where people differ by a factor of eight, and back again."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastwest import units
from eastwest.errors import UserError


@pytest.mark.parametrize(
    ("text", "expected_Bps"),
    [
        ("400Gb/s", 50e9),
        ("400 Gbit/s", 50e9),
        ("400Gbps", 50e9),
        ("50GB/s", 50e9),
        ("50 GBps", 50e9),
        ("1Tb/s", 125e9),
        ("1GiB/s", 2**30),
        ("9600 b/s", 1200),
        ("2.5Mbits/s", 312500),
    ],
)
def test_rates_are_bits_or_bytes_as_written(text, expected_Bps):
    assert units.parse_rate(text) == pytest.approx(expected_Bps, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "size"), [("8GiB", 2**33), ("8 GB", 8 * 10**9), ("8B", 8), ("1.5KiB", 1536), ("0B", 0)]
)
def test_sizes_tell_powers_of_two_from_powers_of_ten(text, size):
    assert units.parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "time_s"),
    [("1.2us", 1.2e-6), ("1.2 µs", 1.2e-6), ("3 ms", 3e-3), ("12s", 12), ("2h", 7200)],
)
def test_times(text, time_s):
    assert units.parse_time(text) == pytest.approx(time_s, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "size"),
    [("8", 8), ("4K", 4096), ("8G", 2**33), ("1g", 2**30), ("8GiB", 2**33), ("8GB", 8 * 10**9)],
)
def test_nccl_sizes_are_powers_of_two_as_in_nccl_tests(text, size):
    assert units.parse_nccl_size(text) == size


def test_what_has_two_readings_is_refused_and_both_are_named():
    with pytest.raises(UserError) as rate:
        units.parse_rate("400G")
    assert str(rate.value) == "rate '400G' is ambiguous: write '400Gb/s' or '400GB/s'"
    with pytest.raises(UserError) as size:
        units.parse_size("8G")
    assert str(size.value) == "size '8G' is ambiguous: write '8GiB' or '8GB'"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "400",
        "Gb/s",
        "400gb/s",
        "-4GB",
        "1e999GB",
        "4 00GB",
        "4GB ; rm",
        "nan",
        "infs",
        "٤GB",
        "1_0GB",
    ],
)
def test_everything_else_is_refused(text):
    for parse in (units.parse_rate, units.parse_size, units.parse_time):
        with pytest.raises(UserError):
            parse(text)


@pytest.mark.parametrize(
    ("given_", "ratio"), [("2:1", 2), ("4:3", 4 / 3), (1, 1), (1.125, 1.125), ("1 : 2", 0.5)]
)
def test_ratios(given_, ratio):
    assert units.parse_ratio(given_) == pytest.approx(ratio)


@pytest.mark.parametrize("bad", ["1:0", "a:b", "2", True, None, float("nan"), float("inf")])
def test_bad_ratios_are_refused(bad):
    with pytest.raises(UserError):
        units.parse_ratio(bad)


@given(st.floats(1e-12, 1e9))
def test_a_shown_time_reads_back_as_itself(time_s):
    assert units.parse_time(units.format_time(time_s).replace(" ", "")) == pytest.approx(
        time_s, rel=0.02
    )


@given(st.floats(1, 1e15))
def test_shown_rates_and_sizes_read_back_as_themselves(value):
    assert units.parse_rate(units.format_bits_rate(value)) == pytest.approx(value, rel=0.02)
    assert units.parse_rate(units.format_bytes_rate(value)) == pytest.approx(value, rel=0.02)
    assert units.parse_size(units.format_size(value)) == pytest.approx(value, rel=0.02, abs=1)


@given(st.text(max_size=30))
def test_no_text_breaks_the_parsers(text):
    for parse in (
        units.parse_rate,
        units.parse_size,
        units.parse_time,
        units.parse_nccl_size,
        units.parse_ratio,
    ):
        try:
            value = parse(text)
        except UserError:
            continue
        assert math.isfinite(value)
        assert value >= 0


def test_how_people_read_them():
    assert units.format_time(1.21e-6) == "1.21 us"
    assert units.format_time(0) == "0 s"
    assert units.format_size(8 * 2**30) == "8 GiB"
    assert units.format_bits_rate(50e9) == "400 Gb/s"
    assert units.format_bytes_rate(48.3e9) == "48.3 GB/s"
    assert units.format_money(1234.5) == "$1,234"
    assert units.format_count(70.553706496e9) == "70.6 B"
