"""The charts of a section as plotly.js figures. Colours are names that the page resolves in its style sheet."""

import html
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adapter.backtest.report_content import Section, Track
from adapter.core.samples import Array

ACTUAL = "actual"  # the name of the recorded run
MAX_POINTS = 1500  # of a curve; a screen cannot show more
SHOWN = 3  # policies that are visible at first; the legend enables the others
COLOURS = 8
_DASHES = ("solid", "dash", "dot", "dashdot")
_UNIX_TIME_S = 1e8  # later times are Unix seconds, earlier ones count from the start of a trace
_LINE_CHARACTERS = 72

Figure = dict[str, Any]


def figures(number: int, section: Section) -> list[Figure]:
    """The charts of a section, each with the id of its element in the page."""
    found = []
    if section.simulated:
        found.append(_simulated(f"simulated-{number}", section))
    if section.recommended:
        found.append(_recommended(f"recommended-{number}", section))
    return found


def _simulated(element_id: str, section: Section) -> Figure:
    """Input, workers and backlog time, one above the other."""
    colours = _colour_indices(section.simulated)
    data = [_input(section)]
    data += [_workers(track, colours[track.name], "y2") for track in section.simulated]
    data += [_backlog_times(track, colours[track.name]) for track in section.simulated if len(track.backlog_time_s)]
    axes = {
        "yaxis": _axis("input, records/s", (0.74, 1.0)),
        "yaxis2": _axis("workers", (0.37, 0.68)),
        "yaxis3": _axis("backlog time, s", (0.0, 0.31)),
        "xaxis": _time(section, "y3"),
    }
    return {"id": element_id, "data": data, "layout": axes | _target_line(section.target_s)}


def _recommended(element_id: str, section: Section) -> Figure:
    """Input, and actual and recommended workers."""
    colours = _colour_indices(section.recommended)
    data = [_input(section)] + [_workers(track, colours[track.name], "y2") for track in section.recommended]
    axes = {
        "yaxis": _axis("input, records/s", (0.62, 1.0)),
        "yaxis2": _axis("workers", (0.0, 0.53)),
        "xaxis": _time(section, "y2"),
    }
    return {"id": element_id, "data": data, "layout": axes}


def _colour_indices(tracks: Sequence[Track]) -> Mapping[str, int]:
    """Name -> index of its colour; -1 for the real run."""
    policies = [track.name for track in tracks if track.name != ACTUAL]
    return {ACTUAL: -1} | {name: index for index, name in enumerate(policies)}


def _input(section: Section) -> Figure:
    at_s, rate = downsample(section.at_s, section.rate_records_per_s, np.nanmean)
    return _curve("input", at_s, rate, "y") | {
        "meta": "input",
        "showlegend": False,
        "fill": "tozeroy",
        "hovertemplate": "<b>input</b> %{y:,.0f} records/s<extra></extra>",
    }


def _workers(track: Track, colour: int, axis: str) -> Figure:
    at_s, workers, why = _steps(track)
    line = {"shape": "hv", "width": 1.8, "dash": _dash(colour)}
    curve = _curve(track.name, at_s, workers, axis) | _style(colour) | {"line": line, "legendgroup": track.name}
    texts = [f"<br>{_wrap(sentence)}" if sentence else "" for sentence in why]
    return curve | {
        "text": texts,
        "hovertemplate": _hover(track, "%{y:~g} workers%{text}"),
    }


def _backlog_times(track: Track, colour: int) -> Figure:
    at_s, waits = downsample(track.at_s, track.backlog_time_s, np.nanmax)
    line = {"width": 1.2}  # no dashes: a curve of spikes would be unreadable
    own = {"line": line, "legendgroup": track.name, "showlegend": False, "fill": "none"}
    hover = {"hovertemplate": _hover(track, "%{y:,.0f} s behind")}
    return _curve(track.name, at_s, waits, "y3") | _style(colour) | own | hover


def _hover(track: Track, text: str) -> str:
    """The text of a tooltip, without plotly's second box."""
    return f"<b>{html.escape(track.name)}</b> {text}<extra></extra>"


def _style(colour: int) -> Figure:
    """The style of a curve. Only the first policies are visible at first."""
    if colour < 0:
        return {"meta": "ran", "fill": "tozeroy", "visible": True}
    return {"meta": f"policy-{colour % COLOURS}", "fill": "none", "visible": True if colour < SHOWN else "legendonly"}


def _dash(colour: int) -> str:
    return "solid" if colour < 0 else _DASHES[colour % len(_DASHES)]


def _curve(name: str, at_s: Array, values: Array, axis: str) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": html.escape(name),
        "x": _times(at_s),
        "y": [None if np.isnan(value) else float(f"{value:.6g}") for value in values.tolist()],
        "yaxis": axis,
        "line": {"width": 1.4},
    }


def _steps(track: Track) -> tuple[Array, Array, list[str]]:
    """The ticks at which the number changes, and the last one; with the sentences that explain the changes."""
    known = np.nan_to_num(track.workers, nan=-1.0)
    ticks = np.flatnonzero(np.diff(known, prepend=-2.0))
    ticks = np.unique(np.append(ticks, len(known) - 1)) if len(known) else ticks
    why = {change.at_s: change.why for change in track.changes}
    return track.at_s[ticks], track.workers[ticks], [why.get(at_s, "") for at_s in track.at_s[ticks].tolist()]


def downsample(at_s: Array, values: Array, reduce: Any) -> tuple[Array, Array]:
    """Reduce a curve to at most MAX_POINTS values. reduce: nanmean or nanmax of the values of a point."""
    size = -(-len(values) // MAX_POINTS)
    if size <= 1:
        return at_s, values
    parts = np.pad(values, (0, -len(values) % size), constant_values=np.nan).reshape(-1, size)
    some = np.isfinite(parts).any(axis=1)
    points = np.full(len(parts), np.nan)
    points[some] = reduce(parts[some], axis=1)
    return at_s[::size], points


def _times(at_s: Array) -> list[float]:
    """Unix milliseconds, or hours since the start."""
    scale = 1000.0 if _is_unix_time(at_s) else 1 / 3600
    return [round(value, 4) for value in (at_s * scale).tolist()]


def _is_unix_time(at_s: Array) -> bool:
    return bool(len(at_s) and at_s[0] > _UNIX_TIME_S)


def _time(section: Section, anchor: str) -> Figure:
    unix = _is_unix_time(section.at_s)
    axis: Figure = {"anchor": anchor, "title": {"text": "time, UTC" if unix else "time, hours"}}
    return axis | ({"type": "date"} if unix else {"type": "linear"})


def _axis(title: str, domain: tuple[float, float]) -> Figure:
    return {"title": {"text": title}, "domain": list(domain), "rangemode": "tozero"}


def _target_line(target_s: float) -> Figure:
    """The line of the backlog-time target."""
    axes = {"xref": "paper", "yref": "y3"}
    line = axes | {"type": "line", "x0": 0, "x1": 1, "y0": target_s, "y1": target_s, "line": {"width": 1.2}}
    text = axes | {
        "x": 1,
        "y": target_s,
        "text": f"target<br>{target_s:g} s",
        "showarrow": False,
        "xanchor": "left",
        "align": "left",
    }
    return {"shapes": [line], "annotations": [text]}


def _wrap(sentence: str) -> str:
    return "<br>".join(html.escape(line) for line in textwrap.wrap(sentence, _LINE_CHARACTERS))
