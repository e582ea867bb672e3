"""Panels of newest values: numbers and tables."""

from typing import Any

from dashboards.render.canvas import Box, color_of, shorten, text
from dashboards.render.data import PanelData, legend
from dashboards.render.units import formatted

_HEAD, _LINE = 42, 18


def draw_number(panel: dict[str, Any], box: Box, data: PanelData) -> list[str]:
    """One value, or the names of the series."""
    (target,) = panel["targets"]
    defaults, rows = panel["fieldConfig"]["defaults"], data.rows(target)
    x, y = box.left + box.width / 2, box.top + box.height / 2 + 16
    if panel["options"]["textMode"] == "name":
        names = " ".join(sorted({legend(target, row.labels) for row in rows})) or "no data"
        return [text(x, y, shorten(names, box.width * 0.6), "name middle")]
    value = rows[0].value if rows else None
    color = color_of(value, defaults["thresholds"]["steps"]) if rows else ""
    return [text(x, y, formatted(value, defaults["unit"]) if rows else "no data", "number middle", color)]


def draw_table(panel: dict[str, Any], box: Box, data: PanelData) -> list[str]:
    """A table, its rows in the order of its sorted column."""
    titles = _titles(panel)
    rows = _merged(panel, data)
    (sort,) = panel["options"]["sortBy"]
    rows.sort(key=lambda row: (isinstance(row.get(sort["displayName"]), float), row.get(sort["displayName"]) or 0.0))
    width = (box.width - 16) / len(titles)
    parts = [text(box.left + 8 + width * place, box.top + 34, title, "title") for place, title in enumerate(titles)]
    for line, row in enumerate(rows[::-1][: int((box.height - _HEAD) / _LINE)]):
        y = box.top + _HEAD + _LINE * line + 11
        for place, title in enumerate(titles):
            content, color = _cell(panel, title, row.get(title))
            parts.append(text(box.left + 8 + width * place, y, shorten(content, width - 8), "cell", color))
    return parts


def _organized(panel: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in panel["transformations"] if each["id"] == "organize")["options"]
    return found


def _titles(panel: dict[str, Any]) -> list[str]:
    organized = _organized(panel)
    order = sorted(organized["indexByName"], key=lambda name: int(organized["indexByName"][name]))
    return [organized["renameByName"][name] for name in order]


def _merged(panel: dict[str, Any], data: PanelData) -> list[dict[str, str | float | None]]:
    """Title -> content of each row. Series of one workload are one row, as Grafana's transformation `merge` does it."""
    names = _organized(panel)["renameByName"]
    several = len(panel["targets"]) > 1
    rows: dict[tuple[str, ...], dict[str, str | float | None]] = {}
    for target in panel["targets"]:
        value = f"Value #{target['refId']}" if several else "Value"
        for found in data.rows(target):
            identity = [found.labels[label] for label in ("namespace", "workload") if label in found.labels]
            row = rows.setdefault(tuple(identity or found.labels.values()), {})
            row.update({names[label]: content for label, content in found.labels.items() if label in names})
            if value in names:
                row[names[value]] = found.value
    return list(rows.values())


def _cell(panel: dict[str, Any], title: str, content: str | float | None) -> tuple[str, str]:
    """The text of a cell and its color."""
    if content is None or isinstance(content, str):
        return content or "", ""
    overrides = (each for each in panel["fieldConfig"]["overrides"] if each["matcher"]["options"] == title)
    properties = {each["id"]: each["value"] for override in overrides for each in override["properties"]}
    steps = properties.get("thresholds", {}).get("steps", ())
    return formatted(content, properties.get("unit", "none")), color_of(content, steps) if steps else ""
