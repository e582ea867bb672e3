"""A streaming job's worker: a Kafka consumer that processes at most so many records a second and commits what it did.

A program of its own: worker.py BOOTSTRAP_SERVERS GROUP TOPIC RECORDS_PER_S
"""

import contextlib
import signal
import sys
import time

from confluent_kafka import Consumer, KafkaException

_STEP_S = 0.1
_COMMIT_S = 1.0


def work(consumer: Consumer, records_per_s: float, stopping: list[int]) -> None:
    """Takes a step's share of records, and no more, every step; what a step did not need is not saved up."""
    committed_s, uncommitted = time.monotonic(), 0
    while not stopping:
        started_s = time.monotonic()
        uncommitted += len(consumer.consume(max(1, round(records_per_s * _STEP_S)), timeout=_STEP_S))
        if uncommitted and started_s - committed_s > _COMMIT_S:
            consumer.commit(asynchronous=True)
            committed_s, uncommitted = started_s, 0
        time.sleep(max(0.0, _STEP_S - (time.monotonic() - started_s)))


def main(bootstrap_servers: str, group: str, topic: str, records_per_s: str) -> None:
    """Consumes until it is asked to end, then leaves its group at once."""
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))
    consumer = Consumer({
        "bootstrap.servers": bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": 6000, "heartbeat.interval.ms": 1000, "queued.min.messages": 500,
        "fetch.message.max.bytes": 65536,
    })  # fmt: skip
    consumer.subscribe([topic])
    work(consumer, float(records_per_s), stopping)
    with contextlib.suppress(KafkaException):  # nothing to commit, or no longer the owner
        consumer.commit(asynchronous=False)
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
