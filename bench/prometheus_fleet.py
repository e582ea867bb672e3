"""Measure a read of a large fleet from Prometheus: time and memory for the present, and for a warm-up."""

import json
import multiprocessing
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any
from urllib.parse import parse_qs

import httpx

from adapter.config import Config, PrometheusSource
from adapter.sources.prometheus import PrometheusReader
from adapter.sources.prometheus_plan import Query, queries
from bench.figures import Figure

JOBS, TASKS = 3_000, 4
TICKS = (1, 20)  # the present, and history_s
TICK_S, END_S = 15, 1_800_000_000
REPETITIONS = 3
_MIB = 1024  # in the unit of ru_maxrss
_CONFIG = Config.model_validate(
    {
        "sources": {"prometheus": {"kind": "prometheus", "url": "http://prometheus", "deadline_s": 600}},
        "fleets": [{"name": "jobs", "source": "prometheus", "preset": "flink", "namespace": "streaming"}],
        "pipeline": {"checkpoint": "/nowhere"},
    }
)


def figures() -> Iterator[Figure]:
    """For each number of ticks: processor time and peak memory of the first read in a process of its own."""
    for ticks in TICKS:
        reads = [_in_own_process(ticks) for _ in range(REPETITIONS)]
        name = f"{JOBS} Flink jobs with {TASKS} tasks, {ticks} ticks"
        yield Figure(f"{name}: samples", (float(reads[0][0]),), "")
        yield Figure(f"{name}: processor time", tuple(used_s for _, used_s, _ in reads), "s")
        yield Figure(f"{name}: memory", tuple(mib for _, _, mib in reads), "MiB")


def _in_own_process(ticks: int) -> tuple[int, float, float]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_read, ticks).result()


def _read(ticks: int) -> tuple[int, float, float]:
    """The samples, the processor time, and how far the peak of the memory is above that before the read."""
    plan, source = queries(_CONFIG, "prometheus"), _CONFIG.sources["prometheus"]
    assert isinstance(source, PrometheusSource)  # noqa: S101 - narrows the type to what _CONFIG has
    bodies = {query.text: _body(query, ticks) for query in plan}

    def answer(request: httpx.Request) -> httpx.Response:
        (text,) = parse_qs(request.content.decode())["query"]
        return httpx.Response(200, stream=httpx.ByteStream(bodies[text]))

    reader = PrometheusReader("prometheus", source, plan, httpx.MockTransport(answer))
    before, start_s = _peak_kib(), time.process_time()
    table = reader.samples(END_S - TICK_S * (ticks - 1), END_S, TICK_S)
    return table.num_rows, time.process_time() - start_s, (_peak_kib() - before) / _MIB


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _body(query: Query, ticks: int) -> bytes:
    """The answer of Prometheus to one query."""
    values = [(END_S - TICK_S * age, str(1000 / (1 + age))) for age in reversed(range(ticks))]
    points: dict[str, Any] = {"values": values} if ticks > 1 else {"value": values[-1]}
    stage_label = query.stage_label or ""
    labels = [{stage_label: f"Source:_events_{task}"} for task in range(TASKS)] if stage_label else [{}]
    series = [{"metric": {"job_name": f"job-{job}", **more}} | points for job in range(JOBS) for more in labels]
    kind = "matrix" if ticks > 1 else "vector"
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": series}}).encode()
