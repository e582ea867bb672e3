"""A history is read completely, in pieces small enough for a server, and gaps are reported."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sample_rows import Row, lines_of, table_of

from adapter import config as configuration
from adapter.backtest import history
from adapter.backtest.history import (
    CHUNK_TICKS,
    HistoryError,
    RecordedHistory,
    instant,
    read,
    select_workloads,
    ticks_of,
)
from adapter.config import Config
from adapter.core.samples import EVERY
from adapter.errors import SourceError
from adapter.sources.sample_table import FAULT

NOW_S = 1_767_225_600.0  # 2026-01-01T00:00:00Z
TEXT = """
sources:
  main: {kind: prometheus, url: "http://p.test"}
  broker: {kind: kafka, bootstrap_servers: "k.test:9092"}
workloads:
  - namespace: shop
    name: orders
    read:
      - {source: main, signals: {backlog_records: depth, ready_workers: pods}}
      - {source: broker, group: orders, topics: [orders]}
  - {namespace: shop, name: carts, read: [{source: main, signals: {backlog_records: other, ready_workers: pods}}]}
pipeline: {checkpoint: /tmp/none}
"""
CONFIG = configuration.parse(TEXT, "test")
TICKS = range(int(NOW_S) - 3600, int(NOW_S) + 1, 15)
Answer = Callable[[int, int, int], list[Row]]


class FakeSource:
    """A source that answers by a function; calls: the (first, last) ticks of its reads."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.calls: list[tuple[int, int]] = []
        self.closed = False

    def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        self.calls.append((start_s, end_s))
        return table_of(self.answer(start_s, end_s, step_s))

    def close(self) -> None:
        self.closed = True


def steady(start_s: int, end_s: int, step_s: int) -> list[Row]:
    return [
        Row(at_s, workload, "", signal, value)
        for at_s in range(start_s, end_s + 1, step_s)
        for workload in ("shop/orders", "shop/carts")
        for signal, value in (("backlog_records", 7.0), ("ready_workers", 3.0))
    ]


def past_of(answer: Answer, ticks: range = TICKS, *only: str, config: Config = CONFIG) -> RecordedHistory:
    return read(config, ticks, only, opener=lambda _, name: FakeSource(answer))


@pytest.mark.parametrize(
    ("text", "at_s"),
    [
        ("now", NOW_S),
        ("-90s", NOW_S - 90),
        ("-1.5h", NOW_S - 5400),
        ("-7d", NOW_S - 7 * 86_400),
        ("-2w", NOW_S - 14 * 86_400),
        ("2025-12-31T23:00:00Z", NOW_S - 3600),
        ("2026-01-01T01:00:00+01:00", NOW_S),
        ("2026-01-01", NOW_S),
        ("2025-12-31", NOW_S - 86_400),
    ],
)
def test_a_time_is_absolute_or_relative(text: str, at_s: float) -> None:
    assert instant("--to", text, NOW_S) == at_s


@pytest.mark.parametrize("text", ["yesterday", "7d", "-7", "2026-01-01T00:00:00", "2026-02-30", "20260101", "", "-7dd"])
def test_an_invalid_time_or_one_without_zone_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(
        HistoryError, match=r"^--to: expected a date, a time with its zone such as 2026-11-14T08:00:00Z,"
    ):
        instant("--to", text, NOW_S)


@pytest.mark.parametrize("text", ["-999999w", f"-{'9' * 400}w", "0001-01-01T00:00:00Z", "9999-12-31T23:00:00-09:00"])
def test_a_time_outside_the_calendar_is_refused_with_its_option(text: str) -> None:
    with pytest.raises(HistoryError, match=r"^--from: expected a time in the years 1970 to 9999, got "):
        instant("--from", text, NOW_S)


def test_ticks_are_whole_lie_within_the_times_and_never_in_the_future() -> None:
    ticks = ticks_of(NOW_S - 100, NOW_S + 10_000, 15, NOW_S + 7)

    assert (ticks[0], ticks[-1], ticks.step) == (NOW_S - 90, NOW_S, 15)


@pytest.mark.parametrize(
    ("start_s", "end_s", "fault"),
    [
        pytest.param(NOW_S, NOW_S - 3600, "--from is after --to: 2026-01-01T00:00:00Z is later", id="from after to"),
        pytest.param(NOW_S + 3600, NOW_S + 7200, "fewer than two ticks", id="in the future"),
        pytest.param(NOW_S - 90 * 86_400, NOW_S, "more than 200000: read 34 days", id="too long"),
    ],
)
def test_a_time_without_ticks_or_with_too_many_is_refused(start_s: float, end_s: float, fault: str) -> None:
    with pytest.raises(HistoryError, match=fault):
        ticks_of(start_s, end_s, 15, NOW_S)


