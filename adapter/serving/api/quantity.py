"""A number <-> Kubernetes' Quantity, as an HPA can read it."""

import math
import re
from decimal import ROUND_HALF_UP, ROUND_UP, Context, Decimal

# An HPA reads milli-values as int64: above 9.2e15 they wrap, 1e16 reads as 0 (measured on apimachinery 0.35.5).
LARGEST = 9e15

_SUFFIXES = (("P", 10**15), ("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3))
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}
# An exponent has three digits at most: the Go library computes for minutes on longer ones.
_QUANTITY = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:[eE]([+-]?0*\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)
_NANO = Decimal("1e-9")
_LARGEST_BINARY = Decimal(2**63 - 1)
_EXACT = Context(prec=100_000, rounding=ROUND_UP)


def quantity(value: float, *, signed: bool = False) -> str:
    """The value as a Quantity: three decimals, rounded half up; at most 9e15; the largest suffix that divides.

    signed: values below 0 are allowed. An HPA takes a negative sum for an overflow and scales to its maximum, so no
    metric that an HPA may read is signed.
    Raises ValueError for NaN, infinities, and negative values that are not `signed`.
    """
    if not (isinstance(value, int) or math.isfinite(value)) or (value < 0 and not signed):
        raise ValueError(f"no quantity for an HPA: expected a finite number >= 0, got {value}")
    bounded = min(max(value, -LARGEST), LARGEST)
    if bounded == (whole := int(bounded)):
        return _with_suffix(whole)
    milli = int((Decimal(repr(float(bounded))) * 1000).to_integral_value(ROUND_HALF_UP))
    return f"{milli}m" if milli % 1000 else _with_suffix(milli // 1000)


def _with_suffix(whole: int) -> str:
    if whole % 1000 == 0 and whole:
        for suffix, factor in _SUFFIXES:
            if whole % factor == 0:
                return f"{whole // factor}{suffix}"
    return str(whole)


def parse(text: str) -> Decimal:
    """The number a Quantity stands for: to the billionth, fractions of it away from zero; with a binary suffix at most
    2^63 - 1. Raises ValueError when it is none (as Kubernetes: NaN, `1K`, blanks, empty; and a suffix without a digit).
    """
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(f"expected a Kubernetes quantity such as 20, 1500m or 1k, got {text!r}")
    number, exponent, suffix = found.groups()
    if suffix in _BINARY:
        value = _EXACT.multiply(Decimal(number), Decimal(_BINARY[suffix]))
        value = min(max(value, -_LARGEST_BINARY), _LARGEST_BINARY)
    else:
        value = _EXACT.scaleb(Decimal(number), int(exponent) if exponent else _DECIMAL[suffix or ""])
    return value if value == value.to_integral_value() else _EXACT.quantize(value, _NANO)
