import gc
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pipeline_stream import config_of
from sample_rows import Row, rows_of, table_of

from adapter.config import Config, parse
from adapter.errors import SourceError
from adapter.failure_logger import MOST_CAUSES
from adapter.pipeline.source_runner import SourceRunner, deserialize, fault_table, runner_of, serialize
from adapter.sources.precedence import ranks, workloads_of
from adapter.sources.sample_table import FAULT

TICKS = range(10, 12)
ROW = Row(11, "shop/a", "", "backlog_records", 1.0)


class GatedSource:
    """A source that answers after `free` is set; failures: the errors of its first calls, last one first."""

    opened = 0

    def __init__(self, failures: list[BaseException] | None = None) -> None:
        self.free = threading.Event()
        self.calls = 0
        self.closed = threading.Event()
        self._failures = failures or []

    def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        self.calls += 1
        if self._failures:
            raise self._failures.pop()
        self.free.wait()
        return table_of([ROW])

    def close(self) -> None:
        self.closed.set()


def runner_for(gated: GatedSource, folder: Path) -> SourceRunner:
    def open_source(config: Config, name: str) -> GatedSource:
        gated.opened += 1
        return gated

    return SourceRunner(config_of(folder, deadline_s=0.5), "recorded", open_source)


def test_a_source_that_misses_its_deadline_is_not_called_again_until_it_returns(tmp_path: Path) -> None:
    gated = GatedSource()
    source = runner_for(gated, tmp_path)
    with pytest.raises(SourceError, match="recorded: no answer within 1 s"):
        source.samples(TICKS)
    with pytest.raises(SourceError, match="recorded: still no answer"):
        source.samples(TICKS)
    assert gated.calls == 1
    gated.free.set()
    assert first_answer(source) == [ROW]
    assert gated.opened == 1


LATE = {
    "a source's own error": (SourceError("cluster", "the session has expired"), "the session has expired"),
    "another error": (ValueError("bad"), "unexpected ValueError: bad"),
}


@pytest.mark.parametrize(("error", "cause"), LATE.values(), ids=LATE)
def test_an_error_after_the_deadline_is_shown_in_the_next_tick(tmp_path: Path, error: Exception, cause: str) -> None:
    class LateSource(GatedSource):
        def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
            self.free.wait(2.5)
            raise error

    source = runner_for(LateSource(), tmp_path)
    messages = []
    while len(messages) < 5 and not (messages and "after its deadline" in messages[-1]):
        with pytest.raises(SourceError) as raised:
            source.samples(TICKS)
        messages.append(raised.value.cause)
        time.sleep(0.5)
    assert messages[-1] == f"no answer within 1 s; the last call failed after its deadline: {cause}"


def test_an_abandoned_call_does_not_repeat_the_error_of_the_call_before(tmp_path: Path) -> None:
    missed, failed = threading.Event(), threading.Event()

    class HangingSource(GatedSource):
        def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
            (self.free if failed.is_set() else missed).wait()
            failed.set()
            raise SourceError("cluster", "the session has expired")

    source = SourceRunner(
        config_of(tmp_path, deadline_s=0.5), "recorded", lambda *_: HangingSource(), abandon_after_deadlines=0
    )
    with pytest.raises(SourceError, match=r"no answer within 1 s$"):
        source.samples(TICKS)
    missed.set()
    assert failed.wait(10)
    time.sleep(1)  # until the runner has the error
    with pytest.raises(SourceError, match=r"after its deadline: the session has expired$"):
        source.samples(TICKS)
    with pytest.raises(SourceError, match=r"no answer within 1 s$"):
        source.samples(TICKS)


def first_answer(source: SourceRunner) -> list[Row]:
    """The rows of the first call that succeeds."""
    while True:
        try:
            return rows_of(source.samples(TICKS))
        except SourceError:
            pass


def test_a_call_abandoned_while_it_opens_closes_only_its_own_source(tmp_path: Path) -> None:
    late, new = GatedSource(), GatedSource()
    late.free.set()
    new.free.set()
    opening = threading.Event()

    def open_source(config: Config, name: str) -> GatedSource:
        late.opened += 1
        if late.opened > 1:
            return new
        opening.wait()
        return late

    source = SourceRunner(config_of(tmp_path, deadline_s=0.5), "recorded", open_source, abandon_after_deadlines=0)
    with pytest.raises(SourceError, match="no answer within"):
        source.samples(TICKS)
    assert rows_of(source.samples(TICKS)) == [ROW]
    opening.set()
    assert late.closed.wait(10)
    assert rows_of(source.samples(TICKS)) == [ROW]
    assert (late.calls, new.calls, new.closed.is_set()) == (0, 2, False)


def test_a_call_abandoned_while_it_reads_closes_its_source_when_it_returns(tmp_path: Path) -> None:
    late, new = GatedSource(), GatedSource()
    new.free.set()
    sources = [new, late]
    source = SourceRunner(
        config_of(tmp_path, deadline_s=0.5), "recorded", lambda config, name: sources.pop(), abandon_after_deadlines=0
    )
    with pytest.raises(SourceError, match="no answer within"):
        source.samples(TICKS)
    assert rows_of(source.samples(TICKS)) == [ROW]
    assert not late.closed.is_set(), "closing what is in use may crash"
    late.free.set()
    assert late.closed.wait(10)
    assert not new.closed.is_set()


