"""The presets of Pravega on answers of a real Prometheus."""

import gzip
import re
from pathlib import Path

import pytest
from pravega_fleet import ANSWERS, CONFIG
from recorded_tick import read_tick, values
from sample_rows import Row

from adapter.sources import needs, presets
from adapter.sources.prometheus_plan import check

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def tick() -> list[Row]:
    return read_tick(CONFIG, ANSWERS)


def test_s2_19_the_unread_bytes_of_a_reader_group_count_once(tick: list[Row]) -> None:
    # The last scrape was up to two seconds ago.
    assert values(tick, "shop/reader")["backlog_records"] == pytest.approx(5000 + 100 * 93 + 40, abs=200)


def test_the_rates_of_a_stream_in_bytes_belong_to_the_job_that_reads_it(tick: list[Row]) -> None:
    found = values(tick, "shop/reader")
    assert found["input_rate_records_per_s"] == pytest.approx(1000, rel=0.1)
    assert found["throughput_records_per_s"] == pytest.approx(900, rel=0.1)
    assert found["throughput_records_per_s"] < found["input_rate_records_per_s"]


def test_what_flink_alone_knows_comes_beside(tick: list[Row]) -> None:
    found = values(tick, "shop/reader")
    assert (found["workers"], found["running"], found["restarts"]) == (2, 1, 0)
    assert found["utilization_ratio"] == pytest.approx(0.7)


def test_t4_a_split_is_no_counter_reset_and_the_segments_of_two_controllers_count_once(tick: list[Row]) -> None:
    found = values(tick, "streams/clicks")
    assert found["partitions"] == 2
    assert found["input_rate_records_per_s"] == pytest.approx(1000, rel=0.1)


def test_a_stream_of_the_same_name_in_another_scope_is_not_counted(tick: list[Row]) -> None:
    assert {row.workload for row in tick} == {"shop/reader", "streams/clicks"}


def test_the_job_lacks_nothing_that_its_policy_needs() -> None:
    assert [*needs.check(CONFIG), *check(CONFIG)] == []


def test_every_series_of_the_stream_exists_on_a_real_pravega() -> None:
    text = gzip.decompress((DATA / "scrapes/pravega-0.13.0-standalone-after-split.prom.gz").read_bytes()).decode()
    scraped = {line.partition("{")[0] for line in text.splitlines() if not line.startswith("#")}
    named = {name for query in presets.load("pravega").signals.values() for name in re.findall(r"pravega_\w+", query)}
    assert len(named) == 3
    assert named <= scraped
