"""A backtest of the history in a real Prometheus: read in pieces, calibrated, simulated, reported."""

import csv
import math
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts.backfill import HistoryPrometheus, Sample
from parts.prometheus import TOOL
from tool_cache import need

from adapter import cli

HOURS = 4
STEP_S = 15
PARTITIONS = 12
CAPACITY_RECORDS_PER_S = 200.0
PAUSE_S = 45
SIZES = ((0.0, 6), (1.0, 9), (2.0, 5), (3.0, 8))  # hours since the start -> workers
CONFIG = """
sources:
  main: {{kind: prometheus, url: "{url}"}}
workloads:
  - namespace: shop
    name: orders
    read:
      - source: main
        preset: kafka-exporter
        match: {{consumergroup: orders}}
        signals:
          ready_workers: >-
            sum by ($by) (label_replace(kube_deployment_status_replicas_ready, "consumergroup", "$$1", "deployment",
            "(.*)"))
  - namespace: shop
    name: never-scraped
    read: [{{source: main, preset: kafka-exporter, match: {{consumergroup: never-scraped}}}}]
rules: {{max_workers: 12}}
pipeline: {{checkpoint: /tmp/unused}}
"""


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HistoryPrometheus]:
    need(TOOL)
    with HistoryPrometheus(tmp_path_factory.mktemp("past") / "prometheus") as prometheus:
        prometheus.push(_job(int(time.time()) // STEP_S * STEP_S - HOURS * 3600))
        yield prometheus


def _job(begin_s: int) -> Iterator[Sample]:
    """A consumer group that falls behind after each change of its workers."""
    appended = processed = 0.0
    for after_s in range(0, HOURS * 3600 + 1, STEP_S):
        since_s, workers = next((hours * 3600, n) for hours, n in reversed(SIZES) if hours * 3600 <= after_s)
        for partition in range(PARTITIONS):
            labels = {"consumergroup": "orders", "topic": "orders", "partition": str(partition)}
            yield begin_s + after_s, "kafka_consumergroup_current_offset", labels, processed // PARTITIONS
            yield begin_s + after_s, "kafka_consumergroup_lag", labels, (appended - processed) // PARTITIONS
        yield begin_s + after_s, "kube_deployment_status_replicas_ready", {"deployment": "orders"}, float(workers)
        appended += (900 + 250 * math.sin(2 * math.pi * after_s / 7200)) * STEP_S
        works_s = STEP_S if not since_s else min(max(after_s + STEP_S - since_s - PAUSE_S, 0.0), STEP_S)
        processed += min(workers * CAPACITY_RECORDS_PER_S * works_s, appended - processed)


def _arguments(past: HistoryPrometheus, folder: Path, *changes: str) -> list[str]:
    """The command line; the last value of a repeated option wins."""
    file = folder / "config.yaml"
    file.write_text(CONFIG.format(url=past.url))
    options = ["--from", f"-{HOURS}h", "--policy", "drain,static-peak", "--price", "0.1"]
    return ["backtest", "--config", str(file), *options, "--report", str(folder / "report.html"), *changes]


def _ended(arguments: list[str]) -> object:
    """The exit code of the command."""
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    return ended.value.code


@pytest.mark.full
def test_the_history_of_a_job_becomes_a_report_with_its_numbers(
    past: HistoryPrometheus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _ended(_arguments(past, tmp_path)) == 0

    printed = capsys.readouterr()
    files = [Path(line.removeprefix("written: ")) for line in printed.out.splitlines() if line.startswith("written: ")]
    page, scores = files[0].read_text(), _rows(files[1])
    actual, drain, static = scores
    assert [row["name"] for row in scores] == ["actual", "drain", "static-peak"]
    assert float(actual["worker_hours"]) == pytest.approx(6 + 9 + 5 + 8, rel=0.01)
    assert float(drain["worker_hours"]) < float(static["worker_hours"])
    assert float(drain["cost"]) == pytest.approx(float(drain["worker_hours"]) * 0.1)
    assert int(actual["rescales"]) == 3
    assert float(actual["pause_s"]) == pytest.approx(3 * PAUSE_S, abs=15)
    assert "shop/never-scraped: no sample from" in printed.err
    assert "shop/never-scraped: no sample from" in page
    assert "200 records/s" in page.replace("± 0 ", "")
    assert "averageValue" in page
    changes = _rows(files[2])
    assert {row["loop"] for row in changes} == {"open", "closed"}
    assert all(row["why"] for row in changes if row["loop"] == "open")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            ("--from", "-30d", "--to", "-29d"), "no sample of any workload.*no series match {consumergroup=", id="empty"
        ),
        pytest.param(("--from", "-999999w"), "--from: expected a time in the years 1970 to 9999", id="no such year"),
        pytest.param(("--to", "-30d"), "--from is after --to", id="reversed"),
        pytest.param(("--report", "."), "cannot write the report", id="no place for the report"),
    ],
)
def test_an_impossible_request_ends_with_one_sentence(
    changes: tuple[str, ...], message: str, past: HistoryPrometheus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _ended(_arguments(past, tmp_path, *changes)) == 2

    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("backlog-adapter: ")
    assert re.search(message, last)
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def _rows(table: Path) -> list[dict[str, str]]:
    with table.open(newline="") as file:
        return list(csv.DictReader(file))
