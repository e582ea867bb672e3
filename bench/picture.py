"""Draw docs/scenario.svg, the S0-28 scenario under every policy: run `python -m bench.picture`."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

import numpy as np

from adapter.core.formatting import counted
from adapter.core.rules import POLICIES
from adapter.core.samples import Array
from bench.scenario import END_S, NAMES, STEP_S, TICK_S, ScenarioTick, play
from bench.svg import Point, head, path, text

FILE = Path(__file__).parents[1] / "docs" / "scenario.svg"

_WIDTH, _LEFT, _TOP = 900, 182, 92
_ROW, _PLOT_WIDTH, _PLOT_HEIGHT, _APART = 82, 200, 56, 248
_FOOT = 90
_MINUTES = tuple(range(0, END_S // 60 + 1, 10))
_UNITS = (1500, 60, 15)  # the new input, the target of the backlog time, and the workers that carry the new input
_WORTH_TELLING_S = 1.0
_CAPTION_LETTERS = 138
_CAPTION = (
    "Dotted: 1 000 records/s become 1 500. A worker carries 100/s and starts in 30 s; "
    "a rescale stops the job for 30 s. Policies have their defaults and decide every 15 s; "
    "a HorizontalPodAutoscaler follows. Ten workers ran at 1 000/s "
    "for an hour before. They were full: varga and netflix, which size for 70 % and 60 %, had added some by then. "
    "segments counts Pravega's segments, ten that split in two as the input steps; the others share 60 partitions. "
    "Backlog time: the longest is named, and what is left at the end if anything is."
)


@dataclass(frozen=True, slots=True)
class _Panel:
    """The position of one plot: its left edge, its bottom, and the value at its top."""

    left: int
    bottom: int
    top_value: float

    def at(self, at_s: float, value: float) -> Point:
        x = self.left + at_s / END_S * _PLOT_WIDTH
        return round(x, 1), round(self.bottom - value / self.top_value * _PLOT_HEIGHT, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _PolicyLine:
    """The series of one policy, one value per tick; shape (ticks,)."""

    at_s: Array
    input_rate: Array
    throughput: Array
    backlog_time_s: Array
    spec_workers: Array
    ready_workers: Array


def draw(scenes: Sequence[ScenarioTick]) -> str:
    """The picture as SVG text, with a row per policy: rates, backlog time and workers over time."""
    lines = {name: _line(scenes, NAMES.index(name)) for name in POLICIES}
    tops = _tops(lines.values())
    height = _TOP + _ROW * len(lines) + _FOOT
    parts = [*_head(height), *_columns()]
    for number, (name, line) in enumerate(lines.items()):
        bottom = _TOP + _ROW * number + _PLOT_HEIGHT
        panels = [_Panel(_LEFT + _APART * column, bottom, top) for column, top in enumerate(tops)]
        parts += [*_row_label(name, line, bottom), *_rates(panels[0], line)]
        parts += [*_backlog(panels[1], line), *_workers(panels[2], line)]
    foot = _TOP + _ROW * (len(lines) - 1) + _PLOT_HEIGHT
    return "\n".join([*parts, *_minutes(foot), *_caption(foot + 44), "</svg>", ""])


def main() -> None:
    """Write the picture and print its path."""
    FILE.write_text(draw(play()), encoding="utf-8")
    sys.stdout.write(f"{FILE}\n")


def _line(scenes: Sequence[ScenarioTick], place: int) -> _PolicyLine:
    def column(values: Iterable[float]) -> Array:
        return np.round(np.array(list(values)), 3)  # sums of floats differ in their last digits between processors

    return _PolicyLine(
        at_s=column(scene.at_s for scene in scenes),
        input_rate=column(scene.input_rate_records_per_s for scene in scenes),
        throughput=column(scene.throughput_records_per_s[place] for scene in scenes),
        backlog_time_s=column(scene.backlog_time_s[place] for scene in scenes),
        spec_workers=column(scene.spec_workers[place] for scene in scenes),
        ready_workers=column(scene.ready_workers[place] for scene in scenes),
    )


def _tops(lines: Iterable[_PolicyLine]) -> tuple[float, ...]:
    """The value at the top of each column, common to all rows: a multiple of the grid's unit."""
    rows = list(lines)
    highest = (
        max(line.throughput.max() for line in rows),
        max(line.backlog_time_s.max() for line in rows),
        max(line.spec_workers.max() for line in rows),
    )
    return tuple(unit * max(2, int(np.ceil(value / unit))) for unit, value in zip(_UNITS, highest, strict=True))


