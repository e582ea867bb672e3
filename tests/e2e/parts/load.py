"""A producer process whose rate can be changed while it runs.

A program of its own: load.py BOOTSTRAP_SERVERS TOPIC PARTITIONS; each line on its input is a new rate in records/s.
"""

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import Producer

from parts.process import Process

_STEP_S = 0.05


class RateProcess(Process):
    """A program that takes rates on its input. Starts with rate 0."""

    stdin = subprocess.PIPE

    def set_rate(self, per_s: float) -> None:
        """Sets the rate of the whole topic or stream."""
        assert self.child.stdin is not None
        self.child.stdin.write(f"{per_s}\n".encode())
        self.child.stdin.flush()


class Load(RateProcess):
    """Each partition gets the same share of the rate."""

    def __init__(self, folder: Path, bootstrap_servers: str, topic: str, partitions: int) -> None:
        command = [sys.executable, __file__, bootstrap_servers, topic, str(partitions)]
        env = {"PYTHONPATH": str(Path(__file__).parent.parent)}
        super().__init__(f"load-{topic}", command, folder, env)


def produce(producer: Producer, topic: str, partitions: int) -> None:
    """Produces at the newest rate on the input until the input ends."""
    os.set_blocking(sys.stdin.fileno(), False)
    next_partition = itertools.cycle(range(partitions))
    records_per_s, due_records, last_s = 0.0, 0.0, time.monotonic()
    while True:
        line = _last_line()
        if line == "":
            return
        records_per_s = records_per_s if line is None else float(line)
        now_s = time.monotonic()
        # After a stall at most one second of records is produced late.
        due_records = min(due_records + records_per_s * (now_s - last_s), records_per_s)
        last_s = now_s
        for _ in range(int(due_records)):
            producer.produce(topic, b"x" * 100, partition=next(next_partition))
        due_records -= int(due_records)
        producer.poll(0)
        time.sleep(_STEP_S)


def _last_line() -> str | None:
    """The newest line, None if there is none yet, "" at the end of the input."""
    try:
        read = os.read(sys.stdin.fileno(), 4096)
    except BlockingIOError:
        return None
    return read.decode().split()[-1] if read else ""


if __name__ == "__main__":
    settings = {"bootstrap.servers": sys.argv[1], "linger.ms": 20, "queue.buffering.max.messages": 1_000_000}
    produce(Producer(settings), sys.argv[2], int(sys.argv[3]))
