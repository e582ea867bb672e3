import asyncio
import gzip
import json
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpcore
import httpx
import pytest
import trustme
from prometheus_fleet import CONFIG
from sample_rows import Row, rows_of, table_of
from secure_server import answering, client_files, secure_server
from streamed_answers import StreamedTransport

from adapter.config import PrometheusReading, PrometheusSource, Workload
from adapter.errors import SourceError
from adapter.sources.prometheus import MOST_POINTS, PrometheusReader
from adapter.sources.prometheus_plan import ConfiguredWorkloads, DiscoveredWorkloads, Query, queries
from adapter.sources.sample_table import samples_of

RECORDED = json.loads((Path(__file__).parents[1] / "data/prometheus/answers.json").read_text())
AT_S = int(RECORDED[0]["form"]["time"])
ONE = Query("workloads[0].read[0]", "backlog_records", "depth", ConfiguredWorkloads((), {(): ("default/orders",)}))
FLEET = Query("fleets[0]", "backlog_records", "depth", DiscoveredWorkloads(0, "app", "ns", "unused"))
Answer = Callable[[httpx.Request], httpx.Response]


def replay(request: httpx.Request) -> httpx.Response:
    """What the real Prometheus answered; a query that was not recorded needs record_prometheus.py to be run again."""
    form = {key: values[0] for key, values in parse_qs(request.content.decode()).items()}
    for entry in RECORDED:
        if request.url.path.endswith(f"/api/v1/{entry['path']}") and entry["form"].items() <= form.items():
            return httpx.Response(entry["status"], json=entry["answer"])
    pytest.fail(f"not recorded: {form}")


@contextmanager
def reader(answer: Answer, *plan: Query, **settings: object) -> Iterator[PrometheusReader]:
    source = PrometheusSource.model_validate({"kind": "prometheus", "url": "http://p.test/base/", **settings})
    opened = PrometheusReader("main", source, plan or (ONE,), StreamedTransport(answer))
    try:
        yield opened
    finally:
        opened.close()


def ask(answer: Answer, *plan: Query, **settings: object) -> list[Row]:
    with reader(answer, *plan, **settings) as opened:
        return rows_of(opened.samples(AT_S, AT_S, 15))


def vector(*series: tuple[dict[str, str], str], **more: object) -> httpx.Response:
    result = [{"metric": labels, "value": [AT_S, value]} for labels, value in series]
    return httpx.Response(200, json={"status": "success", "data": {"resultType": "vector", "result": result}, **more})


def values(rows: list[Row], workload: str) -> dict[tuple[str, str], float]:
    return {(row.stage, row.signal): row.value for row in rows if row.workload == workload and row.signal != "fault"}


def faults(rows: list[Row]) -> dict[str, str]:
    return {row.workload: row.text for row in rows if row.signal == "fault"}


@pytest.fixture(scope="module")
def recorded_tick() -> list[Row]:
    return ask(replay, *queries(CONFIG, "main"))


def test_a_recorded_consumer_group_is_counted_over_its_partitions(recorded_tick: list[Row]) -> None:
    assert values(recorded_tick, "shop/orders") == {
        ("", "processed_records"): 20400,
        ("", "appended_records"): 22320,
        ("", "backlog_records"): 1920,
        ("", "highest_partition_backlog_records"): 1420,
        ("", "stuck_backlog_records"): 0,
        ("", "hottest_partition_ratio"): pytest.approx(110 / 105),
        ("", "partitions"): 2,
        ("", "fleet"): 0,
    }


def test_the_backlog_of_a_group_without_any_commit_is_unknown(recorded_tick: list[Row]) -> None:
    assert values(recorded_tick, "shop/idle") == {("", "partitions"): 1, ("", "fleet"): 0}


def test_the_sums_of_a_group_with_an_uncommitted_partition_are_unknown(recorded_tick: list[Row]) -> None:
    assert values(recorded_tick, "shop/joining") == {("", "partitions"): 2, ("", "fleet"): 0}


def test_a_missing_lag_of_one_partition_makes_its_sums_unknown(recorded_tick: list[Row]) -> None:
    assert values(recorded_tick, "shop/endless").keys() == {
        ("", "processed_records"),
        ("", "partitions"),
        ("", "fleet"),
    }


def test_a_negative_lag_of_a_committed_partition_is_0(recorded_tick: list[Row]) -> None:
    seen = values(recorded_tick, "shop/ahead")
    assert seen["", "backlog_records"] == 20
    assert seen["", "appended_records"] - seen["", "processed_records"] == 20 - 7