def _head(height: int) -> list[str]:
    title = "Six policies answer one step of the input"
    described = f"{title}: rates, backlog time and workers over {END_S // 60} minutes"
    return [*head(_WIDTH, height, described), text(18, 32, title, "title")]


def _columns() -> list[str]:
    heads = (
        '<tspan class="back">input</tspan> and <tspan class="fore">throughput</tspan>, records/s',
        '<tspan class="fore">backlog time</tspan>, s',
        'workers, <tspan class="back">desired</tspan> and <tspan class="fore">ready</tspan>',
    )
    return [f'<text x="{_LEFT + _APART * n}" y="{_TOP - 22}">{head}</text>' for n, head in enumerate(heads)]


def _row_label(name: str, line: _PolicyLine, bottom: int) -> list[str]:
    changes = int(np.count_nonzero(np.diff(line.spec_workers)))
    paid = np.maximum(line.spec_workers, line.ready_workers)[:-1].sum() * TICK_S / 3600
    return [
        text(18, bottom - 36, name, "name"),
        text(18, bottom - 18, counted(changes, "rescale")),
        text(18, bottom - 3, f"{paid:.1f} worker-hours"),
    ]


def _rates(panel: _Panel, line: _PolicyLine) -> list[str]:
    arriving = path(_stairs(panel, line.at_s, line.input_rate), "below")
    return [*_frame(panel, _UNITS[0]), arriving, path(_during(panel, line.at_s, line.throughput), "above")]


def _backlog(panel: _Panel, line: _PolicyLine) -> list[str]:
    points = [panel.at(*point) for point in zip(line.at_s, line.backlog_time_s, strict=True)]
    area = [(panel.left, panel.bottom), *points, (panel.left + _PLOT_WIDTH, panel.bottom)]
    peak = int(line.backlog_time_s.argmax())
    labels = [
        text(points[peak][0] + 5, points[peak][1] + 4, f"{line.backlog_time_s[peak]:.0f} s", "strong"),
        text(*_above(points[-1]), f"{line.backlog_time_s[-1]:.0f} s", "strong end"),
    ]
    shown = [label for label, at in zip(labels, (peak, -1), strict=True) if line.backlog_time_s[at] >= _WORTH_TELLING_S]
    return [*_frame(panel, _UNITS[1]), path(area, "area"), path(points, "above"), *shown]


def _above(point: Point) -> Point:
    return point[0], point[1] - 5


def _workers(panel: _Panel, line: _PolicyLine) -> list[str]:
    desired = path(_stairs(panel, line.at_s, line.spec_workers), "below")
    working = path(_during(panel, line.at_s, line.ready_workers), "above")
    x, y = panel.at(END_S, line.spec_workers[-1])
    return [*_frame(panel, _UNITS[2]), desired, working, text(x + 5, y + 4, f"{line.spec_workers[-1]:.0f}", "strong")]


def _frame(panel: _Panel, unit: int) -> list[str]:
    """Grid lines with their values, and a line at the step of the input."""
    parts = []
    for value in range(0, int(panel.top_value) + 1, unit):
        x, y = panel.at(0, value)
        parts.append(f'<path class="grid" d="M{x:g} {y:g}h{_PLOT_WIDTH}"/>')
        parts.append(text(x - 6, y + 4, f"{value:,}".replace(",", "\u2009"), "end"))
    x, _ = panel.at(STEP_S, 0)
    return [*parts, f'<path class="step" d="M{x:g} {panel.bottom}v{-_PLOT_HEIGHT - 6}"/>']


def _minutes(bottom: int) -> list[str]:
    parts = []
    for column in range(len(_UNITS)):
        panel = _Panel(_LEFT + _APART * column, bottom, 1)
        for minute in _MINUTES:
            x, y = panel.at(minute * 60, 0)
            parts.append(text(x, y + 17, f"{minute} min" if minute == _MINUTES[-1] else str(minute), "middle"))
    return parts


def _caption(top: int) -> list[str]:
    return [text(18, top + 15 * number, part) for number, part in enumerate(wrap(_CAPTION, _CAPTION_LETTERS))]


def _stairs(panel: _Panel, at_s: Array, values: Array) -> list[Point]:
    """A curve whose values hold from their tick to the next."""
    begins = [panel.at(*point) for point in zip(at_s, values, strict=True)]
    ends = [panel.at(*point) for point in zip(at_s[1:], values, strict=False)]
    return [point for pair in zip(begins, [*ends, begins[-1]], strict=True) for point in pair]


def _during(panel: _Panel, at_s: Array, values: Array) -> list[Point]:
    """A curve whose values hold since the tick before."""
    return [*_stairs(panel, at_s[:-1], values[1:]), panel.at(at_s[-1], values[-1])]


if __name__ == "__main__":
    main()
