"""A Prometheus server that knows a past: samples with times of their own, pushed through its OTLP receiver."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from parts.process import Process, free_port, tools

HOST = "127.0.0.1"
_POINTS = 20_000  # in one request
Sample = tuple[float, str, Mapping[str, str], float]  # Unix seconds, metric, labels, value


class Backfilled:
    """Scrapes nothing; older samples may come after newer ones."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        port = free_port()
        self.url = f"http://{HOST}:{port}"
        settings = folder / "prometheus.yml"
        settings.write_text("storage: {tsdb: {out_of_order_time_window: 60d}}\n")
        program = tools() / "prometheus-0.315.0" / "prometheus"
        options = [f"--web.listen-address={HOST}:{port}", f"--storage.tsdb.path={folder}/data"]
        receiver = "--web.enable-otlp-receiver"
        self._process = Process("prometheus", [program, f"--config.file={settings}", *options, receiver], folder)

    def push(self, samples: Iterable[Sample]) -> None:
        """Give it samples, oldest first."""
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

    def stop(self) -> None:
        """Ends it; its data stay."""
        self._process.stop()

    def __enter__(self) -> Self:
        self._process.start()
        self._process.ready(lambda: httpx.get(f"{self.url}/-/ready", timeout=2).status_code == 200)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