def test_s4_38_partitions_that_are_behind_stuck_or_hot_have_their_own_signals(recorded_tick: list[Row]) -> None:
    seen = values(recorded_tick, "shop/uneven")
    assert seen["", "backlog_records"] == 500 + 19_100
    assert seen["", "highest_partition_backlog_records"] == 19_100
    assert seen["", "stuck_backlog_records"] == 19_100
    assert seen["", "hottest_partition_ratio"] == pytest.approx(300 / ((300 + 100 + 200 + 0) / 4))


def test_one_sample_a_window_is_enough_to_detect_a_stuck_partition(recorded_tick: list[Row]) -> None:
    seen = values(recorded_tick, "shop/minutely")
    assert seen["", "backlog_records"] == (500 + 10 * 60) + (700 + 20 * 60)
    assert seen["", "stuck_backlog_records"] == 700 + 20 * 60, "the other is behind as well, and moves"
    assert seen["", "hottest_partition_ratio"] == pytest.approx((100 + 10) / ((100 + 10 + 20) / 2))


def test_a_partition_without_a_sample_a_window_ago_is_neither_stuck_nor_hot(recorded_tick: list[Row]) -> None:
    seen = values(recorded_tick, "shop/sprouting")
    assert seen["", "backlog_records"] == 2 * (700 + 20 * 60)
    assert seen["", "stuck_backlog_records"] == 700 + 20 * 60
    assert ("", "hottest_partition_ratio") not in seen


def test_configured_workloads_read_the_same_counts_as_a_fleet(recorded_tick: list[Row]) -> None:
    same = {key: value for key, value in values(recorded_tick, "shop/orders").items() if key != ("", "fleet")}
    assert values(recorded_tick, "default/orders") == same
    assert values(recorded_tick, "default/one-topic") == same
    assert values(recorded_tick, "default/billing")["", "backlog_records"] == 40


def test_s1_10_flink_lag_is_lag_max_times_partitions_and_pending_records_where_it_is_unknown(
    recorded_tick: list[Row],
) -> None:
    assert (
        values(recorded_tick, "flink/clicks")["Source:_events".replace(":", "-"), "backlog_records"] == 19667 * 4 + 100
    )


def test_s0_04_flink_stages_are_tasks_with_throughput_and_the_mean_of_their_subtasks(recorded_tick: list[Row]) -> None:
    seen = values(recorded_tick, "flink/clicks")
    assert seen["Source-_events", "throughput_records_per_s"] == pytest.approx(400, rel=0.001)
    assert seen["Slow_Map____Sink-_out", "throughput_records_per_s"] == pytest.approx(400, rel=0.001)
    assert seen["Source-_events", "utilization_ratio"] == 0.131
    assert seen["Slow_Map____Sink-_out", "utilization_ratio"] == pytest.approx((0.932 + 0.981) / 2)
    assert seen["Slow_Map____Sink-_out", "busiest_subtask_ratio"] == 0.981
    assert (seen["", "workers"], seen["", "partitions"], seen["", "fleet"]) == (2, 7, 1)


def test_flink_has_backpressure_and_the_slowest_worker(recorded_tick: list[Row]) -> None:
    seen = values(recorded_tick, "flink/clicks")
    assert seen["Source-_events", "backpressured_ratio"] == 0.84
    assert seen["Slow_Map____Sink-_out", "backpressured_ratio"] == 0
    assert seen["Source-_events", "highest_partition_backlog_records"] == 19667
    # 50 and 10 records a partition; of two workers the median is their mean.
    assert seen["Source-_events", "slowest_worker_ratio"] == pytest.approx(10 / 30)
    assert ("Slow_Map____Sink-_out", "slowest_worker_ratio") not in seen


def test_a_rescale_of_a_flink_job_is_no_restart(recorded_tick: list[Row]) -> None:
    seen = values(recorded_tick, "flink/clicks")
    assert (seen["", "running"], seen["", "restarts"]) == (1, 3 - 2)


def test_a_flink_job_that_restarts_has_workers_but_no_counts(recorded_tick: list[Row]) -> None:
    assert values(recorded_tick, "flink/restarting") == {
        ("", "running"): 0,
        ("", "restarts"): 1,
        ("", "workers"): 2,
        ("", "fleet"): 1,
    }


def test_s1_14_utilization_of_varga_is_the_mean_time_that_is_not_idle(recorded_tick: list[Row]) -> None:
    assert values(recorded_tick, "varga/clicks") == {
        ("", "backlog_records"): 19667 * 4,  # S1-10; the other client does not know yet
        ("", "throughput_records_per_s"): 200 + 30,  # S1-11
        ("", "utilization_ratio"): pytest.approx(1 - (29 + 29 + 68 + 8) / 4 / 1000),
        ("", "workers"): 2,
        ("", "partitions"): 7,
        ("", "fleet"): 2,
    }
    assert values(recorded_tick, "varga/restarting") == {("", "workers"): 2, ("", "fleet"): 2}


