"""A number as a Kubernetes Quantity that an HPA can read."""

import math
from decimal import ROUND_HALF_UP, Decimal

# An HPA reads milli-values as int64: above 9.2e15 they wrap, 1e16 reads as 0 (measured on apimachinery 0.35.5).
LARGEST = 9e15

_SUFFIXES = (("P", 10**15), ("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3))


def quantity(value: float, *, signed: bool = False) -> str:
    """The value as a Quantity: three decimals, rounded half up; at most 9e15; the largest suffix that divides.

    signed: allow values below 0. An HPA takes a negative sum for an overflow and scales to its maximum, so metrics for
    an HPA are never signed. Raises ValueError for NaN, infinities, and negative values unless `signed`.
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
