"""Writes records to a Kafka topic at a rate that changes over time: a load for demonstrations and tests.

load.py --bootstrap-servers kafka:9092 --topic demo sine --low 150 --high 850 --period-s 600
"""

import argparse
import csv
import itertools
import math
import signal
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

HEADER = ["seconds", "rate"]
BURST_S = 1.0
_STEP_S = 0.05
_REPORT_S = 10.0
_BROKER_TIMEOUT_S = 30.0


class LoadError(Exception):
    """The load cannot be written. The message names the expected value, the actual value and the fix."""


class Shape(Protocol):
    """A rate over time."""

    def rate(self, at_s: float) -> float:
        """Records/s, this long after the start."""


@dataclass(frozen=True, slots=True)
class Sine:
    """A wave that begins at its lowest rate."""

    low_records_per_s: float
    high_records_per_s: float
    period_s: float

    def rate(self, at_s: float) -> float:
        """Records/s, this long after the start."""
        height = (1 - math.cos(2 * math.pi * at_s / self.period_s)) / 2
        return self.low_records_per_s + height * (self.high_records_per_s - self.low_records_per_s)


@dataclass(frozen=True, slots=True)
class Step:
    """The low rate, and between two times the high rate."""

    low_records_per_s: float
    high_records_per_s: float
    at_s: float
    until_s: float

    def rate(self, at_s: float) -> float:
        """Records/s, this long after the start."""
        return self.high_records_per_s if self.at_s <= at_s < self.until_s else self.low_records_per_s


@dataclass(frozen=True, slots=True)
class Ramp:
    """A straight line from the first rate to the last, which then stays."""

    first_records_per_s: float
    last_records_per_s: float
    over_s: float

    def rate(self, at_s: float) -> float:
        """Records/s, this long after the start."""
        done = min(at_s / self.over_s, 1.0)
        return self.first_records_per_s + done * (self.last_records_per_s - self.first_records_per_s)


@dataclass(frozen=True, slots=True)
class Replay:
    """The rates of a trace, linear between its rows. After its end it begins again."""

    times_s: tuple[float, ...]  # rising, from 0
    rates: tuple[float, ...]
    speed: float  # seconds of the trace in a second
    scale: float  # records/s for a unit of the trace

    def rate(self, at_s: float) -> float:
        """Records/s, this long after the start."""
        now_s = at_s * self.speed % self.times_s[-1]
        after = bisect_right(self.times_s, now_s)
        begin_s, end_s = self.times_s[after - 1 : after + 1]
        first, last = self.rates[after - 1 : after + 1]
        return self.scale * (first + (last - first) * (now_s - begin_s) / (end_s - begin_s))


def read_trace(path: Path, speed: float, scale: float) -> Replay:
    """A file of `backtest --trace`: the header seconds,rate, then a row for each time."""
    try:
        with path.open(newline="") as file:
            header, *rows = list(csv.reader(file)) or [[]]
    except (OSError, UnicodeDecodeError) as error:
        raise LoadError(f"{path}: expected a readable trace: {error}") from None
    if [cell.strip() for cell in header] != HEADER:
        raise LoadError(f"{path}:1: expected the header seconds,rate, got {','.join(header)[:60]!r}")
    numbers = [_row(path, line, row) for line, row in enumerate(rows, 2)]
    if len(numbers) < 2:
        raise LoadError(f"{path}: expected at least two rows under the header, got {len(numbers)}")
    for line, (before, after) in enumerate(itertools.pairwise(numbers), 3):
        if after[0] <= before[0]:
            raise LoadError(f"{path}:{line}: expected a time after {before[0]:g} s, got {after[0]:g}; sort the rows")
    times_s = tuple(at_s - numbers[0][0] for at_s, _ in numbers)
    return Replay(times_s, tuple(rate for _, rate in numbers), speed, scale)


def _row(path: Path, line: int, row: Sequence[str]) -> tuple[float, float]:
    try:
        at_s, rate = (float(cell) for cell in row)
    except ValueError:
        raise LoadError(f"{path}:{line}: expected two numbers, seconds and rate, got {','.join(row)[:60]!r}") from None
    if not (math.isfinite(at_s) and 0 <= rate < math.inf):
        raise LoadError(f"{path}:{line}: expected a finite time and a rate of at least 0, got {','.join(row)[:60]!r}")
    return at_s, rate


class TokenBucket:
    """Turns a rate into whole records. After a stall, at most BURST_S of the rate is written late."""

    def __init__(self, now_s: float) -> None:
        self._filled_s = now_s
        self._credit_records = 0.0

    def take(self, now_s: float, records_per_s: float) -> int:
        """The records that are due now."""
        earned = records_per_s * (now_s - self._filled_s)
        self._credit_records = min(self._credit_records + earned, max(1.0, records_per_s * BURST_S))
        self._filled_s = now_s
        due = int(self._credit_records)
        self._credit_records -= due
        return due


