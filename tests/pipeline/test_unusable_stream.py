"""A stream that cannot be continued is set aside, and the pipeline starts with an empty one."""

import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

import pytest
from pipeline_stream import FIRST_TICK_WITHIN_S, OPENER, RULES, Stream, decisions, plain_fold, spans

from adapter.pipeline.checkpoint import claim
from adapter.pipeline.job import RestartPolicy, StreamingJob
from adapter.pipeline.session import Session

YEAR_S = 365 * 86_400
full = pytest.mark.full

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def numbered(folder: Path) -> list[Path]:
    """Spark's files of batches, oldest first."""
    return sorted(folder.glob("[0-9]*"), key=lambda file: int(file.name))


def cut(files: str, kept_ratio: float) -> Callable[[Path], None]:
    """Truncates files of a stream."""

    def damage(folder: Path) -> None:
        for file in folder.glob(files):
            os.truncate(file, int(file.stat().st_size * kept_ratio))

    return damage


def move_offsets_ahead(folder: Path) -> None:
    committed = len(numbered(folder / "commits"))
    for file in numbered(folder / "offsets"):
        ahead = re.sub(r'"at": ?(\d+)', lambda found: f'"at": {int(found[1]) + YEAR_S}', file.read_text())
        file.with_name(f".{file.name}.crc").unlink()
        if int(file.name) < committed:
            file.write_text(ahead)
        else:  # Spark would repeat this batch first
            file.unlink()


def rename_query(folder: Path) -> None:
    (folder / ".metadata.crc").unlink()
    (folder / "metadata").write_text('{"id":"none"}')


def stop_in_the_first_write(folder: Path) -> None:
    """Leaves the stream as a JVM that ended while it wrote the offsets of its first batch."""
    for logged in ("commits", "state"):
        shutil.rmtree(folder / logged)
    for file in (folder / "offsets").iterdir():
        file.unlink()
    (folder / "offsets" / ".0.a1b2c3.tmp").touch()


def run(stream: Stream, ticks: int) -> StreamingJob:
    """Run a job until it has published some ticks."""
    stream.arrived = SimpleQueue()  # without ticks of an earlier job
    policy = RestartPolicy(first_backoff_s=0.1, stalled_after_s=FIRST_TICK_WITHIN_S, stream_is_lost_after_s=0.0)
    job = StreamingJob(stream.plan.config, RULES, stream.publish, opener=OPENER, policy=policy)
    job.start(threading.Event())
    try:
        for _ in range(ticks):
            stream.arrived.get(timeout=FIRST_TICK_WITHIN_S)
    finally:
        job.stop()
    return job


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        pytest.param(cut("offsets/[0-9]*", 0), "Incomplete log file", id="empty offsets", marks=full),
        pytest.param(cut("offsets/[0-9]*", 0.5), "Unexpected end-of-input", id="truncated offsets", marks=full),
        pytest.param(cut("commits/[0-9]*", 0.5), "Unexpected end-of-input", id="truncated commits", marks=full),
        pytest.param(cut("metadata", 0), "No content to map due to end-of-input", id="empty metadata", marks=full),
        pytest.param(rename_query, "Invalid UUID string: none", id="metadata of no query", marks=full),
        pytest.param(cut("state/0/0/[0-9]*", 0.5), "[CANNOT_LOAD_STATE_STORE", id="truncated state"),
        pytest.param(stop_in_the_first_write, "should be empty on batch 0", id="an unfinished first write"),
        pytest.param(move_offsets_ahead, "the newest tick is of 20", id="a tick of a clock that was a year ahead"),
    ],
)
def test_a_stream_that_cannot_be_continued_is_set_aside_after_three_failures(
    spark: Session,
    stream: Stream,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[Path], None],
    cause: str,
) -> None:
    run(stream, ticks=2)  # so the first batch is committed
    folder = Path(stream.plan.config.pipeline.checkpoint)
    damage(folder / "stream")
    capsys.readouterr()
    assert run(stream, ticks=1).restarts == RestartPolicy().starts
    assert stream.published[-1].at_s <= time.time()
    logged = capsys.readouterr().out
    assert cause in logged
    assert "all workloads warm up" in logged
    assert str(folder / "stream.bad") in logged
    assert (folder / "stream.bad" / "offsets").is_dir()


def test_a_stream_that_was_moved_away_continues_when_the_change_is_undone(spark: Session, stream: Stream) -> None:
    run(stream, ticks=2)
    begin_s, config = spans(stream.folder)[0][0], stream.plan.config
    claim(config.model_copy(update={"timing": config.timing.model_copy(update={"tick_s": 2})})).close()
    assert not (Path(config.pipeline.checkpoint) / "stream").exists()
    assert run(stream, ticks=1).restarts == 0
    last = stream.published[-1]
    assert decisions(last) == plain_fold(begin_s, int(last.at_s))[int(last.at_s)]


def test_failures_that_may_pass_within_minutes_do_not_cost_the_stream(spark: Session, stream: Stream) -> None:
    run(stream, ticks=2)
    folder = Path(stream.plan.config.pipeline.checkpoint)
    move_offsets_ahead(folder / "stream")
    policy = RestartPolicy(first_backoff_s=0.05, most_backoff_s=0.05, stalled_after_s=FIRST_TICK_WITHIN_S)
    job = StreamingJob(stream.plan.config, RULES, stream.publish, opener=OPENER, policy=policy)
    job.start(threading.Event())
    until_s = time.monotonic() + FIRST_TICK_WITHIN_S
    while job.restarts < 4 and time.monotonic() < until_s:
        time.sleep(0.05)
    job.stop()
    assert job.restarts >= 4
    assert not (folder / "stream.bad").exists()


def test_a_batch_of_a_closed_publisher_is_repeated_with_its_state(spark: Session, stream: Stream) -> None:
    stream.arrived = SimpleQueue()
    policy = RestartPolicy(first_backoff_s=0.1, stalled_after_s=FIRST_TICK_WITHIN_S)
    job = StreamingJob(stream.plan.config, RULES, stream.publish, opener=OPENER, policy=policy)
    job.start(threading.Event())
    try:
        first = stream.arrived.get(timeout=FIRST_TICK_WITHIN_S)
        job.publisher.close()  # as at a stop or a restart, while the query still runs
        while job.restarts == 0:
            time.sleep(0.05)
        last = stream.arrived.get(timeout=FIRST_TICK_WITHIN_S)
    finally:
        job.stop()
    assert job.restarts == 1
    assert not (Path(stream.plan.config.pipeline.checkpoint) / "stream.bad").exists()
    begin_s = spans(stream.folder)[0][0]
    assert decisions(last) == plain_fold(begin_s, int(last.at_s))[int(last.at_s)]
    assert last.at_s > first.at_s
