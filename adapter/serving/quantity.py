"""A number <-> Kubernetes' Quantity, as an HPA can read it."""

import math
import re
from decimal import ROUND_HALF_UP, Decimal

# An HPA reads milli-values as int64: above 9.2e15 they wrap, 1e16 reads as 0 (measured on apimachinery 0.35.5).
LARGEST = 9e15

_SUFFIXES = (("P", 10**15), ("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3))
_FACTORS = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1)}
_FACTORS |= {suffix: Decimal(factor) for suffix, factor in (*_SUFFIXES, ("E", 10**18))}
_FACTORS |= {f"{letter}i": Decimal(1024 ** (power + 1)) for power, letter in enumerate("KMGTPE")}
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)


def quantity(value: float, *, signed: bool = False) -> str:
    """The value as a Quantity: three decimals, rounded half up; at most 9e15; the largest suffix that divides.

    signed: values below 0 are allowed. An HPA takes a negative sum for an overflow and scales to its maximum, so no
    metric that an HPA may read is signed.
    Raises ValueError for NaN, infinities, and negative values that are not `signed`.
    """
    if not math.isfinite(value) or (value < 0 and not signed):
        raise ValueError(f"no quantity for an HPA: expected a finite number >= 0, got {value}")
    bounded = min(max(value, -LARGEST), LARGEST)
    milli = int((Decimal(repr(bounded)) * 1000).to_integral_value(ROUND_HALF_UP))
    whole, rest = divmod(abs(milli), 1000)
    sign = "-" if milli < 0 else ""
    return f"{sign}{abs(milli)}m" if rest else f"{sign}{_with_suffix(whole)}"


def _with_suffix(whole: int) -> str:
    for suffix, factor in _SUFFIXES:
        if whole and whole % factor == 0:
            return f"{whole // factor}{suffix}"
    return str(whole)


def parse(text: str) -> Decimal:
    """The number a Quantity stands for. Raises ValueError when it is none (Kubernetes: NaN, `1K`, blanks, empty)."""
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(f"expected a Kubernetes quantity such as 20, 1500m or 1k, got {text!r}")
    number, exponent, suffix = found.groups()
    if exponent is not None:
        return Decimal(number).scaleb(int(exponent))
    return Decimal(number) * _FACTORS[suffix or ""]