def create_topic(bootstrap_servers: str, topic: str, partitions: int) -> None:
    """Creates the topic unless it exists. Raises LoadError if the broker does not answer or refuses."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    try:
        admin.create_topics([NewTopic(topic, partitions)], request_timeout=_BROKER_TIMEOUT_S)[topic].result()
    except KafkaException as error:
        fault: KafkaError = error.args[0]
        if fault.code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise LoadError(f"{bootstrap_servers}: cannot create topic {topic}: {fault.str()}") from None


class Writer:
    """Sends records to a topic, and counts those that the broker has confirmed."""

    def __init__(self, bootstrap_servers: str, topic: str, size_bytes: int) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 20})
        self._topic = topic
        self._record = b"x" * size_bytes
        self._key = 0
        self.written = self.failed = 0

    def write(self, records: int) -> None:
        """Queues records with keys that spread over the partitions; waits while the queue is full."""
        for _ in range(records):
            self._key += 1
            self._queue(str(self._key))
        self._producer.poll(0)

    def _queue(self, key: str) -> None:
        while True:
            try:
                return self._producer.produce(self._topic, self._record, key=key, on_delivery=self._count)
            except BufferError:  # the broker is slow or away
                self._producer.poll(_STEP_S)

    def _count(self, error: KafkaError | None, _message: object) -> None:
        self.failed += error is not None
        self.written += error is None

    def close(self) -> None:
        """Waits a moment for the last confirmations."""
        self._producer.flush(_BROKER_TIMEOUT_S)


def generate(shape: Shape, writer: Writer, running: Callable[[float], bool]) -> None:
    """Writes at the rate of the shape while running(seconds since the start), and reports every ten seconds."""
    start_s = time.monotonic()
    bucket, report_s = TokenBucket(0.0), 0.0
    while running(now_s := time.monotonic() - start_s):
        rate = shape.rate(now_s)
        writer.write(bucket.take(now_s, rate))
        if now_s >= report_s:
            sys.stdout.write(f"{now_s:.0f} s: {rate:.0f} records/s, {writer.written} written, {writer.failed} failed\n")
            sys.stdout.flush()
            report_s += _REPORT_S
        time.sleep(_STEP_S)


def _number(least: float, *, positive: bool = False) -> Callable[[str], float]:
    """A parser of finite numbers from `least`."""

    def parse(text: str) -> float:
        number = float(text) if text.isascii() and "_" not in text else math.nan
        if not math.isfinite(number) or number < least or (positive and number == 0):
            raise ValueError(text)
        return number

    parse.__name__ = "number above 0" if positive else f"number of at least {least:g}"  # in the message of argparse
    return parse


RATE, SECONDS = _number(0), _number(0, positive=True)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description="Write records to a Kafka topic at a rate that changes over time.")
    parser.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=12, help="of the topic, if it does not exist yet")
    parser.add_argument("--record-bytes", type=int, default=100)
    parser.add_argument("--for-s", type=SECONDS, default=math.inf, help="end after so many seconds")
    shapes = parser.add_subparsers(dest="shape", required=True)
    _add(shapes, "sine", ("low", RATE), ("high", RATE), ("period-s", SECONDS))
    step = _add(shapes, "step", ("low", RATE), ("high", RATE), ("at-s", RATE))
    step.add_argument("--until-s", type=SECONDS, default=math.inf, help="back to the low rate")
    _add(shapes, "ramp", ("first", RATE), ("last", RATE), ("over-s", SECONDS))
    replay = shapes.add_parser("replay", help="the rates of a file with the header seconds,rate")
    replay.add_argument("trace", type=Path)
    replay.add_argument("--speed", type=SECONDS, default=1.0, help="seconds of the trace in a second")
    replay.add_argument("--scale", type=SECONDS, default=1.0, help="records/s for a unit of the trace")
    return parser


def _add(shapes: Any, name: str, *options: tuple[str, Callable[[str], float]]) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = shapes.add_parser(name)
    for option, kind in options:
        added.add_argument(f"--{option}", type=kind, required=True)
    return added


def shape_of(given: argparse.Namespace) -> Shape:
    """The shape of a parsed command line."""
    if given.shape == "sine":
        return Sine(given.low, given.high, given.period_s)
    if given.shape == "step":
        return Step(given.low, given.high, given.at_s, given.until_s)
    if given.shape == "ramp":
        return Ramp(given.first, given.last, given.over_s)
    return read_trace(given.trace, given.speed, given.scale)


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes until SIGTERM, or for the given time. A fault is one line on stderr and exit code 2."""
    given = parser().parse_args(arguments)
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))
    try:
        shape = shape_of(given)
        create_topic(given.bootstrap_servers, given.topic, given.partitions)
    except LoadError as error:
        sys.stderr.write(f"load: {error}\n")
        sys.exit(2)
    writer = Writer(given.bootstrap_servers, given.topic, given.record_bytes)
    generate(shape, writer, lambda now_s: not stopping and now_s < given.for_s)
    writer.close()


if __name__ == "__main__":
    main()
