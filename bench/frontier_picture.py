"""Draw worker-hours against rescales: the curve of `drain`, and the other policies as points around it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log10

from bench.svg import Point, dot, head, path, text

_WIDTH, _LEFT, _TOP, _COLUMNS = 900, 54, 96, 2
_PLOT_WIDTH, _PLOT_HEIGHT, _ACROSS, _DOWN = 370, 250, 430, 330
_COSTS = (0.8, 2.0)  # worker-hours over the oracle's at the bottom and at the top
_RESCALES = (5.0, 1000.0)  # a day, at the left and at the right
_LABEL_HEIGHT, _LETTER_WIDTH = 11, 5.2
_TITLE = "Worker-hours against rescales"
_LEGEND = (
    "Blue: drain, from a rescale worth a second (right) to a day (left). Grey: other policies. Hollow: late on a trace "
    "or more. Lower left is better."
)
_BEYOND = "Outside the plot: policies with more than twice the oracle's worker-hours, or fewer than 5 rescales a day."
_STYLE = """.dot { fill: #0a66c2; }
.other { fill: #6e7681; }
.hollow { fill: none; stroke: #6e7681; stroke-width: 1.3; }
.open { fill: none; stroke: #0a66c2; stroke-width: 1.3; }
.small { font-size: 9.5px; }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """A policy on the traces of one profile: means, and the number of traces on which it is late."""

    policy: str
    cost_ratio: float  # worker-hours over the oracle's
    rescales_per_day: float
    over_60s_pct: float
    late_traces: int


def draw(profiles: Mapping[str, Sequence[FrontierPoint]], curve: Sequence[str]) -> str:
    """The picture as SVG text, a plot for each title. curve: the policies that are joined by a line."""
    rows = -(-len(profiles) // _COLUMNS)
    parts = head(_WIDTH, _TOP + _DOWN * rows, f"{_TITLE}: the curve of drain and other policies", _STYLE)
    parts += [text(18, 32, _TITLE, "title"), text(18, 50, _LEGEND), text(18, 65, _BEYOND)]
    for number, (title, points) in enumerate(profiles.items()):
        row, column = divmod(number, _COLUMNS)
        corner = (_LEFT + _ACROSS * column, _TOP + _DOWN * row + _PLOT_HEIGHT)
        shown = [point for point in points if _inside(point)]
        parts += [*_frame(corner, title), *_curve(corner, shown, curve), *_others(corner, shown, curve)]
    return "\n".join([*parts, "</svg>", ""])


def _at(corner: Point, rescales_per_day: float, cost_ratio: float) -> Point:
    low, high = map(log10, _RESCALES)
    x = (log10(rescales_per_day) - low) / (high - low)
    y = (cost_ratio - _COSTS[0]) / (_COSTS[1] - _COSTS[0])
    return round(corner[0] + x * _PLOT_WIDTH, 1), round(corner[1] - y * _PLOT_HEIGHT, 1)


def _inside(point: FrontierPoint) -> bool:
    return point.cost_ratio <= _COSTS[1] and _RESCALES[0] <= point.rescales_per_day <= _RESCALES[1]


def _frame(corner: Point, title: str) -> list[str]:
    """Grid lines with their values, and the title."""
    left, bottom = corner
    parts = [text(left, bottom - _PLOT_HEIGHT - 10, title, "name")]
    for cost in (0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0):
        _, y = _at(corner, _RESCALES[0], cost)
        parts.append(path([(left, y), (left + _PLOT_WIDTH, y)], "grid"))
        parts.append(text(left - 6, y + 4, f"{cost:.1f}", "end"))
    for rescales in (5, 10, 20, 50, 100, 200, 500, 1000):
        x, _ = _at(corner, rescales, _COSTS[0])
        parts.append(path([(x, bottom), (x, bottom - _PLOT_HEIGHT)], "grid"))
        parts.append(text(x, bottom + 15, str(rescales), "middle"))
    where = text(left, bottom + 31, "across: rescales a day; up: worker-hours over the oracle's", "small")
    return [*parts, where]


def _curve(corner: Point, points: Sequence[FrontierPoint], curve: Sequence[str]) -> list[str]:
    shown = sorted((one for one in points if one.policy in curve), key=lambda one: one.rescales_per_day)
    places = [_at(corner, one.rescales_per_day, one.cost_ratio) for one in shown]
    kinds = ["open" if one.late_traces else "dot" for one in shown]
    dots = [dot(*place, kind, one.policy) for place, kind, one in zip(places, kinds, shown, strict=True)]
    return [*([path(places, "above")] if len(places) > 1 else []), *dots]


def _others(corner: Point, points: Sequence[FrontierPoint], curve: Sequence[str]) -> list[str]:
    """Points with their names, each name where it covers no other."""
    taken: list[tuple[Point, float]] = []
    parts = []
    for one in sorted((one for one in points if one.policy not in curve), key=lambda one: one.cost_ratio):
        x, y = place = _at(corner, one.rescales_per_day, one.cost_ratio)
        kind = "hollow" if one.late_traces else "other"
        name = _name(one.policy)
        width = len(name) * _LETTER_WIDTH
        left = x + 6 if x + 6 + width < corner[0] + _PLOT_WIDTH + 40 else x - 6 - width
        while any(_overlap((left, y), width, *other) for other in taken):
            y -= _LABEL_HEIGHT / 2
        taken.append(((left, y), width))
        parts += [dot(*place, kind, one.policy), text(left, y + 3, name, "small")]
    return parts


def _name(policy: str) -> str:
    """A short name: the values of parameters without their names."""
    name, _, settings = policy.partition(":")
    return " ".join([name, *(word.rpartition("=")[2] for word in settings.split("+") if word)])


def _overlap(here: Point, width: float, there: Point, other_width: float) -> bool:
    apart = here[0] >= there[0] + other_width or there[0] >= here[0] + width
    return not apart and abs(here[1] - there[1]) < _LABEL_HEIGHT
