"""Format measured values as one line: median, tail, spread, count and aim."""

from dataclasses import dataclass

import numpy as np

ENOUGH_FOR_P99 = 100  # with fewer values, the 99th percentile is the maximum


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured quantity."""

    what: str
    values: tuple[float, ...]  # one for each repetition
    unit: str
    aim: str = ""  # the target

    def __str__(self) -> str:
        return f"{self.what:<52} {self._spread()}{f'   aim {self.aim}' if self.aim else ''}"

    def _spread(self) -> str:
        if not self.values:
            return "no value"
        if len(self.values) == 1:
            return f"{self.values[0]:.4g} {self.unit}"
        tail = f"p99 {_percentile(self.values, 99):.4g}   " if len(self.values) >= ENOUGH_FOR_P99 else ""
        least, most = min(self.values), max(self.values)
        middle = _percentile(self.values, 50)
        return f"p50 {middle:.4g}   {tail}min-max {least:.4g}-{most:.4g} {self.unit}   n {len(self.values)}"


def _percentile(values: tuple[float, ...], share: float) -> float:
    """The percentile without interpolation: always a measured value."""
    return float(np.percentile(values, share, method="inverted_cdf"))