def test_every_tick_becomes_one_sample_of_all_workloads() -> None:
    past = past_of(steady)

    assert [seen.at_s for seen in past.samples] == list(TICKS)
    assert past.workloads == ("shop/carts", "shop/orders")
    assert past.samples[5].whole("ready_workers").tolist() == [3.0, 3.0]
    assert past.cut == ""


def test_a_long_period_is_read_in_adjacent_pieces() -> None:
    source = FakeSource(steady)
    ticks = range(0, 15 * (2 * CHUNK_TICKS + 10), 15)
    shares: list[float] = []

    past = read(CONFIG, ticks, opener=lambda _, name: source, progress=shares.append)

    edge = 15 * CHUNK_TICKS
    assert source.calls == [(0, edge - 15), (edge, 2 * edge - 15), (2 * edge, ticks[-1])]
    assert len(past.samples) == len(ticks)
    assert shares[-1] == 1
    assert source.closed


def test_a_refused_range_is_read_again_in_halves() -> None:
    def picky(start_s: int, end_s: int, step_s: int) -> list[Row]:
        if (end_s - start_s) // step_s >= 150:
            raise SourceError("main", "422: query processing would load too many samples into memory")
        return steady(start_s, end_s, step_s)

    assert len(past_of(picky).samples) == len(TICKS)


def test_a_source_that_fails_midway_costs_only_later_samples() -> None:
    ticks = range(0, 15 * 3 * CHUNK_TICKS, 15)

    def dying(start_s: int, end_s: int, step_s: int) -> list[Row]:
        if end_s >= ticks[2 * CHUNK_TICKS]:
            raise SourceError("main", "connection refused")
        return steady(start_s, end_s, step_s)

    past = past_of(dying, ticks)

    assert len(past.samples) == 2 * CHUNK_TICKS
    assert past.ticks == ticks[: 2 * CHUNK_TICKS]
    assert past.cut.startswith("main: connection refused; the history ends at 1970-01-01T11:59:45Z")


def test_sources_without_past_values_are_named_and_not_read() -> None:
    opened: list[str] = []

    def opener(_: Config, name: str) -> FakeSource:
        opened.append(name)
        return FakeSource(steady)

    past = read(CONFIG, TICKS, opener=opener)

    assert opened == ["main"]
    assert past.notes == ("broker (kafka) stores no past values: its signals are not in the report",)


def test_a_source_that_the_chosen_workload_does_not_read_is_neither_named_nor_opened() -> None:
    unread = TEXT.replace("sources:\n", 'sources:\n  other: {kind: trace, url: "http://t.test"}\n')
    opened: list[str] = []

    def opener(_: Config, name: str) -> FakeSource:
        opened.append(name)
        return FakeSource(lambda *_: [])

    with pytest.raises(HistoryError) as error:
        read(configuration.parse(unread, "test"), TICKS, ("shop/carts",), opener=opener)
    assert opened == ["main"]
    assert "broker" not in str(error.value)


BROKER_ALONE = """
sources: {broker: {kind: kafka, bootstrap_servers: "k.test:9092"}}
workloads: [{namespace: shop, name: orders, read: [{source: broker, group: orders, topics: [orders]}]}]
pipeline: {checkpoint: /tmp/none}
"""
UNREAD_PROMETHEUS = BROKER_ALONE.replace("sources: {", 'sources: {main: {kind: prometheus, url: "http://p.test"}, ')


@pytest.mark.parametrize(
    "text", [BROKER_ALONE, UNREAD_PROMETHEUS], ids=["no Prometheus", "a Prometheus that is not read"]
)
def test_workloads_without_a_past_are_refused_with_advice_before_reading(text: str) -> None:
    source = FakeSource(steady)

    with pytest.raises(
        HistoryError, match=r"^shop/orders: no source in `read` stores .* of kube-state-metrics, and name"
    ):
        read(configuration.parse(text, "test"), TICKS, opener=lambda _, name: source)

    assert source.calls == []


def test_a_workload_without_a_past_beside_another_is_named_with_advice() -> None:
    broker = "  - {namespace: shop, name: bills, read: [{source: broker, group: bills, topics: [bills]}]}\npipeline:"
    past = past_of(steady, config=configuration.parse(TEXT.replace("pipeline:", broker), "test"))

    assert past.workloads == ("shop/carts", "shop/orders")
    assert past.notes[-1].startswith("shop/bills: no source in `read` stores past values; add a Prometheus")


def test_fleets_without_a_past_are_refused_with_advice() -> None:
    text = BROKER_ALONE.replace(
        "workloads: [{namespace: shop, name: orders, read: [{source: broker, group: orders, topics: [orders]}]}]",
        'fleets: [{name: reports, source: broker, groups: "report-.*"}]',
    )
    with pytest.raises(HistoryError, match=r"^fleets: no source in `read` stores past values; add a Prometheus"):
        past_of(steady, config=configuration.parse(text, "test"))


