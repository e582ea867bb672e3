"""The data of a panel, from a Prometheus."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import httpx

from dashboards.queries import ALL, substituted

_LABEL = re.compile(r"\{\{(\w+)\}\}")
_MOST_POINTS = 120  # of a line


@dataclass(frozen=True, slots=True)
class Span:
    """The time range of a picture, in Unix seconds."""

    start_s: int
    end_s: int

    @property
    def step_s(self) -> int:
        """Seconds between two points of a line."""
        return max(1, -(-(self.end_s - self.start_s) // _MOST_POINTS))


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a panel. points: (Unix seconds, value), only finite values."""

    legend: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One series at the end of the time range. value: None if it is not finite."""

    labels: Mapping[str, str]
    value: float | None


class PanelData:
    """Answers the queries of panels at one Prometheus and time range.

    selected: variable -> its regular expression, for those that are not All. scrape_s: the scrape interval.
    """

    def __init__(self, url: str, span: Span, selected: Mapping[str, str], scrape_s: int) -> None:
        self.span = span
        self._client = httpx.Client(base_url=url, timeout=30)
        seconds = span.end_s - span.start_s
        times = {"__range": f"{seconds}s", "__range_s": str(seconds), "__rate_interval": f"{4 * scrape_s}s"}
        self._values = {**ALL, **times, "__interval": f"{span.step_s}s", **selected}

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def lines(self, target: Mapping[str, Any], step_s: int | None = None) -> list[Line]:
        """The series of a query over the time range. step_s: the span's by default."""
        times = {"start": self.span.start_s, "end": self.span.end_s, "step": step_s or self.span.step_s}
        found = self._result("query_range", target, times)
        return [Line(legend(target, each["metric"]), _finite(each["values"])) for each in found]

    def rows(self, target: Mapping[str, Any]) -> list[Row]:
        """The series of a query at the end of the time range."""
        found = self._result("query", target, {"time": self.span.end_s})
        return [Row(each["metric"], _number(each["value"][1])) for each in found]

    def _result(self, path: str, target: Mapping[str, Any], times: Mapping[str, int]) -> list[dict[str, Any]]:
        query = {"query": substituted(target["expr"], self._values)}
        answer = self._client.get(f"/api/v1/{path}", params={**query, **times}).json()
        if answer["status"] != "success":
            raise ValueError(f"{query['query']}: {answer['error']}")
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result


def legend(target: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """The name of a series of a query."""
    return _LABEL.sub(lambda found: labels.get(found[1], ""), target.get("legendFormat", "")).strip()


def _number(text: str) -> float | None:
    value = float(text)
    return value if isfinite(value) else None


def _finite(values: Sequence[tuple[float, str]]) -> tuple[tuple[float, float], ...]:
    return tuple((at_s, value) for at_s, text in values if (value := _number(text)) is not None)
