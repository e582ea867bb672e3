"""Requirements X-06 (no NaN, no infinity), X-07 and X-08 (what an HPA computes from the text)."""

import math
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapter.serving.quantity import LARGEST, parse, quantity


def milli_value(text: str) -> int:
    """What an HPA reads: thousandths, fractions of them away from zero, in 64 bits."""
    milli = parse(text) * 1000
    return int(milli.to_integral_value("ROUND_UP"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(0, "0", id="nothing"),
        pytest.param(0.001, "1m", id="the smallest"),
        pytest.param(0.999, "999m", id="below one"),
        pytest.param(1.0, "1", id="a whole number stays whole"),
        pytest.param(1.5, "1500m", id="a fraction is in milli"),
        pytest.param(20.0, "20", id="workers"),
        pytest.param(20.0004, "20", id="noise is rounded off, never 20001m"),
        pytest.param(20.000000001, "20", id="smaller noise too"),
        pytest.param(0.0005, "1m", id="half is rounded up"),
        pytest.param(1.0005, "1001m", id="half as it is written, not as it is stored"),
        pytest.param(0.00049, "0", id="less than half is rounded down"),
        pytest.param(1000, "1k", id="the largest suffix that divides"),
        pytest.param(1_234_567, "1234567", id="no suffix divides"),
        pytest.param(1234.567, "1234567m", id="milli of thousands"),
        pytest.param(1e6, "1M", id="a million"),
        pytest.param(1e9, "1G", id="a billion"),
        pytest.param(1e16, "9P", id="more than an HPA can read is cut"),
        pytest.param(-0.0, "0", id="minus nothing is nothing"),
    ],
)
def test_a_value_is_written_as_kubernetes_writes_it(value: float, text: str) -> None:
    assert quantity(value) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0, -0.001])
def test_x06_what_is_no_number_for_an_hpa_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="expected a finite number >= 0"):
        quantity(value)


def test_only_a_signed_metric_may_be_negative() -> None:
    assert quantity(-0.25, signed=True) == "-250m"
    assert quantity(-2000, signed=True) == "-2k"
    with pytest.raises(ValueError, match="finite"):
        quantity(math.nan, signed=True)


@given(st.floats(min_value=0, allow_infinity=False))
@example(9.3e15)
@example(LARGEST)
def test_x07_an_hpa_reads_what_was_meant_and_never_wraps(value: float) -> None:
    milli = milli_value(quantity(value))
    assert 0 <= milli < 2**63
    assert abs(Decimal(milli) - Decimal(min(value, LARGEST)) * 1000) <= Decimal("0.501")


@given(st.integers(0, int(LARGEST)))
def test_x08_whole_numbers_stay_whole(value: int) -> None:
    assert milli_value(quantity(value)) == Decimal(repr(float(value))) * 1000
    assert not quantity(value).endswith("m")


@given(st.floats(-9e15, 9e15))
def test_what_was_written_is_read_back(value: float) -> None:
    text = quantity(value, signed=True)
    assert quantity(float(parse(text)), signed=True) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e3", 1000), ("1Ki", 1024), ("2Mi", 2 * 1024**2), ("5u", Decimal("0.000005")), ("-1500m", Decimal("-1.5"))],
)
def test_every_form_kubernetes_takes_is_read(text: str, value: Decimal) -> None:
    assert parse(text) == value


@pytest.mark.parametrize("text", ["", "NaN", "Inf", "1K", " 1", "1 ", "1kk", "k", "0x10", "1_000", "٣"])
def test_what_kubernetes_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a Kubernetes quantity"):
        parse(text)
