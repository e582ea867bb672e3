"""A streaming job's worker: a Kafka consumer that processes a nominal rate of records and commits its progress.

A program of its own: worker.py BOOTSTRAP_SERVERS GROUP TOPIC RECORDS_PER_S
"""

import contextlib
import signal
import sys
import time

from confluent_kafka import Consumer, KafkaException

_STEP_S = 0.1
_COMMIT_S = 1.0
_BURST_S = 0.5  # a late wake-up is made up for up to this time, so a busy machine does not make the worker slower


def work(consumer: Consumer, records_per_s: float, stopping: list[int]) -> None:
    """Processes at most records_per_s: a token bucket that holds the records of _BURST_S."""
    filled_s = committed_s = time.monotonic()
    credit_records, uncommitted = 0.0, 0
    while not stopping:
        now_s = time.monotonic()
        credit_records = min(credit_records + records_per_s * (now_s - filled_s), records_per_s * _BURST_S)
        filled_s = now_s
        processed = len(consumer.consume(max(1, int(credit_records)), timeout=_STEP_S))
        credit_records -= processed
        uncommitted += processed
        if uncommitted and now_s - committed_s > _COMMIT_S:
            consumer.commit(asynchronous=True)
            committed_s, uncommitted = now_s, 0
        time.sleep(max(0.0, _STEP_S - (time.monotonic() - now_s)))


def main(bootstrap_servers: str, group: str, topic: str, records_per_s: str) -> None:
    """Consumes until SIGTERM, then leaves its group at once."""
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
