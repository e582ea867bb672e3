"""Panels with axes: lines over time, points over another number, and states over time."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

from dashboards.render.canvas import COLORS, PALETTE, Box, color_of, shorten, text
from dashboards.render.data import Line, PanelData, Span
from dashboards.render.units import formatted

_HEAD, _AXIS, _LEFT, _LEGEND, _MOST_NAMED = 30, 18, 58, 14, 8
_MOST_LINES = 6


@dataclass(frozen=True, slots=True)
class Axes:
    """Maps two numbers to a point of a plot. x and y: the least and the greatest number."""

    plot: Box
    x: tuple[float, float]
    y: tuple[float, float]

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The point in pixels."""
        right = (x - self.x[0]) / ((self.x[1] - self.x[0]) or 1)
        up = (y - self.y[0]) / ((self.y[1] - self.y[0]) or 1)
        return self.plot.left + right * self.plot.width, self.plot.bottom - up * self.plot.height


def draw_lines(panel: dict[str, Any], box: Box, data: PanelData, marks: Sequence[float]) -> list[str]:
    """Lines over time. marks: the times of annotations."""
    defaults = panel["fieldConfig"]["defaults"]
    lines = [line for target in panel["targets"] for line in data.lines(target) if line.points]
    if not lines:
        return [_nothing(box)]
    is_stacked = defaults["custom"].get("drawStyle") == "bars"
    tops = _stacked(lines) if is_stacked else lines
    plot = _plot(box, _LEGEND * -(-min(len(lines), _MOST_NAMED) // 2))
    values = [value for line in tops for _, value in line.points]
    axes = Axes(plot, (data.span.start_s, data.span.end_s), _range(values))
    parts = [*_grid(axes, defaults["unit"]), *_clock(axes, data.span), *(_mark(axes, at_s) for at_s in marks)]
    limits = [step for step in defaults["thresholds"]["steps"] if step["value"] is not None]
    parts += [_limit(axes, step) for step in limits if axes.y[0] < step["value"] <= axes.y[1]]
    draw = _bars if is_stacked else _path
    parts += [draw(axes, tops[place], color_at(place), data.span) for place in reversed(range(len(tops)))]
    return parts + _names(box, lines, defaults["unit"])


def color_at(place: int) -> str:
    """The color of a line by its place."""
    return PALETTE[place % len(PALETTE)]


def draw_points(panel: dict[str, Any], box: Box, data: PanelData) -> list[str]:
    """The second query over the first."""
    first, second = (data.lines(target) for target in panel["targets"])
    if not first or not second:
        return [_nothing(box)]
    along = dict(first[0].points)
    points = sorted({(along[at_s], value) for at_s, value in second[0].points if at_s in along})
    most = max((x for x, _ in points), default=1.0)
    axes = Axes(_plot(box, _LEGEND), (0.0, most * 1.05), _range([0.0, *(y for _, y in points)]))
    places = (axes.at(x, y) for x, y in points)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{PALETTE[0]}" fill-opacity=".5"/>' for x, y in places]
    ticks = [text(axes.at(x, 0)[0], axes.plot.bottom + 14, f"{x:g}", "middle") for x in sorted({x for x, _ in points})]
    named = text(box.left + box.width / 2, box.bottom - 6, panel["targets"][0]["legendFormat"], "middle")
    return [*_grid(axes, panel["fieldConfig"]["defaults"]["unit"]), *dots, *ticks, named]


def draw_states(panel: dict[str, Any], box: Box, data: PanelData) -> list[str]:
    """A row for each series, filled while the series exists."""
    lines = [line for target in panel["targets"] for line in data.lines(target) if line.points]
    if not lines:
        return [_nothing(box)]
    color = _state_colors(panel)
    most = max(int((box.height - _HEAD - _AXIS - 6) / 14), 1)
    shown = sorted(lines, key=lambda line: line.legend)[:most]
    left = box.left + min(max(len(line.legend) for line in shown) * 5.8 + 16, box.width / 2)
    plot = Box(left, box.top + _HEAD, box.right - left - 24, len(shown) * 14)
    axes = Axes(plot, (data.span.start_s, data.span.end_s), (0, len(shown)))
    parts = _clock(axes, data.span)
    for place, line in enumerate(shown):
        top = plot.top + place * 14
        parts.append(text(left - 6, top + 10, shorten(line.legend, left - box.left - 12), "end"))
        for begin_s, end_s in _spells(line, data.span.step_s):
            x, width = axes.at(begin_s, 0)[0], axes.at(end_s, 0)[0] - axes.at(begin_s, 0)[0]
            parts.append(
                f'<rect x="{x:.1f}" y="{top + 1}" width="{max(width, 1):.1f}" height="11" fill="{color(line)}"/>'
            )
    return parts


def _state_colors(panel: dict[str, Any]) -> Callable[[Line], str]:
    overrides = panel["fieldConfig"]["overrides"]
    rules = [
        (each["matcher"]["options"].strip("/"), each["properties"][0]["value"]["fixedColor"]) for each in overrides
    ]

    def color(line: Line) -> str:
        found = next((name for pattern, name in rules if re.search(pattern, line.legend)), "blue")
        return COLORS.get(found, found)

    return color


def _spells(line: Line, step_s: float) -> list[tuple[float, float]]:
    """Begin and end of each time without a gap."""
    spells: list[tuple[float, float]] = []
    for at_s, _ in line.points:
        if spells and at_s - spells[-1][1] < step_s / 2:
            spells[-1] = (spells[-1][0], at_s + step_s)
        else:
            spells.append((at_s, at_s + step_s))
    return spells


def _plot(box: Box, legend: float) -> Box:
    height = box.height - _HEAD - _AXIS - legend - 6
    return Box(box.left + _LEFT, box.top + _HEAD, box.width - _LEFT - 24, height)


def _nothing(box: Box) -> str:
    return text(box.left + box.width / 2, box.top + box.height / 2, "no data in this time range", "middle")


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Multiples of the distance of grid lines: from 0, or below the least value, to above the greatest."""
    least, most = min(0.0, *values), max(0.0, *values)
    if least == most:
        return 0.0, 1.0
    for _ in range(2):  # the range of round numbers is wider, so its distance may be greater
        distance = _distance(most - least)
        least, most = floor(least / distance) * distance, ceil(most / distance) * distance
    return least, most


def _distance(width: float) -> float:
    """The distance of two to six grid lines: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(width))
    return next(part * power for part in (0.2, 0.5, 1.0, 2.0) if width / (part * power) <= _MOST_LINES)


def _grid(axes: Axes, unit: str) -> list[str]:
    parts = []
    distance = _distance(axes.y[1] - axes.y[0])
    for tick in range(round((axes.y[1] - axes.y[0]) / distance) + 1):
        value = axes.y[0] + tick * distance
        y = axes.at(axes.x[0], value)[1]
        parts.append(f'<path class="grid" d="M{axes.plot.left:.1f} {y:.1f}H{axes.plot.right:.1f}"/>')
        parts.append(text(axes.plot.left - 5, y + 4, formatted(value, unit), "end"))
    return parts


def _clock(axes: Axes, span: Span) -> list[str]:
    moments = [span.start_s + (span.end_s - span.start_s) * part / 4 for part in range(5)]
    return [
        text(axes.at(at_s, axes.y[0])[0], axes.plot.bottom + 14, time.strftime("%H:%M", time.gmtime(at_s)), "middle")
        for at_s in moments
    ]


def _mark(axes: Axes, at_s: float) -> str:
    x = axes.at(at_s, 0)[0]
    return f'<path class="mark" d="M{x:.1f} {axes.plot.top:.1f}V{axes.plot.bottom:.1f}"/>'


def _limit(axes: Axes, step: dict[str, Any]) -> str:
    y = axes.at(axes.x[0], step["value"])[1]
    color = color_of(step["value"], [step])
    return f'<path class="limit" d="M{axes.plot.left:.1f} {y:.1f}H{axes.plot.right:.1f}" stroke="{color}"/>'


def _path(axes: Axes, line: Line, color: str, span: Span) -> str:
    words, last_s = [], -1.0
    for at_s, value in line.points:
        x, y = axes.at(at_s, value)
        words.append(f"{'L' if at_s - last_s < 1.5 * span.step_s else 'M'}{x:.1f} {y:.1f}")
        last_s = at_s
    return f'<path class="line" d="{"".join(words)}" stroke="{color}"/>'


def _bars(axes: Axes, line: Line, color: str, span: Span) -> str:
    """A bar from 0 for each point; those of the lines below are drawn over it."""
    width = axes.at(axes.x[0] + span.step_s, 0)[0] - axes.plot.left
    corners = [(*axes.at(at_s, value), axes.at(at_s, 0)[1]) for at_s, value in line.points]
    path = "".join(f"M{x - width / 2:.1f} {base:.1f}V{y:.1f}h{width:.1f}V{base:.1f}z" for x, y, base in corners)
    return f'<path d="{path}" fill="{color}"/>'


def _names(box: Box, lines: Sequence[Line], unit: str) -> list[str]:
    """The legend in two columns, with the newest value of each line."""
    parts, half = [], (box.width - 16) / 2
    rows = -(-min(len(lines), _MOST_NAMED) // 2)
    for place, line in enumerate(lines[:_MOST_NAMED]):
        x = box.left + 10 + (place % 2) * half
        y = box.bottom - 4 - _LEGEND * (rows - 1 - place // 2)
        more = f" (+{len(lines) - _MOST_NAMED} more)" if place == _MOST_NAMED - 1 and len(lines) > _MOST_NAMED else ""
        name = f"{line.legend or 'value'}: {formatted(line.points[-1][1], unit)}{more}"
        parts.append(f'<rect x="{x:.0f}" y="{y - 6:.0f}" width="10" height="3" fill="{color_at(place)}"/>')
        parts.append(text(x + 14, y, shorten(name, half - 20)))
    return parts


def _stacked(lines: Sequence[Line]) -> list[Line]:
    """Each line on top of the ones before it."""
    total: dict[float, float] = {}
    stacked = []
    for line in lines:
        for at_s, value in line.points:
            total[at_s] = total.get(at_s, 0.0) + value
        stacked.append(Line(line.legend, tuple((at_s, total[at_s]) for at_s, _ in line.points)))
    return stacked
