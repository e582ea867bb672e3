import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import structlog
from builders import assemble
from pipeline_stream import config_of

from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.state import EMPTY
from adapter.pipeline.fold import fold_ticks
from adapter.pipeline.packing import pack_decisions
from adapter.pipeline.publish import ClosedError, Publisher
from adapter.pipeline.shards import shard_of
from adapter.serving.snapshots.snapshot import Snapshot, decode, encode

BOOK = RuleBook(
    by_workload={"shop/of-dead": Rules(error_after_s=90)}, by_fleet=(Rules(error_after_s=120, rate_window_s=30),)
)


class Batch:
    """What `foreachBatch` gives, as far as the publisher uses it."""

    def __init__(self, *ticks: int, faults: int = 0) -> None:
        self.rows: list[dict[str, Any]] = [
            {"shard": 12, "at": at_s, "decisions": packed(at_s), "faults": faults} for at_s in ticks
        ]

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        return pa.Table.from_pylist(self.rows)


class Hanging(Batch):
    """A batch that Spark computes until a test releases it."""

    def __init__(self, *ticks: int) -> None:
        super().__init__(*ticks)
        self.begun = threading.Event()
        self.free = threading.Event()

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        self.begun.set()
        self.free.wait()
        return super().toArrow()


def packed(at_s: int, book: RuleBook = BOOK) -> bytes:
    found = [("shop/found", "map", "backlog_records", 5.0), ("shop/found", "", "fleet", 0.0)] if book.by_fleet else []
    after = fold_ticks(EMPTY, [assemble(at_s, found)], book)
    assert after.decisions is not None
    return pack_decisions(after.decisions)


@pytest.fixture
def published() -> list[Snapshot]:
    return []


@pytest.fixture
def publisher(tmp_path: Path, published: list[Snapshot]) -> Any:
    fleets = [{"name": "flink", "source": "recorded", "preset": "flink", "labels": {"engine": "flink"}}]
    workloads = [{"namespace": "shop", "name": "of-dead", "labels": {"team": "a"}, "read": [{"source": "recorded"}]}]
    config = config_of(tmp_path, workloads=workloads, fleets=fleets)
    return Publisher(config, BOOK, published.append)


def test_the_newest_tick_of_a_batch_is_published(publisher: Any, published: list[Snapshot]) -> None:
    publisher(Batch(30, 45), 7)
    assert [snapshot.at_s for snapshot in published] == [45]
    assert publisher.tick_at_s == 45
    assert decode(encode(published[0])) == published[0]


def test_publishing_twice_changes_nothing(publisher: Any, published: list[Snapshot]) -> None:
    for ticks in [(30,), (30,), (15,)]:
        publisher(Batch(*ticks), 7)
    assert [snapshot.at_s for snapshot in published] == [30]


def test_a_new_stream_may_publish_ticks_before_the_newest_of_the_last_one(
    publisher: Any, published: list[Snapshot]
) -> None:
    publisher(Batch(9_000), 7)
    publisher.forget_tick()
    publisher(Batch(30), 0)
    assert [snapshot.at_s for snapshot in published] == [9_000, 30]


def test_a_shard_without_decisions_does_not_block_the_others(publisher: Any, published: list[Snapshot]) -> None:
    batch = Batch(30)
    batch.rows.append({"shard": 5, "at": 30, "decisions": None, "faults": 1})
    publisher(batch, 7)
    assert len(published[0].entries) == 2
    assert publisher.failed_shards == 1


def test_a_batch_without_decisions_is_an_empty_snapshot(publisher: Any, published: list[Snapshot]) -> None:
    batch = Batch(30)
    batch.rows[0]["decisions"] = None
    publisher(batch, 7)
    assert len(published[0].entries) == 0


def test_a_closed_publisher_refuses_a_batch_until_it_is_opened_again(publisher: Any, published: list[Snapshot]) -> None:
    publisher.close()
    with pytest.raises(ClosedError):
        publisher(Batch(30), 7)
    publisher.open()
    publisher(Batch(30), 7)
    assert [snapshot.at_s for snapshot in published] == [30]


def test_a_tick_whose_publication_failed_is_published_when_it_is_repeated(tmp_path: Path) -> None:
    published: list[Snapshot] = []

    def fail_once(snapshot: Snapshot) -> None:
        published.append(snapshot)
        if len(published) == 1:
            raise OSError("disk full")

    publisher: Any = Publisher(config_of(tmp_path), BOOK, fail_once)
    with pytest.raises(OSError, match="disk full"):
        publisher(Batch(30), 7)
    publisher(Batch(30), 7)
    assert len(published) == 2


