"""A Prometheus server with a history: samples of past times, pushed through its OTLP receiver."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import httpx

from parts.prometheus import Prometheus

_POINTS = 20_000  # in one request
_SETTINGS = {"storage": {"tsdb": {"out_of_order_time_window": "60d"}}}
Sample = tuple[float, str, Mapping[str, str], float]  # Unix seconds, metric, labels, value


class HistoryPrometheus(Prometheus):
    """Scrapes nothing. Its samples need no order."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, _SETTINGS, "--web.enable-otlp-receiver", host="127.0.0.1")

    def push(self, samples: Iterable[Sample]) -> None:
        """Stores the samples of each metric in the order in which they come."""
        points: dict[str, list[dict[str, object]]] = {}
        count = 0
        for at_s, metric, labels, value in samples:
            attributes = [{"key": key, "value": {"stringValue": text}} for key, text in labels.items()]
            point = {"timeUnixNano": str(int(at_s * 1e9)), "asDouble": value, "attributes": attributes}
            points.setdefault(metric, []).append(point)
            count += 1
            if count == _POINTS:
                self._send(points)
                points, count = {}, 0
        self._send(points)

    def _send(self, points: Mapping[str, list[dict[str, object]]]) -> None:
        metrics = [{"name": metric, "gauge": {"dataPoints": of}} for metric, of in points.items()]
        body = {"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}
        answer = httpx.post(f"{self.url}/api/v1/otlp/v1/metrics", json=body, timeout=60)
        assert answer.is_success, f"{answer.status_code} {answer.text}"
