"""The source `kafka` on groups of every protocol and on transactions, with a real broker."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, ShareConsumer
from parts.broker import Broker
from parts.process import until

from adapter.config import KafkaSource
from adapter.errors import SourceError
from adapter.sources.kafka import KafkaReader
from adapter.sources.kafka_plan import GroupPattern, GroupRead, ReadPlan
from adapter.sources.sample_table import FAULT

# list_groups of confluent_kafka: the only call that sees share groups
pytestmark = pytest.mark.filterwarnings(r"ignore:list_groups\(\) is deprecated:DeprecationWarning")

PARTITIONS, RECORDS, READ_RECORDS = 3, 300, 100
Found = dict[tuple[str, str], float | str]


def tick(reader: KafkaReader, at_s: int) -> Found:
    rows = reader.samples(at_s, at_s, 15).to_pylist()
    return {(row["workload"], row["signal"]): row["text"] or row["value"] for row in rows}


def opened(broker: Broker, plan: ReadPlan) -> KafkaReader:
    return KafkaReader("kafka", KafkaSource(kind="kafka", bootstrap_servers=broker.bootstrap_servers), plan)


def client(broker: Broker, **settings: object) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, **settings}


def produce(broker: Broker, topic: str, **settings: object) -> None:
    """Write RECORDS evenly; with a transactional.id, in one transaction."""
    producer = Producer(client(broker, **settings))
    if settings:
        producer.init_transactions(60)
        producer.begin_transaction()
    for number in range(RECORDS):
        producer.produce(topic, b"x", partition=number % PARTITIONS)
    if settings:
        producer.commit_transaction(60)
    assert producer.flush(60) == 0


def member(broker: Broker, group: str, topic: str, **settings: object) -> Consumer:
    consumer = Consumer(
        client(broker, **{"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False, **settings})
    )
    consumer.subscribe([topic])
    return consumer


def read(members: list[Consumer], count: int) -> None:
    """Read and commit this many records. All members poll in turn."""
    left, ends_s = count, time.monotonic() + 120
    while left and time.monotonic() < ends_s:
        for consumer in members:
            message = consumer.poll(0.2)
            if left and message is not None and message.error() is None:
                with suppress(KafkaException):  # of a generation that ended: the record is read again
                    consumer.commit(message=message, asynchronous=False)
                    left -= 1
    assert left == 0


@pytest.fixture
def closed_last() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize(
    ("group", "settings"),
    [
        pytest.param("cooperative", {"partition.assignment.strategy": "cooperative-sticky"}, id="cooperative-sticky"),
        pytest.param("kip848", {"group.protocol": "consumer"}, id="KIP-848"),
    ],
)
def test_a_group_is_read_whatever_its_protocol(
    broker: Broker, closed_last: ExitStack, group: str, settings: dict[str, str]
) -> None:
    topic = f"topic-{group}"
    broker.create_topic(topic, PARTITIONS)
    produce(broker, topic)
    plan = ReadPlan((GroupRead("shop/it", ((group, topic),)),), (GroupPattern(0, "web", f"{group}.*"),), "earliest")
    reader = closed_last.enter_context(closing(opened(broker, plan)))
    members = [closed_last.enter_context(closing(member(broker, group, topic, **settings)))]
    read(members, READ_RECORDS)
    members.append(closed_last.enter_context(closing(member(broker, group, topic, **settings))))
    read(members, READ_RECORDS)  # during and after the rebalance
    found = tick(reader, int(time.time()))
    backlog = broker.backlog_records(group, topic)
    assert 0 < backlog < RECORDS - READ_RECORDS
    assert found["shop/it", "backlog_records"] == backlog
    assert found["shop/it", "processed_records"] == sum(broker.committed_offsets(group, topic).values())
    assert found["shop/it", "partitions"] == PARTITIONS


def test_a_share_group_is_named_as_unsupported(broker: Broker, closed_last: ExitStack) -> None:
    broker.create_topic("topic-share", PARTITIONS)
    share = closed_last.enter_context(closing(ShareConsumer(client(broker, **{"group.id": "share-active"}))))
    share.subscribe(["topic-share"])
    next_generation = {"group.protocol": "consumer"}
    idle = closed_last.enter_context(closing(member(broker, "share-idle", "topic-share", **next_generation)))
    until(lambda: share.poll(1.0) is not None and idle.poll(1.0) is None and idle.assignment(), 120, "both have joined")
    reads = tuple(
        GroupRead(f"shop/{group}", ((group, "topic-share"),)) for group in ("share-active", "share-idle", "unknown")
    )
    reader = closed_last.enter_context(closing(opened(broker, ReadPlan(reads, (GroupPattern(0, "web", "share.*"),)))))
    fleet = closed_last.enter_context(closing(opened(broker, ReadPlan(patterns=(GroupPattern(0, "web", "share.*"),)))))
    found, at_s = tick(reader, int(time.time())), int(time.time())
    unsupported = "group share-active has no committed offset and is no consumer group: a streams group"
    assert str(found["shop/share-active", FAULT]).startswith(unsupported)
    for group in ("share-idle", "unknown"):
        assert str(found[f"shop/{group}", FAULT]).startswith(f"group {group} has no committed offset on topic")
    assert str(tick(fleet, at_s)["web/share-active", FAULT]).startswith(unsupported)


def test_the_markers_of_transactions_are_no_backlog(broker: Broker, closed_last: ExitStack) -> None:
    broker.create_topic("topic-marked", PARTITIONS)
    produce(broker, "topic-marked", **{"transactional.id": "it"})
    consumer = closed_last.enter_context(closing(member(broker, "marked", "topic-marked")))
    read([consumer], RECORDS)
    assert broker.backlog_records("marked", "topic-marked") == PARTITIONS  # for ever, one in each partition
    inputs = (("marked", "topic-marked"),)
    plan = ReadPlan((GroupRead("shop/marked", inputs, transactional=frozenset(inputs)),))
    reader = closed_last.enter_context(closing(opened(broker, plan)))
    at_s = int(time.time())
    tick(reader, at_s)
    found = tick(reader, at_s + 15)
    assert found["shop/marked", "backlog_records"] == 0
    assert str(found["shop/marked", FAULT]).startswith(f"{PARTITIONS} partitions have a lag of 1 that does not change")


def test_records_of_an_open_transaction_are_backlog_only_of_a_group_that_reads_them(
    broker: Broker, closed_last: ExitStack
) -> None:
    broker.create_topic("topic-open", PARTITIONS)
    produce(broker, "topic-open")
    producer = Producer(client(broker, **{"transactional.id": "open"}))
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in range(RECORDS):
        producer.produce("topic-open", b"x", partition=number % PARTITIONS)
    assert producer.flush(60) == 0
    closed_last.callback(producer.abort_transaction, 60)
    reads = []
    for group, count in (("read_committed", RECORDS), ("read_uncommitted", READ_RECORDS)):
        settings = {"isolation.level": group}
        read([closed_last.enter_context(closing(member(broker, group, "topic-open", **settings)))], count)
        inputs = ((group, "topic-open"),)
        waits = frozenset(inputs if group == "read_committed" else ())
        reads.append(GroupRead(f"shop/{group}", inputs, transactional=frozenset(inputs), read_committed=waits))
    plan = ReadPlan(tuple(reads), offset_reset="earliest")
    found = tick(closed_last.enter_context(closing(opened(broker, plan))), int(time.time()))
    assert broker.backlog_records("read_committed", "topic-open") == RECORDS
    assert found["shop/read_committed", "backlog_records"] == 0
    assert found["shop/read_committed", "appended_records"] == 2 * RECORDS
    assert str(found["shop/read_committed", FAULT]).startswith(f"{RECORDS} records after the last stable offset are")
    assert found["shop/read_uncommitted", "backlog_records"] == 2 * RECORDS - READ_RECORDS


def opened_backlog(broker: Broker, name: str, stack: ExitStack) -> Callable[[], float | str | None]:
    """Make a group that is RECORDS behind on a topic of its name. Returns a function that reads its backlog."""
    broker.create_topic(name, PARTITIONS)
    produce(broker, name)
    read([stack.enter_context(closing(member(broker, name, name)))], RECORDS)
    produce(broker, name)
    plan = ReadPlan((GroupRead(f"shop/{name}", ((name, name),)),))
    reader = stack.enter_context(closing(opened(broker, plan)))

    def backlog() -> float | str | None:
        with suppress(SourceError):
            return tick(reader, int(time.time())).get((f"shop/{name}", "backlog_records"))
        return None

    until(lambda: backlog() == RECORDS, 30, "the broker answers")
    return backlog


@pytest.mark.full
def test_a_group_is_read_again_after_its_broker_was_away(broker: Broker, closed_last: ExitStack) -> None:
    """librdkafka alone waits forever for the coordinator of the group (its issue 5511)."""
    backlog = opened_backlog(broker, "away", closed_last)
    broker.stop()
    until(lambda: backlog() is None, 30, "the broker does not answer")
    broker.start()
    until(lambda: backlog() == RECORDS, 120, "the broker answers again", every_s=1.0)


@pytest.mark.full
def test_a_group_is_read_although_another_broker_is_lost(run: Path, closed_last: ExitStack) -> None:
    """librdkafka alone may ask the lost broker about the cluster for 5 minutes."""
    first = closed_last.enter_context(Broker(run / "first"))
    backlog = opened_backlog(first, "beside", closed_last)
    closed_last.enter_context(Broker(run / "second", first)).kill()
    lost_s = time.monotonic()  # the metadata name it until its session ends, after 9 s
    until(lambda: backlog() == RECORDS and time.monotonic() > lost_s + 15, 60, "the first broker answers")