def test_spark_names_come_out_of_the_metric_name_and_an_idle_query_has_no_utilization(recorded_tick: list[Row]) -> None:
    counted = {
        ("q1", "throughput_records_per_s"): 747.0,
        ("q2", "throughput_records_per_s"): 0.0,
        ("q1", "utilization_ratio"): 0.1575,
    }
    assert values(recorded_tick, "default/app") == counted
    assert values(recorded_tick, "spark/my_ns") == counted | {("", "fleet"): 3}


def test_a_configured_workload_without_series_has_a_fault(recorded_tick: list[Row]) -> None:
    assert faults(recorded_tick) == {
        "default/gone": 'main (workloads[2].read[0]): no series match {consumergroup="gone"}; '
        "are the labels right, is it running, and scraped?"
    }


def test_several_ticks_are_one_range_query_and_the_last_equals_the_live_one(recorded_tick: list[Row]) -> None:
    with reader(replay, *queries(CONFIG, "main")) as opened:
        past = rows_of(opened.samples(AT_S - 20, AT_S, 10))
    assert {row.at_s for row in past} == {AT_S - 20, AT_S - 10, AT_S}
    key = lambda row: (row.workload, row.stage, row.signal)  # noqa: E731 - used twice, here only
    assert sorted((row for row in past if row.at_s == AT_S), key=key) == sorted(recorded_tick, key=key)


