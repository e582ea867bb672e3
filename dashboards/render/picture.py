"""A dashboard as one SVG."""

import time
from collections.abc import Sequence
from typing import Any

from dashboards.queries import dashboard
from dashboards.render.canvas import COLUMN, GAP, ROW, Box, frame, page, place, text
from dashboards.render.charts import draw_lines, draw_points, draw_states
from dashboards.render.data import PanelData
from dashboards.render.values import draw_number, draw_table

_TOP = 54
NOTE = "Drawn by backlog-adapter from Prometheus data, not by Grafana"


def draw(name: str, data: PanelData) -> str:
    """The picture of a committed dashboard."""
    board = dashboard(name)
    marks = _marks(board, data)
    parts: list[str] = []
    for panel in board["panels"]:
        box = place(panel, _TOP)
        if panel["type"] == "row":
            parts.append(text(box.left + 4, box.top + 18, panel["title"], "section"))
        else:
            parts += [*frame(panel, box), *_content(panel, box, data, marks)]
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"]) * ROW + _TOP + GAP
    begin, end = (time.strftime("%Y-%m-%d %H:%M", time.gmtime(at_s)) for at_s in (data.span.start_s, data.span.end_s))
    return page(board["title"], f"{NOTE}. {begin} to {end} UTC", (24 * COLUMN + GAP, height), parts)


def _content(panel: dict[str, Any], box: Box, data: PanelData, marks: Sequence[float]) -> list[str]:
    if panel["type"] == "timeseries":
        return draw_lines(panel, box, data, marks)
    draw_panel = {"stat": draw_number, "table": draw_table, "state-timeline": draw_states, "xychart": draw_points}
    return draw_panel[panel["type"]](panel, box, data)


def _marks(board: dict[str, Any], data: PanelData) -> list[float]:
    """The times of the annotations that are switched on, at the step of each."""
    shown = [each for each in board["annotations"]["list"] if each["enable"]]
    lines = [line for each in shown for line in data.lines(each["target"], int(each["step"].removesuffix("s")))]
    return [at_s for line in lines for at_s, _ in line.points]
