"""Requirements X-06 (no NaN, no infinity), X-07 and X-08 (what an HPA computes from the text); cases 44-48."""

import math
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapter.serving.metric_reader import LARGEST, quantity


def parse(text: str) -> Decimal:
    """The number of a Quantity that `quantity` writes."""
    digits = text.rstrip("mkMGTP")
    return Decimal(digits).scaleb({"m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}[text[len(digits) :]])


def milli_value(text: str) -> int:
    """What an HPA reads: thousandths, fractions of them away from zero, in 64 bits."""
    milli = parse(text) * 1000
    return int(milli.to_integral_value("ROUND_UP"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(0, "0", id="case 44, ext-090: nothing"),
        pytest.param(0.001, "1m", id="case 44, ext-090: the smallest"),
        pytest.param(0.999, "999m", id="case 44, ext-090: below one"),
        pytest.param(1.0, "1", id="case 44, ext-090: a whole number stays whole"),
        pytest.param(1.5, "1500m", id="case 44, ext-090: a fraction is in milli"),
        pytest.param(20.0, "20", id="case 44, ext-090: workers"),
        pytest.param(20.0004, "20", id="case 48: noise is rounded off, never 20001m"),
        pytest.param(20.000000001, "20", id="case 48: smaller noise too"),
        pytest.param(0.0005, "1m", id="half is rounded up"),
        pytest.param(1.0005, "1001m", id="half as it is written, not as it is stored"),
        pytest.param(0.00049, "0", id="less than half is rounded down"),
        pytest.param(1000, "1k", id="case 44, ext-090: the largest suffix that divides"),
        pytest.param(1_234_567, "1234567", id="no suffix divides"),
        pytest.param(1_500_000, "1500k", id="the largest that divides is not the largest there is"),
        pytest.param(1234.567, "1234567m", id="case 44, ext-090: milli of thousands"),
        pytest.param(1e6, "1M", id="case 44, ext-090: a million"),
        pytest.param(1e9, "1G", id="case 44, ext-090: a billion"),
        pytest.param(1e16, "9P", id="case 47: more than an HPA can read is cut"),
        pytest.param(10**400, "9P", id="an integer that no float holds"),
        pytest.param(-0.0, "0", id="minus nothing is nothing"),
    ],
)
def test_a_value_is_written_as_kubernetes_writes_it(value: float, text: str) -> None:
    assert quantity(value) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0, -0.001, -1])
def test_x06_case_45_invalid_numbers_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="expected a finite number >= 0"):
        quantity(value)


def test_case_46_only_a_signed_metric_may_be_negative() -> None:
    assert quantity(-0.25, signed=True) == "-250m"
    assert quantity(-2000, signed=True) == "-2k"
    with pytest.raises(ValueError, match="finite"):
        quantity(math.nan, signed=True)


@given(st.floats(min_value=0, allow_infinity=False))
@example(9.3e15)
@example(LARGEST)
def test_x07_case_47_an_hpa_reads_the_value_without_overflow(value: float) -> None:
    milli = milli_value(quantity(value))
    assert 0 <= milli < 2**63
    assert abs(Decimal(milli) - Decimal(min(value, LARGEST)) * 1000) <= Decimal("0.501")


@given(st.integers(0, int(LARGEST)))
def test_x08_whole_numbers_stay_whole(value: int) -> None:
    assert milli_value(quantity(value)) == value * 1000
    assert not quantity(value).endswith("m")


@given(st.floats(-9e15, 9e15))
def test_a_quantity_parses_to_its_value(value: float) -> None:
    text = quantity(value, signed=True)
    assert quantity(float(parse(text)), signed=True) == text
    assert abs(parse(text) - Decimal(repr(value))) <= Decimal("0.0005")


@given(st.floats(-1e16, 1e16), st.floats(-1e16, 1e16))
def test_a_larger_value_has_a_larger_quantity(one: float, other: float) -> None:
    smaller, larger = sorted((one, other))
    assert parse(quantity(smaller, signed=True)) <= parse(quantity(larger, signed=True))


def canonical(milli: int) -> str:
    """Go's rules in other words: take three zeros off as long as there are three, and name how often that was."""
    suffixes = ["m", "", "k", "M", "G", "T", "P"]
    place = 0 if milli else 1
    while milli and milli % 1000 == 0 and place < len(suffixes) - 1:
        milli, place = milli // 1000, place + 1
    return f"{milli}{suffixes[place]}"


@given(st.integers(-(10**9), 10**9), st.integers(0, 5))
def test_a_quantity_is_canonical(number: int, thousands: int) -> None:
    milli = number * 1000**thousands
    if abs(milli) <= 10**12:
        assert quantity(milli / 1000, signed=True) == canonical(milli)
    elif milli % 1000 == 0:
        limited = min(max(milli, -9 * 10**18), 9 * 10**18)
        assert quantity(milli // 1000, signed=True) == canonical(limited)