def test_an_empty_history_is_reported_with_the_sources_messages() -> None:
    def silent(start_s: int, end_s: int, step_s: int) -> list[Row]:
        return [Row(end_s, "shop/orders", "", FAULT, 0.0, 'no series match {app="orders"}')]

    with pytest.raises(HistoryError, match=r"no sample of any workload from 2025-12-31T23:00:00Z .*no series match"):
        past_of(silent)


def test_a_source_that_never_answers_is_reported() -> None:
    def dead(start_s: int, end_s: int, step_s: int) -> list[Row]:
        raise SourceError("main", "connection refused")

    with pytest.raises(HistoryError, match=r"no sample of any workload.*main: connection refused") as error:
        past_of(dead)
    assert "the history ends" not in str(error.value)


def test_too_long_a_history_is_refused() -> None:
    class Endless(FakeSource):
        def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
            one = table_of([Row(end_s, "shop/orders", "", "backlog_records", 1.0)])
            return one.take(np.zeros(history.MOST_VALUES + 1, np.int64))

    with pytest.raises(HistoryError, match=rf"more than {history.MOST_VALUES} values up to .*--workload"):
        read(CONFIG, TICKS, (), opener=lambda _, name: Endless(steady))


def test_faults_are_counted_and_reported_once() -> None:
    def faulty(start_s: int, end_s: int, step_s: int) -> list[Row]:
        own = [Row(at_s, "shop/orders", "", FAULT, 0.0, "depth is NaN") for at_s in (start_s, end_s)]
        return [*steady(start_s, end_s, step_s), *own, Row(end_s, EVERY, "", FAULT, 0.0, "slow")]

    past = past_of(faulty)

    assert past.notes[1:] == ("shop/orders: depth is NaN (2 times)", "slow")
    assert past.samples[0].faults == {"shop/orders": "depth is NaN"}


def test_only_the_named_workloads_are_read() -> None:
    requested: list[Mapping[str, object]] = []

    def opener(config: Config, name: str) -> FakeSource:
        requested.extend({"name": workload.name} for workload in config.workloads)
        return FakeSource(steady)

    past = read(CONFIG, TICKS, ("shop/orders",), opener=opener)

    assert requested == [{"name": "orders"}]
    assert past.workloads == ("shop/orders",)


def test_an_unknown_name_is_reported_with_the_known_ones() -> None:
    with pytest.raises(
        HistoryError, match=r"shop/order is not in the configuration, which has shop/carts, shop/orders"
    ):
        select_workloads(CONFIG, ("shop/order",))


def test_a_configured_workload_without_a_sample_is_named() -> None:
    def half(start_s: int, end_s: int, step_s: int) -> list[Row]:
        return [row for row in steady(start_s, end_s, step_s) if row.workload == "shop/carts"]

    assert past_of(half).notes[1:] == (
        "shop/orders: no sample from 2025-12-31T23:00:00Z to 2026-01-01T00:00:00Z, so it is not in the report; "
        "did it have another name or other labels then?",
    )
    assert past_of(half, TICKS, "shop/carts").notes == ()


def test_an_unknown_name_is_reported_where_no_fleet_has_a_history() -> None:
    fleets = f'{TEXT}fleets: [{{name: reports, source: broker, groups: "report-.*"}}]\n'
    with pytest.raises(HistoryError, match=r"shop/order is not in the configuration, .*; its fleets have no history$"):
        select_workloads(configuration.parse(fleets, "test"), ("shop/order",))


def test_a_mistyped_name_that_a_fleet_might_have_found_is_named() -> None:
    fleets = f"{TEXT}fleets: [{{name: reports, source: main, preset: kafka-exporter}}]\n"
    found = past_of(steady, TICKS, "shop/carts", "shop/order", config=configuration.parse(fleets, "test"))

    assert [result.partition(":")[0] for result in found.notes] == ["shop/order"]


def test_ranges_get_more_time_than_ticks() -> None:
    deadlines: list[float] = []

    def opener(config: Config, name: str) -> FakeSource:
        deadlines.append(config.sources[name].deadline_s)
        return FakeSource(steady)

    read(CONFIG, TICKS, opener=opener)

    assert deadlines == [60.0]


def test_a_recorded_file_is_a_history_like_any_other(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(lines_of(steady(int(NOW_S) - 600, int(NOW_S), 15)))
    config = configuration.parse(
        f"sources: {{t: {{kind: trace, file: {file}}}}}\n"
        "workloads: [{namespace: shop, name: orders, read: [{source: t}]}]\npipeline: {checkpoint: x}\n",
        "test",
    )
    past = read(config, ticks_of(NOW_S - 1200, NOW_S, 15, NOW_S), ("shop/orders",))

    assert len(past.samples) == 81
    assert past.samples[0].workloads == ()
    assert past.samples[-1].stage("backlog_records").tolist() == [7.0]