@pytest.mark.parametrize(
    ("settings", "lookback"),
    [
        pytest.param({}, {}, id="the server's own lookback"),
        pytest.param({"lookback_s": 30}, {"lookback_delta": ["30"]}, id="a lookback of 30 s"),
        pytest.param({"lookback_s": 7.5}, {"lookback_delta": ["7.5"]}, id="a lookback of 7.5 s"),
    ],
)
def test_one_tick_is_an_instant_query_at_its_time_and_several_are_a_range(
    settings: dict[str, float], lookback: dict[str, list[str]]
) -> None:
    requests: list[tuple[str, dict[str, list[str]]]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append((request.url.path, parse_qs(request.content.decode())))
        return vector(({}, "1"))

    with reader(answer, deadline_s=2.5, **settings) as opened:
        opened.samples(100, 100, 15)
        opened.samples(70, 100, 15)
    common = {"query": ["depth"], "timeout": ["2.5"], **lookback}
    assert requests == [
        ("/base/api/v1/query", {**common, "time": ["100"]}),
        ("/base/api/v1/query_range", {**common, "start": ["70"], "end": ["100"], "step": ["15"]}),
    ]


def test_a_long_past_is_split_into_queries_that_prometheus_allows() -> None:
    requests: list[tuple[int, int]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        form = parse_qs(request.content.decode())
        requests.append((int(form["start"][0]), int(form["end"][0])))
        return vector(({}, "1"))

    with reader(answer) as opened:
        opened.samples(0, 20_000 * 15, 15)
    assert requests == [(0, (MOST_POINTS - 1) * 15), (MOST_POINTS * 15, 20_000 * 15)]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1", "many"])
def test_x_06_a_value_that_is_no_count_is_ignored_with_a_fault(value: str) -> None:
    rows = ask(lambda _: vector(({"ns": "n", "app": "a"}, value), ({"ns": "n", "app": "b"}, "2")), FLEET)
    assert values(rows, "n/a") == {("", "fleet"): 0}
    assert values(rows, "n/b") == {("", "backlog_records"): 2, ("", "fleet"): 0}
    assert faults(rows) == {"n/a": f"backlog_records is {value} and is ignored (fleets[0])"}


@pytest.mark.parametrize(
    ("signal", "value", "is_share"),
    [
        pytest.param("utilization_ratio", "75", False, id="busy time in percent"),
        pytest.param("cpu_ratio", "7.5", False, id="CPU in percent"),
        pytest.param("cpu_ratio", "2.5", True, id="CPU above its request"),
        pytest.param("hottest_partition_ratio", "75", True, id="a ratio that is no share"),
    ],
)
def test_a_percentage_is_no_share(signal: str, value: str, is_share: bool) -> None:
    rows = ask(lambda _: vector(({"ns": "n", "app": "a"}, value)), replace(FLEET, signal=signal))
    text = f"{signal} is {value} and is ignored (fleets[0]): 1 is full, so divide a percentage by 100"
    assert faults(rows) == ({} if is_share else {"n/a": text})
    assert values(rows, "n/a").get(("", signal)) == (float(value) if is_share else None)


@pytest.mark.parametrize(
    "query",
    ["0 / (kafka_consumergroup_lag * 0)", "1 / (kafka_consumergroup_lag * 0)"],
)
def test_x_06_recorded_not_a_number_and_infinity_are_never_values(query: str) -> None:
    by_partition = replace(
        FLEET, text=query, owners=DiscoveredWorkloads(0, "consumergroup", "topic", ""), stage_label="partition"
    )
    rows = ask(replay, by_partition)
    assert {row.signal for row in rows} == {"fleet", "fault"}


@pytest.mark.parametrize(
    ("labels", "lacking"),
    [({"ns": "n", "pod": "x"}, "app"), ({"app": "", "ns": "n"}, "app"), ({"app": "a", "pod": "x"}, "ns")],
)
def test_a_series_without_its_labels_is_a_fault_that_names_query_labels_and_fix(
    labels: dict[str, str], lacking: str
) -> None:
    rows = ask(lambda _: vector((labels, "1"), ({"ns": "n", "app": "a"}, "2")), FLEET)
    assert values(rows, "n/a")["", "backlog_records"] == 2
    sentence = faults(rows)["*"]
    assert f"lacks the label '{lacking}', it has {{" in sentence
    assert all(f'{label}="{value}"' in sentence for label, value in labels.items())
    assert sentence.endswith("aggregate by ($by), or set the right label. The query: depth")


def test_a_recorded_sum_without_labels_is_a_fault() -> None:
    rows = ask(replay, replace(FLEET, text="sum(kafka_consumergroup_lag)"))
    assert "lacks the label 'app', it has {}" in faults(rows)["*"]


def test_a_series_that_matches_by_chance_belongs_to_no_workload() -> None:
    query = replace(
        ONE, owners=ConfiguredWorkloads(("g", "t"), {("a", "x"): ("default/a",), ("b", "y"): ("default/b",)})
    )
    rows = ask(lambda _: vector(*(({"g": g, "t": t}, "1") for g in "ab" for t in "xy")), query)
    assert sorted((row.workload, row.signal) for row in rows) == [
        ("default/a", "backlog_records"),
        ("default/b", "backlog_records"),
    ]


def test_a_joined_result_without_its_key_is_a_fault_of_every_workload() -> None:
    query = replace(ONE, owners=ConfiguredWorkloads(("g",), {("a",): ("default/a",), ("b",): ("default/b",)}))
    rows = ask(lambda _: vector(({}, "1")), query)
    assert set(faults(rows)) == {"default/a", "default/b"}


def test_two_series_for_one_value_are_a_fault_and_no_value() -> None:
    rows = ask(lambda _: vector(({"pod": "x"}, "1"), ({"pod": "y"}, "2")))
    assert values(rows, "default/orders") == {}
    assert faults(rows)["default/orders"] == (
        'backlog_records has two series, {pod="x"} and {pod="y"}; aggregate by ($by), or match one of them'
    )


def matrix(*series: tuple[dict[str, str], dict[int, str]]) -> httpx.Response:
    result = [{"metric": labels, "values": [*points.items()]} for labels, points in series]
    return httpx.Response(200, json={"status": "success", "data": {"resultType": "matrix", "result": result}})


def past_values(answer: Answer, *plan: Query) -> dict[int, float]:
    """The backlog of the one workload in the three last ticks."""
    with reader(answer, *plan) as opened:
        rows = rows_of(opened.samples(AT_S - 30, AT_S, 15))
    return {row.at_s - AT_S: row.value for row in rows if row.signal == "backlog_records"}


def test_a_value_is_ambiguous_only_in_the_ticks_that_two_series_share() -> None:
    before = {"pod": "x"}, {AT_S - 30: "1", AT_S - 15: "2"}
    after = {"pod": "y"}, {AT_S - 15: "3", AT_S: "4"}
    assert past_values(lambda _: matrix(before, after)) == {-30: 1, 0: 4}


def test_a_series_that_ended_with_a_bad_value_is_missing_at_the_last_tick() -> None:
    with reader(lambda _: matrix(({}, {AT_S - 15: "NaN"})), ONE) as opened:
        found = {row.at_s: row.text for row in rows_of(opened.samples(AT_S - 30, AT_S, 15)) if row.signal == "fault"}
    assert found[AT_S - 15].startswith("backlog_records is NaN")
    assert found[AT_S].startswith("workloads[0].read[0]: no series match")


def test_a_second_query_has_the_ticks_that_the_first_one_lacks() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if b"query=depth" in request.content:
            return matrix(({}, {AT_S - 15: "2"}))
        return matrix(({}, {AT_S - 30: "7", AT_S - 15: "8", AT_S: "9"}))

    assert past_values(answer, ONE, replace(ONE, text="other")) == {-30: 7, -15: 2, 0: 9}


def test_two_names_with_one_slug_are_a_fault_and_no_value() -> None:
    rows = ask(lambda _: vector(({"ns": "n", "app": "a b"}, "1"), ({"ns": "n", "app": "a:b"}, "2")), FLEET)
    assert values(rows, "n/a-b") == {("", "fleet"): 0}
    assert faults(rows) == {"n/a-b": "n/a b and n/a:b have the same workload name; rename one"}


def test_a_name_without_a_valid_character_is_a_fault() -> None:
    rows = ask(lambda _: vector(({"ns": "n", "app": "…"}, "1")), FLEET)
    assert faults(rows) == {"*": "fleets[0]: n/… has no character that a Kubernetes label value allows; rename it"}


def test_a_fleet_without_series_has_a_fault() -> None:
    assert faults(ask(lambda _: vector(), FLEET)) == {"*": "fleets[0]: no series match; is the exporter scraped?"}


def test_a_workload_that_two_fleets_find_has_a_fault_that_names_both_and_no_number() -> None:
    other = replace(FLEET, path="fleets[1]", signal="workers", owners=DiscoveredWorkloads(1, "app", "ns", "unused"))
    with reader(lambda _: vector(({"ns": "n", "app": "a"}, "3")), FLEET, other) as opened:
        samples = samples_of(AT_S, opened.samples(AT_S, AT_S, 15))
    assert "fleets[0] and fleets[1] both find this workload" in samples.faults["n/a"]
    assert (samples.by_stage.keys(), samples.by_workload.keys()) == (set(), {"fleet"})


def test_a_failed_query_affects_only_its_own_signal() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return (
            httpx.Response(503) if "query=bad" in request.content.decode() else vector(({"ns": "n", "app": "a"}, "1"))
        )

    bad = replace(ONE, signal="processed_records", text="bad")
    rows = ask(answer, FLEET, bad, replace(FLEET, signal="workers", text="bad"))
    assert values(rows, "n/a") == {("", "backlog_records"): 1, ("", "fleet"): 0}
    assert faults(rows) == {
        "default/orders": "processed_records (workloads[0].read[0]): HTTP 503",
        "*": "workers (fleets[0]): HTTP 503",
    }


@pytest.mark.parametrize(
    ("is_own", "noted"),
    [
        (True, {"default/orders": "workers (workloads[0].read[0]): no series match; is its metric right?"}),
        (False, {}),
    ],
    ids=["own", "of a preset"],
)
def test_an_own_query_without_a_result_is_named_beside_the_others(is_own: bool, noted: dict[str, str]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return vector() if "query=wrong" in request.content.decode() else vector(({}, "1"))

    rows = ask(answer, ONE, replace(ONE, signal="workers", text="wrong", is_own=is_own))
    assert values(rows, "default/orders") == {("", "backlog_records"): 1}
    assert faults(rows) == noted
    assert samples_of(AT_S, table_of(rows)).assumed == noted.keys()


TWO_ENTRIES = Workload(
    name="orders",
    read=(
        PrometheusReading(source="main", preset="kafka-exporter", match={"consumergroup": "ordrs"}),
        PrometheusReading(
            source="main", preset="kube-state-metrics", match={"namespace": "shop", "workload": "orders"}
        ),
    ),
)
TWO_ENTRIES_PLAN = queries(CONFIG.model_copy(update={"workloads": (TWO_ENTRIES,), "fleets": ()}), "main")
GROUP_ABSENT = (
    'main (workloads[0].read[0]): no series match {consumergroup="ordrs"}; '
    "are the labels right, is it running, and scraped?"
)
REPLICAS_ABSENT = (
    'main (workloads[0].read[1]): no series match {namespace="shop", workload="orders"}; '
    "are the labels right, is it running, and scraped?"
)
REPLICAS = {"namespace": "shop", "workload": "orders"}


def answer_one(metric: str, found: httpx.Response, empty: httpx.Response) -> Answer:
    """An answer to the queries that contain a metric; the others find nothing."""
    return lambda request: found if metric in parse_qs(request.content.decode())["query"][0] else empty


@pytest.mark.parametrize(
    ("metric", "labels", "fault"),
    [
        pytest.param("kube_deployment_status_replicas{", REPLICAS, GROUP_ABSENT, id="the first entry is empty"),
        pytest.param("kafka_consumergroup_lag", {"consumergroup": "ordrs"}, REPLICAS_ABSENT, id="the second is empty"),
    ],
)
def test_an_entry_without_any_series_is_named_beside_one_that_matches(
    metric: str, labels: dict[str, str], fault: str
) -> None:
    rows = ask(answer_one(metric, vector((labels, "2")), vector()), *TWO_ENTRIES_PLAN)
    assert set(values(rows, "default/orders").values()) == {2}
    assert faults(rows) == {"default/orders": fault}
    assert samples_of(AT_S, table_of(rows)).assumed == {"default/orders"}, "no source failed"


def test_two_entries_without_any_series_are_a_fault_that_names_the_first() -> None:
    rows = ask(lambda _: vector(), *TWO_ENTRIES_PLAN)
    assert faults(rows) == {"default/orders": GROUP_ABSENT}
    assert samples_of(AT_S, table_of(rows)).assumed == frozenset()


def test_an_entry_without_any_series_has_no_old_values_of_another_entry() -> None:
    old = matrix((REPLICAS, {AT_S - 30: "2"}))
    with reader(answer_one("kube_deployment_status_replicas{", old, matrix()), *TWO_ENTRIES_PLAN) as opened:
        rows = rows_of(opened.samples(AT_S - 30, AT_S, 15))
    assert faults(rows) == {"default/orders": GROUP_ABSENT}


def test_an_own_query_that_fails_has_its_error_alone() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(500) if "query=wrong" in request.content.decode() else vector(({}, "1"))

    rows = ask(answer, ONE, replace(ONE, signal="workers", text="wrong", is_own=True))
    assert "match" not in faults(rows)["default/orders"]
    assert samples_of(AT_S, table_of(rows)).assumed == frozenset()


def test_a_late_query_affects_only_its_own_signal() -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        if "query=slow" in request.content.decode():
            await asyncio.sleep(60)
        return vector(({}, "1"))

    rows = ask(answer, ONE, replace(ONE, signal="workers", text="slow"), deadline_s=0.2)
    assert values(rows, "default/orders") == {("", "backlog_records"): 1}
    sentence = "workers (workloads[0].read[0]): no answer from http://p.test/base/ within 0.2 s"
    assert faults(rows) == {"default/orders": sentence}


def test_all_queries_failing_is_a_source_error_with_the_cause() -> None:
    with pytest.raises(SourceError, match=r"main: HTTP 503 \(all 2 queries\)"):
        ask(lambda _: httpx.Response(503), ONE, ONE)


def test_an_empty_plan_sends_no_query() -> None:
    nothing = PrometheusReader("main", PrometheusSource(kind="prometheus", url="http://p.test"), ())
    assert rows_of(nothing.samples(0, 0, 15)) == []
    nothing.close()


def refuse(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("connection refused")


def stall(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadTimeout("")


def alert(request: httpx.Request) -> httpx.Response:
    raise ssl.SSLError(1, "certificate required")


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        pytest.param(alert, "p.test/base/: certificate required", id="TLS that ends while the answer is read"),
        pytest.param(refuse, "no answer from http://p.test/base/: connection refused", id="no listener"),
        pytest.param(stall, "no answer from http://p.test/base/ within 5 s", id="a timeout"),
        pytest.param(
            lambda _: httpx.Response(302, headers={"location": "https://login.test/"}),
            "redirected to https://login.test/, which is not followed; set url",
            id="a redirect",
        ),
        pytest.param(lambda _: httpx.Response(302), "HTTP 302; set url to the address", id="a redirect to nowhere"),
        pytest.param(lambda _: httpx.Response(304), "HTTP 304; set url to the address", id="not modified"),
        pytest.param(
            lambda _: httpx.Response(200, html="<html>Sign in</html>"), "the answer is a web page", id="a login page"
        ),
        pytest.param(lambda _: httpx.Response(401), "HTTP 401; it requires credentials", id="no credentials"),
        pytest.param(
            lambda _: httpx.Response(403, html="<p>no"), "HTTP 403; these credentials", id="wrong credentials"
        ),
        pytest.param(
            lambda _: httpx.Response(404, text="nothing"), "HTTP 404; is the base path", id="a wrong base path"
        ),
        pytest.param(lambda _: httpx.Response(502, html="<p>gateway"), "HTTP 502", id="a gateway's page"),
        pytest.param(
            lambda _: httpx.Response(200, text='{"status":"succ', headers={"content-type": "application/json"}),
            "the answer (application/json) is not in Prometheus' format: Input data was truncated",
            id="half an answer",
        ),
        pytest.param(
            lambda _: httpx.Response(200, json=[1]), "is not in Prometheus' format: Expected `object`", id="a list"
        ),
        pytest.param(lambda _: httpx.Response(200), "the answer (no content type) is not", id="an empty answer"),
        pytest.param(
            lambda _: httpx.Response(200, content=b"\xff\xfe"),
            "is not in Prometheus' format",
            id="bytes of something else",
        ),
        pytest.param(
            lambda _: vector(({}, 1)),  # type: ignore[arg-type] - Prometheus writes values as text
            "is not in Prometheus' format: Expected `str`, got `int`",
            id="values that are numbers",
        ),
        pytest.param(
            lambda _: httpx.Response(503, json={"status": "error", "errorType": "timeout", "error": "query timed out"}),
            "503 timeout: query timed out",
            id="the server's own deadline",
        ),
        pytest.param(
            lambda _: vector(({}, "1"), warnings=["store a is away"]),
            "the answer is incomplete: store a is away",
            id="a part is missing",
        ),
        pytest.param(
            lambda _: vector(({}, "1"), isPartial=True),
            "the answer is incomplete: a storage node did not answer",
            id="a part is missing at VictoriaMetrics",
        ),
    ],
)
def test_every_unexpected_answer_has_a_clear_cause(answer: Answer, cause: str) -> None:
    with pytest.raises(SourceError) as caught:
        ask(answer)
    assert cause in caught.value.cause


@pytest.mark.parametrize(
    ("query", "cause"),
    [
        ("sum(rate(up[1m))", '400 bad_data: invalid parameter "query": 1:15: parse error: unexpected ")"'),
        (
            'kafka_consumergroup_lag * on (topic) kafka_consumergroup_current_offset{consumergroup="orders"}',
            "422 execution: found duplicate series",
        ),
        ("scalar(up)", "expected a vector, the query returns a scalar"),
    ],
)
def test_recorded_errors_are_reported_with_the_servers_message(query: str, cause: str) -> None:
    with pytest.raises(SourceError) as caught:
        ask(replay, replace(ONE, text=query))
    assert caught.value.cause.startswith(cause)


def test_an_info_annotation_of_a_query_is_no_fault() -> None:
    assert values(ask(lambda _: vector(({}, "1"), warnings=["PromQL info: perhaps no counter"])), "default/orders")
    rate = replace(ONE, text="rate(kafka_consumergroup_lag[1m])")
    assert "partition" in faults(ask(replay, rate))["default/orders"]  # five series, so a fault of another kind


def test_a_complete_answer_of_victoriametrics_is_read() -> None:
    assert values(ask(lambda _: vector(({}, "1"), isPartial=False)), "default/orders")


def test_a_compressed_answer_is_read() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert "gzip" in request.headers["accept-encoding"]
        plain = vector(({}, "7"))
        headers = {"content-encoding": "gzip", "content-type": "application/json"}
        return httpx.Response(200, content=gzip.compress(plain.content), headers=headers)

    assert values(ask(answer), "default/orders") == {("", "backlog_records"): 7}


def sent(**settings: object) -> httpx.Request:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return vector(({}, "1"))

    ask(answer, **settings)
    return requests[0]


def test_headers_and_tenant_parameters_are_sent() -> None:
    request = sent(headers={"X-Scope-OrgID": "team"}, parameters={"tenant": "a b", "dedup": "true"})
    assert request.headers["x-scope-orgid"] == "team"
    assert str(request.url) == "http://p.test/base/api/v1/query?tenant=a+b&dedup=true"
    assert request.method == "POST"


def test_basic_credentials_are_sent(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s€cret\n")
    request = sent(basic={"username": "me", "password_file": str(tmp_path / "password")})
    assert request.headers["authorization"] == "Basic " + b64encode("me:s€cret".encode()).decode()


def test_the_bearer_token_is_read_for_every_call(tmp_path: Path) -> None:
    file = tmp_path / "token"
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["authorization"])
        return vector(({}, "1"))

    with reader(answer, bearer_token_file=str(file)) as opened:
        for token in ("first\n", "second"):
            file.write_text(token)
            opened.samples(AT_S, AT_S, 15)
    assert seen == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            None,
            "expected a readable file, got {} (no such file or directory); mount its Secret or volume there, or run",
        ),
        ("\n", "expected a secret, got the empty file {}; "),
        ("two\nlines", "expected one token, got {} with characters that no token has"),
        ("tök", "expected one token, got {} with characters that no token has"),
        ("t\udcff", "expected UTF-8 text, got {} with other bytes at byte 1"),
    ],
)
def test_an_invalid_token_file_is_reported_with_its_setting_and_name(
    tmp_path: Path, content: str | None, sentence: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(SourceError) as caught:
        sent(bearer_token_file=str(file))
    assert caught.value.cause.startswith(f"bearer_token_file: {sentence.format(file)}")


def test_a_folder_is_no_password_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        sent(basic={"username": "adapter", "password_file": str(tmp_path)})
    fault = f"expected a readable file, got {tmp_path} (is a directory); name another file"
    assert caught.value.cause == f"basic.password_file: {fault}"


def test_a_certificate_that_cannot_be_loaded_is_reported_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for file, fault in (("ca.pem", "tls: cannot load .*"), ("absent.pem", r"tls\.ca_file: expected a readable file.*")):
        with pytest.raises(SourceError, match=f"{fault}{file}"):
            sent(url="https://p.test", tls={"ca_file": str(tmp_path / file)})


ANSWERING = answering(vector(({}, "7")).content)


def redirecting(location: str) -> type[BaseHTTPRequestHandler]:
    class Redirecting(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(307)
            self.send_header("location", location)
            self.send_header("content-length", "0")
            self.end_headers()

    return Redirecting


def ask_over_network(url: str, **tls: str) -> list[Row]:
    source = PrometheusSource.model_validate({"kind": "prometheus", "url": url, "tls": tls})
    with closing(PrometheusReader("main", source, (ONE,))) as opened:
        return rows_of(opened.samples(AT_S, AT_S, 15))


def test_a_refused_connection_names_the_address_and_the_cause_of_the_system() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(SourceError, match=rf"^main: no answer from {url}: Connection refused$"):
        ask_over_network(url)


def test_a_server_of_a_private_ca_gets_the_client_certificate(tmp_path: Path) -> None:
    ca = trustme.CA()
    trust, own = client_files(ca, tmp_path)
    with secure_server(ca, ANSWERING) as url:
        assert values(ask_over_network(url, **trust, **own), "default/orders") == {("", "backlog_records"): 7}
        with pytest.raises(SourceError, match="certificate verify failed"):
            ask_over_network(url, **own)
        with pytest.raises(SourceError, match=f"no answer from {url}"):  # the alert may come after the reset
            ask_over_network(url, **trust)


def test_rotated_tls_files_are_used_in_the_next_tick(tmp_path: Path) -> None:
    old, new = trustme.CA(), trustme.CA()
    trust, own = client_files(old, tmp_path)
    with secure_server(new, ANSWERING) as url:
        source = PrometheusSource.model_validate({"kind": "prometheus", "url": url, "tls": {**trust, **own}})
        with closing(PrometheusReader("main", source, (ONE,))) as opened:
            with pytest.raises(SourceError, match="certificate verify failed"):
                opened.samples(AT_S, AT_S, 15)
            client_files(new, tmp_path)
            assert values(rows_of(opened.samples(AT_S, AT_S, 15)), "default/orders") == {("", "backlog_records"): 7}
            client_files(old, tmp_path)
            with pytest.raises(SourceError, match="certificate verify failed"):
                opened.samples(AT_S, AT_S, 15)


class LostNode(httpcore.AsyncMockBackend):
    """While it is down, a connection is neither opened nor refused."""

    is_down = True

    async def connect_tcp(self, *args: Any, **settings: Any) -> httpcore.AsyncNetworkStream:
        if self.is_down:
            await asyncio.sleep(60)
        return await super().connect_tcp(*args, **settings)


def test_every_query_has_an_answer_after_an_outage_in_which_connections_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    node = LostNode([b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", vector(({}, "7")).content])
    monkeypatch.setattr(httpcore, "AsyncConnectionPool", partial(httpcore.AsyncConnectionPool, network_backend=node))
    names = [f"default/job-{number}" for number in range(40)]
    plan = [replace(ONE, owners=ConfiguredWorkloads((), {(): (name,)})) for name in names]
    source = PrometheusSource(kind="prometheus", url="http://p.test", deadline_s=1)
    with closing(PrometheusReader("main", source, tuple(plan))) as opened:
        for _ in range(4):
            with pytest.raises(SourceError, match=r"within 1 s \(all 40 queries\)"):
                opened.samples(AT_S, AT_S, 15)
        node.is_down = False
        rows = rows_of(opened.samples(AT_S, AT_S, 15))
    assert [values(rows, name) for name in names] == [{("", "backlog_records"): 7}] * 40


def test_a_client_certificate_never_follows_a_redirect(tmp_path: Path) -> None:
    ca = trustme.CA()
    trust, own = client_files(ca, tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as thief:
        thief.setblocking(False)
        location = f"https://127.0.0.1:{thief.getsockname()[1]}/api/v1/query"
        with (
            secure_server(ca, redirecting(location)) as url,
            pytest.raises(SourceError, match=rf"redirected to {location}, which is not followed; set url"),
        ):
            ask_over_network(url, **trust, **own)
        with pytest.raises(BlockingIOError):  # no connection waits
            thief.accept()


def test_the_proxy_and_netrc_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine p.test login x password y")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert "authorization" not in sent().headers
