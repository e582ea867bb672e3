"""The stream gives what a plain fold gives, whatever way the ticks came."""

import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest
from pipeline_stream import FIRST_TICK_WITHIN_S, OPENER, RULES, Stream, config_of, decisions, plain_fold, spans
from pyspark.errors import IllegalArgumentException
from pyspark.sql.streaming.query import StreamingQuery

from adapter.core.decisions import Reason
from adapter.core.rule_book import RuleBook
from adapter.errors import JvmError
from adapter.pipeline.checkpoint import claim
from adapter.pipeline.job import RestartPolicy, StreamingJob
from adapter.pipeline.query import QueryPlan
from adapter.pipeline.session import Session
from adapter.serving.snapshots.snapshot import Snapshot

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def test_recorded_samples_through_the_stream_equal_the_plain_fold_bit_for_bit(spark: Session, stream: Stream) -> None:
    with stream.running(spark) as next_snapshot:
        for _ in range(4):
            newest = next_snapshot()
    calls = spans(stream.folder)
    expected = plain_fold(calls[0][0], int(newest.at_s))
    assert len(decisions(newest)) == 40
    assert any(decision.required_workers is not None for decision in decisions(newest))
    for snapshot in stream.published:
        assert decisions(snapshot) == expected[int(snapshot.at_s)]

    # Ticks that were missed (the warm-up, then those of the slow first batch) came as one batch, none twice. How many
    # they are is the wall clock's affair, which may be set back between the two looks at it; test_ticks counts them.
    assert calls[0][1] - calls[0][0] > 1
    assert all(later[0] == earlier[1] + 1 for earlier, later in pairwise(calls))


@pytest.mark.full  # test_kill has the same for a pipeline that is killed
def test_a_stopped_stream_continues_from_its_checkpoint(spark: Session, stream: Stream) -> None:
    with stream.running(spark) as next_snapshot:
        next_snapshot()
        next_snapshot()
    with stream.running(spark) as next_snapshot:
        newest = next_snapshot()
        newest = next_snapshot()
    calls = spans(stream.folder)
    assert decisions(newest) == plain_fold(calls[0][0], int(newest.at_s))[int(newest.at_s)]


def test_a_dead_or_hanging_source_loses_its_samples_and_not_the_tick(spark: Session, tmp_path: Path) -> None:
    names = ("recorded", "broken", "dead", "hanging")
    plan = QueryPlan(config=config_of(tmp_path, names), rules=rules_of(*names[1:]), opener=OPENER)
    stream = Stream(tmp_path, plan)
    with stream.running(spark) as next_snapshot:
        first, second = next_snapshot(), next_snapshot()
    assert second.at_s > first.at_s
    by_name = {decision.workload: decision for decision in decisions(second)}
    assert by_name["shop/orders-3"].sample_age_s == 0
    for name, cause in {
        "shop/of-dead": "dead: connection refused",
        "shop/of-broken": "broken: unexpected ZeroDivisionError: a bug",
        "shop/of-hanging": "hanging: ",
    }.items():
        assert by_name[name].fault.startswith(cause)
        assert by_name[name].reason == Reason.NO_DATA
        assert by_name[name].required_workers is None
    assert "no answer" in by_name["shop/of-hanging"].fault


def rules_of(*names: str) -> RuleBook:
    return RuleBook(by_workload={f"shop/of-{name}": RULES.by_fleet[0] for name in names}, by_fleet=RULES.by_fleet)


def test_a_query_that_fails_in_publish_is_restarted_and_loses_no_tick(
    spark: Session, stream: Stream, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail_once(snapshot: Snapshot) -> None:
        stream.publish(snapshot)
        if len(stream.published) == 2:
            raise OSError("no space left on device")

    policy = RestartPolicy(first_backoff_s=0.1)
    job = StreamingJob(stream.plan.config, RULES, fail_once, opener=OPENER, policy=policy)
    job.start(threading.Event())
    try:
        snapshots = [stream.arrived.get(timeout=FIRST_TICK_WITHIN_S) for _ in range(4)]
    finally:
        job.stop()
    assert job.restarts == 1
    assert "OSError: no space left on device" in capsys.readouterr().out
    # State is exactly once, publishing at least once: what failed comes again, with the same numbers.
    assert snapshots[2] == snapshots[1]
    first = spans(stream.folder)[0][0]
    newest = snapshots[-1]
    assert decisions(newest) == plain_fold(first, int(newest.at_s))[int(newest.at_s)]


def run_until_a_tick(job: StreamingJob, stream: Stream) -> None:
    job.start(threading.Event())
    try:
        stream.arrived.get(timeout=FIRST_TICK_WITHIN_S)
    finally:
        job.stop()


def failing(error: Exception, times: int) -> property:
    """A progress of a query whose first readings fail."""
    errors = [error] * times

    def progress(query: StreamingQuery) -> None:
        if errors:
            raise errors.pop()

    return property(progress)


def test_an_exception_of_spark_in_its_progress_restarts_the_query(
    spark: Session, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StreamingQuery, "lastProgress", failing(IllegalArgumentException("no class"), times=1))
    policy = RestartPolicy(first_backoff_s=0.1)
    job = StreamingJob(stream.plan.config, RULES, stream.publish, opener=OPENER, policy=policy)
    run_until_a_tick(job, stream)
    assert job.restarts == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_supervisor_that_fails_ends_the_process_and_releases_the_checkpoint(
    spark: Session, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StreamingQuery, "lastProgress", failing(KeyError("durationMs"), times=1))
    job, stop = StreamingJob(stream.plan.config, RULES, stream.publish, opener=OPENER), threading.Event()
    job.start(stop)
    assert stop.wait(FIRST_TICK_WITHIN_S)
    with pytest.raises(JvmError, match="the pipeline ends after an unexpected KeyError: 'durationMs'"):
        job.stop()
    claim(stream.plan.config, FIRST_TICK_WITHIN_S).close()


def test_a_query_that_stalls_is_restarted_with_more_time_until_it_publishes(
    spark: Session, stream: Stream, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = RestartPolicy(first_backoff_s=0.1, stalled_after_s=0.5, stalled_ticks=0, starts=7)
    job = StreamingJob(stream.plan.config, RULES, stream.publish, opener=OPENER, policy=policy)
    run_until_a_tick(job, stream)
    assert job.restarts > 0
    assert "no tick was published" in capsys.readouterr().out


def test_a_query_that_never_begins_a_batch_in_time_does_not_cost_the_stream(spark: Session, stream: Stream) -> None:
    policy = RestartPolicy(first_backoff_s=0.05, most_backoff_s=0.05, stalled_after_s=0.05, stalled_ticks=0, starts=1)
    job = StreamingJob(stream.plan.config, RULES, stream.publish, opener=OPENER, policy=policy)
    job.start(threading.Event())
    until_s = time.monotonic() + FIRST_TICK_WITHIN_S
    while job.restarts < 4 and time.monotonic() < until_s:
        time.sleep(0.05)
    job.stop()
    assert job.restarts >= 4
    assert not (Path(stream.plan.config.pipeline.checkpoint) / "stream.bad").exists()
