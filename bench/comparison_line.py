"""One line of a table that compares servers measured in the same run: medians, spreads and their ratio."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

_WHAT, _UNIT, _VALUES, _RATIO = 42, 12, 24, 9


@dataclass(frozen=True, slots=True)
class Line:
    """A measured quantity. values: per server, one value per repetition; empty if it was not measured. aim: target."""

    what: str
    unit: str
    values: tuple[tuple[float, ...], ...]
    aim: str = ""

    def __str__(self) -> str:
        cells = "".join(f"{_cell(each):>{_VALUES}}" for each in self.values)
        return f"{self.what:<{_WHAT}}{self.unit:<{_UNIT}}{cells}{self._ratio():>{_RATIO}}   {self.aim}".rstrip()

    def _ratio(self) -> str:
        """Median of the first server / median of the second."""
        if len(self.values) < 2 or not all(self.values[:2]) or not median(self.values[1]):
            return ""
        return f"{median(self.values[0]) / median(self.values[1]):.2f}"


def heading(names: Sequence[str]) -> str:
    """The heading of a table. names: of the servers."""
    ratio = "ratio" if len(names) > 1 else ""
    return f"{'':<{_WHAT + _UNIT}}{''.join(f'{name:>{_VALUES}}' for name in names)}{ratio:>{_RATIO}}   aim"


def _cell(values: tuple[float, ...]) -> str:
    if not values:
        return "-"
    spread = f" ({_short(min(values))}-{_short(max(values))})" if len(values) > 1 else ""
    return f"{_short(median(values))}{spread}"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