def test_labels_come_from_the_workload_or_from_its_fleet(publisher: Any, published: list[Snapshot]) -> None:
    publisher(Batch(30), 7)
    labels = {entry.decision.workload: entry.labels for entry in published[0].entries}
    assert labels == {
        "shop/found": {"engine": "flink"},
        "shop/of-dead": {"team": "a"},
    }
    assert [stage.stage for entry in published[0].entries for stage in entry.stages] == ["map"]


def test_a_workload_has_the_age_limit_and_the_window_of_its_rules(publisher: Any, published: list[Snapshot]) -> None:
    publisher(Batch(30), 7)
    found = {entry.decision.workload: (entry.error_after_s, entry.window_s) for entry in published[0].entries}
    assert found == {"shop/found": (120, 30), "shop/of-dead": (90, 60)}
    assert (published[0].error_after_s, published[0].tick_s) == (120, 1)


def test_a_batch_that_hangs_does_not_block_close(publisher: Any, published: list[Snapshot]) -> None:
    batch, refused = Hanging(30), []

    def compute() -> None:
        try:
            publisher(batch, 7)
        except ClosedError as error:
            refused.append(error)

    computing = threading.Thread(target=compute, daemon=True)
    computing.start()
    assert batch.begun.wait(10)
    closing = threading.Thread(target=publisher.close, args=(0.0,), daemon=True)
    closing.start()
    closing.join(10)
    assert not closing.is_alive()
    batch.free.set()
    computing.join(10)
    assert refused, "Spark repeats the batch"
    assert published == [], "what comes after the end is not published"
    publisher.open()
    publisher(Batch(45), 8)
    assert [snapshot.at_s for snapshot in published] == [45]


def test_close_waits_for_a_batch_in_progress(publisher: Any, published: list[Snapshot]) -> None:
    batch = Hanging(30)
    computing = threading.Thread(target=publisher, args=(batch, 7), daemon=True)
    computing.start()
    assert batch.begun.wait(10)
    closing = threading.Thread(target=publisher.close, args=(60.0,), daemon=True)
    closing.start()
    batch.free.set()
    closing.join(10)
    assert not closing.is_alive()
    assert [snapshot.at_s for snapshot in published] == [30]


def test_shards_with_a_failed_tick_are_counted(publisher: Any, published: list[Snapshot]) -> None:
    publisher(Batch(30, faults=2), 7)
    assert publisher.failed_shards == 1
    publisher(Batch(45), 8)
    assert publisher.failed_shards == 0


def test_failed_ticks_are_logged_once_with_the_file_of_the_cause(publisher: Any, tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as logs:
        for at_s, faults in enumerate((0, 2, 2, 0, 0), start=1):
            publisher(Batch(at_s, faults=faults), at_s)
    assert [log["log_level"] for log in logs] == ["error", "info"]
    assert (logs[0]["shards"], logs[0]["cause_in"]) == (1, str(tmp_path / "checkpoint" / "spark.log"))


def by_shards(*ticks: int) -> Batch:
    """Each workload in its own shard, as the stream has them."""
    batch = Batch(*ticks)
    found = RuleBook(by_workload={}, by_fleet=BOOK.by_fleet)
    batch.rows = [
        {"shard": shard_of(name), "at": at_s, "decisions": packed(at_s, book), "faults": 0}
        for at_s in ticks
        for name, book in (("shop/found", found), ("shop/of-dead", replace(BOOK, by_fleet=())))
    ]
    return batch


def test_the_record_of_a_workload_is_from_the_newest_tick(publisher: Any) -> None:
    assert publisher.record("shop/found") is None
    publisher(by_shards(30, 45), 7)
    decision, numbers = publisher.record("shop/found")
    assert (decision.workload, decision.at_s) == ("shop/found", 45)
    assert numbers["rules.rate_window_s"] == 30, "its fleet's rules"
    assert numbers["workload_status.current_workers"] is None, "unknown is no number"
    other, _ = publisher.record("shop/of-dead")
    assert other.workload == "shop/of-dead"
    assert [publisher.record(name) for name in ("shop/foun", "shop/found2", "", "zoo/z")] == [None] * 4


def test_a_tick_without_decisions_has_no_record(publisher: Any) -> None:
    publisher(Batch(30), 7)
    batch = Batch(45)
    batch.rows[0]["decisions"] = None
    publisher(batch, 8)
    assert publisher.record("shop/found") is None
