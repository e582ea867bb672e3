"""A chapter -> its charts, as what plotly.js draws; colours are names that the page looks up in its style sheet."""

import html
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adapter.backtest.report_content import Chapter, Track
from adapter.core.samples import Array

RAN = "what ran"  # the name of the track that is no policy
MOST_POINTS = 1500  # of a curve; a screen shows no more
SHOWN = 3  # policies that are visible at first; the legend shows the others
COLOURS = 8
_DASHES = ("solid", "dash", "dot", "dashdot")
_CLOCK_S = 1e8  # a later time is one of the calendar, an earlier one counts from the begin
_LINE_CHARACTERS = 72

Figure = dict[str, Any]


def figures(number: int, chapter: Chapter) -> list[Figure]:
    """The charts of a chapter, each with the id of its place in the page."""
    found = []
    if chapter.simulated:
        found.append(_simulated(f"simulated-{number}", chapter))
    if chapter.asked:
        found.append(_asked(f"asked-{number}", chapter))
    return found


def _simulated(place: str, chapter: Chapter) -> Figure:
    """Input, workers and backlog time, one above the other."""
    slots = _slots(chapter.simulated)
    data = [_input(chapter)]
    data += [_workers(track, slots[track.name], "y2") for track in chapter.simulated]
    data += [_waits(track, slots[track.name]) for track in chapter.simulated if len(track.backlog_time_s)]
    axes = {
        "yaxis": _axis("input, records/s", (0.74, 1.0)),
        "yaxis2": _axis("workers", (0.37, 0.68)),
        "yaxis3": _axis("backlog time, s", (0.0, 0.31)),
        "xaxis": _time(chapter, "y3"),
    }
    return {"id": place, "data": data, "layout": axes | _slo(chapter.target_s)}


def _asked(place: str, chapter: Chapter) -> Figure:
    """Input, and the workers that ran and were asked for."""
    slots = _slots(chapter.asked)
    data = [_input(chapter)] + [_workers(track, slots[track.name], "y2") for track in chapter.asked]
    axes = {
        "yaxis": _axis("input, records/s", (0.62, 1.0)),
        "yaxis2": _axis("workers", (0.0, 0.53)),
        "xaxis": _time(chapter, "y2"),
    }
    return {"id": place, "data": data, "layout": axes}


def _slots(tracks: Sequence[Track]) -> Mapping[str, int]:
    """Name -> which of the colours; -1 is what ran."""
    policies = [track.name for track in tracks if track.name != RAN]
    return {RAN: -1} | {name: place for place, name in enumerate(policies)}


def _input(chapter: Chapter) -> Figure:
    at_s, rate = thinned(chapter.at_s, chapter.rate_records_per_s, np.nanmean)
    return _curve("input", at_s, rate, "y") | {
        "meta": "input",
        "showlegend": False,
        "fill": "tozeroy",
        "hovertemplate": "<b>input</b> %{y:,.0f} records/s<extra></extra>",
    }


def _workers(track: Track, slot: int, axis: str) -> Figure:
    at_s, workers, why = _steps(track)
    line = {"shape": "hv", "width": 1.8, "dash": _dash(slot)}
    curve = _curve(track.name, at_s, workers, axis) | _styled(slot) | {"line": line, "legendgroup": track.name}
    told = [f"<br>{_wrapped(sentence)}" if sentence else "" for sentence in why]
    return curve | {
        "text": told,
        "hovertemplate": _hover(track, "%{y:~g} workers%{text}"),
    }


def _waits(track: Track, slot: int) -> Figure:
    at_s, waits = thinned(track.at_s, track.backlog_time_s, np.nanmax)
    line = {"width": 1.2}  # no dashes: a curve of spikes would be unreadable
    own = {"line": line, "legendgroup": track.name, "showlegend": False, "fill": "none"}
    told = {"hovertemplate": _hover(track, "%{y:,.0f} s behind")}
    return _curve(track.name, at_s, waits, "y3") | _styled(slot) | own | told


def _hover(track: Track, told: str) -> str:
    """What a pointer is told; without plotly's second box, whose ground no setting changes."""
    return f"<b>{html.escape(track.name)}</b> {told}<extra></extra>"


def _styled(slot: int) -> Figure:
    if slot < 0:
        return {"meta": "ran", "fill": "tozeroy", "visible": True}
    return {"meta": f"policy-{slot % COLOURS}", "fill": "none", "visible": True if slot < SHOWN else "legendonly"}


def _dash(slot: int) -> str:
    return "solid" if slot < 0 else _DASHES[slot % len(_DASHES)]


def _curve(name: str, at_s: Array, values: Array, axis: str) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": html.escape(name),
        "x": _moments(at_s),
        "y": [None if np.isnan(value) else float(f"{value:.6g}") for value in values.tolist()],
        "yaxis": axis,
        "line": {"width": 1.4},
    }


def _steps(track: Track) -> tuple[Array, Array, list[str]]:
    """Only the moments at which the number becomes another, and the last; with the sentences that say why."""
    known = np.nan_to_num(track.workers, nan=-1.0)
    kept = np.flatnonzero(np.diff(known, prepend=-2.0))
    kept = np.unique(np.append(kept, len(known) - 1)) if len(known) else kept
    said = {mark.at_s: mark.why for mark in track.marks}
    return track.at_s[kept], track.workers[kept], [said.get(at_s, "") for at_s in track.at_s[kept].tolist()]


def thinned(at_s: Array, values: Array, how: Any) -> tuple[Array, Array]:
    """At most MOST_POINTS values, each of equally many but the last. how: what stands for many, nanmean or nanmax."""
    size = -(-len(values) // MOST_POINTS)
    if size <= 1:
        return at_s, values
    parts = np.pad(values, (0, -len(values) % size), constant_values=np.nan).reshape(-1, size)
    some = np.isfinite(parts).any(axis=1)
    kept = np.full(len(parts), np.nan)
    kept[some] = how(parts[some], axis=1)
    return at_s[::size], kept


def _moments(at_s: Array) -> list[float]:
    """Milliseconds of the calendar, or hours since the begin."""
    scale = 1000.0 if _of_calendar(at_s) else 1 / 3600
    return [round(value, 4) for value in (at_s * scale).tolist()]


def _of_calendar(at_s: Array) -> bool:
    return bool(len(at_s) and at_s[0] > _CLOCK_S)


def _time(chapter: Chapter, anchor: str) -> Figure:
    calendar = _of_calendar(chapter.at_s)
    axis: Figure = {"anchor": anchor, "title": {"text": "time, UTC" if calendar else "time, hours"}}
    return axis | ({"type": "date"} if calendar else {"type": "linear"})


def _axis(title: str, domain: tuple[float, float]) -> Figure:
    return {"title": {"text": title}, "domain": list(domain), "rangemode": "tozero"}


def _slo(target_s: float) -> Figure:
    """The line that the backlog time should stay under."""
    where = {"xref": "paper", "yref": "y3"}
    line = where | {"type": "line", "x0": 0, "x1": 1, "y0": target_s, "y1": target_s, "line": {"width": 1.2}}
    text = where | {
        "x": 1,
        "y": target_s,
        "text": f"target<br>{target_s:g} s",
        "showarrow": False,
        "xanchor": "left",
        "align": "left",
    }
    return {"shapes": [line], "annotations": [text]}


def _wrapped(sentence: str) -> str:
    return "<br>".join(html.escape(line) for line in textwrap.wrap(sentence, _LINE_CHARACTERS))
