"""Read one tick of a configuration from answers that a real Prometheus gave."""

import json
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
from sample_rows import Row, rows_of
from streamed_answers import StreamedTransport

from adapter.config import Config, PrometheusSource
from adapter.sources.prometheus import PrometheusReader
from adapter.sources.prometheus_plan import queries


def read_tick(config: Config, answers: str) -> list[Row]:
    recorded = json.loads((Path(__file__).parents[1] / "data/prometheus" / answers).read_text())
    at_s = int(recorded[0]["form"]["time"])
    source = config.sources["main"]
    assert isinstance(source, PrometheusSource)
    transport = StreamedTransport(partial(_replay, recorded))
    with closing(PrometheusReader("main", source, queries(config, "main"), transport)) as reader:
        return rows_of(reader.samples(at_s, at_s, 15))


def values(tick: list[Row], workload: str) -> dict[str, float]:
    return {row.signal: row.value for row in tick if row.workload == workload and row.signal not in ("fault", "fleet")}


def _replay(recorded: list[dict[str, Any]], request: httpx.Request) -> httpx.Response:
    """The recorded answer; a query that was not recorded needs `record_prometheus.py` again."""
    form = {key: values[0] for key, values in parse_qs(request.content.decode()).items()}
    [entry] = [each for each in recorded if each["path"] == "query" and each["form"]["query"] == form["query"]]
    return httpx.Response(entry["status"], json=entry["answer"])