@pytest.mark.parametrize("error", [KeyError("partition"), TimeoutError("of the client library")], ids=repr)
def test_after_an_unexpected_error_the_source_is_opened_again(error: Exception, tmp_path: Path) -> None:
    gated = GatedSource([error])
    gated.free.set()
    source = runner_for(gated, tmp_path)
    with pytest.raises(SourceError, match=f"recorded: unexpected {type(error).__name__}: {error}"):
        source.samples(TICKS)
    assert gated.closed.wait(10)
    assert rows_of(source.samples(TICKS)) == [ROW]
    assert gated.opened == 2


def test_the_traceback_of_an_unexpected_error_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    gated = GatedSource([RuntimeError("a bug"), RuntimeError("a bug")])
    gated.free.set()
    source = runner_for(gated, tmp_path)
    for _ in range(2):
        with pytest.raises(SourceError, match="a bug"):
            source.samples(TICKS)
    (line,) = caplog.records
    assert line.message.startswith("source recorded failed; this cause is logged once\nTraceback")
    assert line.message.endswith("RuntimeError: a bug\n")


def test_a_source_with_ever_new_errors_hides_no_traceback_of_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    busy, other = GatedSource([RuntimeError(f"at offset {at}") for at in range(20)]), GatedSource([KeyError("a bug")])
    for gated, calls in ((busy, 20), (other, 1)):
        source = runner_for(gated, tmp_path)
        for _ in range(calls):
            with pytest.raises(SourceError):
                source.samples(TICKS)
    assert [line.message.splitlines()[-1] for line in caplog.records[MOST_CAUSES:]] == ["KeyError: 'a bug'"]


def test_the_error_of_a_source_is_passed_on(tmp_path: Path) -> None:
    gated = GatedSource([SourceError("recorded", "503 Service Unavailable")])
    with pytest.raises(SourceError, match=r"^recorded: 503 Service Unavailable$"):
        runner_for(gated, tmp_path).samples(TICKS)
    assert not gated.closed.is_set()


@pytest.fixture
def no_gc() -> Iterator[None]:
    """No garbage collection: only what nothing refers to is freed."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("error", [KeyError, SourceError])
def test_a_source_that_raised_is_freed_when_it_is_dropped(error: type[Exception], tmp_path: Path, no_gc: None) -> None:
    opened = [GatedSource([error("recorded", "refused")])]
    freed = threading.Event()
    weakref.finalize(opened[0], freed.set)
    source = SourceRunner(config_of(tmp_path), "recorded", lambda config, name: opened.pop())
    with suppress(SourceError):
        source.samples(TICKS)
    source.close()
    assert freed.wait(5)


def test_a_source_stays_open_until_the_configuration_changes(tmp_path: Path) -> None:
    opener = "recorded_source:open_source"
    before = config_of(tmp_path)
    first = runner_of(serialize(before), opener, "recorded")
    assert runner_of(serialize(before), opener, "recorded") is first
    after = config_of(tmp_path, timing={"tick_s": 2})
    assert runner_of(serialize(after), opener, "recorded") is not first


def test_the_fault_of_a_source_concerns_every_tick_and_its_workloads(tmp_path: Path) -> None:
    config = config_of(tmp_path, ("recorded", "dead"))
    found = rows_of(fault_table(workloads_of(config, "dead"), TICKS, "dead: refused"))
    assert {(row.at_s, row.workload) for row in found} == {(t, w) for t in TICKS for w in ("shop/of-dead",)}
    assert {(row.signal, row.value, row.text) for row in found} == {(FAULT, 0.0, "dead: refused")}


def test_the_prometheus_behind_pravega_belongs_to_the_workloads_of_its_streams() -> None:
    config = parse(PRAVEGA, "pravega")
    assert workloads_of(config, "rates") == ["shop/orders"]
    assert ranks(config, "pravega") == {"shop/orders": 1}
    assert ranks(config, "rates") == {"shop/orders": 2}
    assert workloads_of(config, "other") == []


def test_a_source_concerns_workloads_that_do_not_read_it_only_if_they_may_be_discovered_in_it() -> None:
    config = parse(f"{PRAVEGA}fleets: [{{name: all, source: other, preset: kminion}}]", "pravega")
    assert workloads_of(config, "other") == ["*"]
    assert workloads_of(config, "rates") == ["shop/orders"]
    assert workloads_of(config, "cluster") == ["*", "shop/orders"]


PRAVEGA = """
sources:
  pravega: {kind: pravega, url: "http://pravega:10080", prometheus: rates}
  rates: {kind: prometheus, url: "http://rates:9090"}
  other: {kind: prometheus, url: "http://other:9090"}
  cluster: {kind: kubernetes}
workloads: [{namespace: shop, name: orders, read: [{source: pravega, scope: shop, stream: orders}]}]
pipeline: {checkpoint: /c}
"""


EVERYTHING = """
sources: {broker: {kind: kafka, bootstrap_servers: "kafka:9092"}, cluster: {kind: kubernetes}}
workloads:
  - name: orders
    read: [{source: broker, group: orders, topics: [orders]}]
    rules: {policy: netflix, down_window_s: 120}
    pause: {direction: up, until: 2026-12-24T06:00:00Z}
    excluded_periods: [{days: [mon], from: "22:00", to: "06:05", zone: Europe/Berlin}]
failover: true
excluded_periods: [{from: "1:00", to: "02:00"}]
pipeline: {checkpoint: /var/lib/checkpoint}
"""


def test_a_serialized_configuration_is_complete() -> None:
    config = parse(EVERYTHING, "everything")
    assert deserialize(serialize(config)) == config
