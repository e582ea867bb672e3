"""Durations; the texts are of Go's time package, as a Go server was recorded to use them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.serving.api.durations import DurationError, seconds


@pytest.mark.parametrize(
    ("text", "expected_s"),
    [
        ("0", 0),
        ("-0", 0),
        ("1s", 1),
        ("+1s", 1),
        ("-1.5h", -5400),
        ("1m30.5s", 90.5),
        (".5s", 0.5),
        ("1.s", 1),
        ("3ms2us1ns", 0.003002001),
        ("5µs", 0.000005),
        ("5μs", 0.000005),
        ("2562047h47m16.854775807s", 9223372036.854775807),
        ("-2562047h47m16.854775808s", -9223372036.854775808),
        pytest.param("0" * 5000 + "1s", 1, id="many zeros"),
        pytest.param("1." + "3" * 5000 + "s", 4 / 3, id="many digits"),
    ],
)
def test_a_duration_is_read(text: str, expected_s: float) -> None:
    assert seconds(text) == pytest.approx(expected_s)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("x", 'invalid duration "x"', id="ext-068"),
        ("", 'invalid duration ""'),
        ("-", 'invalid duration "-"'),
        ("1", 'missing unit in duration "1"'),
        ("1s2", 'missing unit in duration "1s2"'),
        ("1 s", 'unknown unit " s" in duration "1 s"'),
        ("1d", 'unknown unit "d" in duration "1d"'),
        (".s", 'invalid duration ".s"'),
        ("é\n", r'invalid duration "\xc3\xa9\x0a"'),
        ('1"', r'unknown unit "\"" in duration "1\""'),
        ("9999999h", 'invalid duration "9999999h"'),
        ("2562047h47m16.854775808s", 'invalid duration "2562047h47m16.854775808s"'),
        pytest.param("9" * 5000 + "s", f'invalid duration "{"9" * 5000}s"', id="more digits than an int may have"),
    ],
)
def test_what_is_no_duration_is_told_in_gos_words(text: str, fault: str) -> None:
    with pytest.raises(DurationError) as raised:
        seconds(text)
    assert str(raised.value) == fault


@given(st.text("0123456789.smhnuµ+- x", max_size=12))
def test_any_text_is_a_duration_or_is_told_not_to_be(text: str) -> None:
    with suppress(DurationError):
        assert abs(seconds(text)) < 1e10
