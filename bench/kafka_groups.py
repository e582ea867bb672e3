"""Measure the source `kafka` on a real broker with many consumer groups: the time of a tick, and its requests."""

import json
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import admin as client

from adapter.config import KafkaSource
from adapter.sources.kafka import KafkaReader
from adapter.sources.kafka_plan import GroupPattern, ReadPlan
from bench.figures import Figure
from bench.kafka_broker import BUILD, broker, commit, libraries

SIZES = (1_000, 5_000)
TICKS, TICK_S = 15, 15
_LONG_S = 60.0  # a deadline that no tick reaches
_STATISTICS_S = 1.0


def figures() -> Iterator[Figure]:
    """For each number of groups: seconds a tick, with a long deadline and with the default one."""
    jars = libraries()
    if jars is None:
        yield Figure(f"no Kafka: {BUILD}", (), "s")
        return
    with tempfile.TemporaryDirectory() as folder, broker(jars, Path(folder)) as address:
        for size in SIZES:
            commit(address, [f"group-{size}-{number}" for number in range(size)])
            yield from _measure(address, size)
        yield from _in_flight(address)
        yield from _listings(address)
        yield from _requests(address)


def _measure(address: str, size: int) -> Iterator[Figure]:
    plan = ReadPlan(patterns=(GroupPattern(0, "shop", f"group-{size}-.*"),))
    default_s = KafkaSource(kind="kafka", bootstrap_servers=address).deadline_s
    for deadline_s in (_LONG_S, default_s):
        reader = KafkaReader("kafka", KafkaSource(kind="kafka", bootstrap_servers=address, deadline_s=deadline_s), plan)
        ticks = [_tick(reader) for _ in range(TICKS + 1)][1:]  # the first one lists and describes groups
        reader.close()
        name = f"{size} groups, deadline_s {deadline_s:g}"
        yield Figure(f"{name}: a tick", tuple(took_s for took_s, _, _ in ticks), "s")
        yield Figure(f"{name}: processor time of a tick", tuple(used_s for _, used_s, _ in ticks), "s")
        yield Figure(f"{name}: groups without an answer", tuple(float(missing) for *_, missing in ticks), "")


def _tick(reader: KafkaReader) -> tuple[float, float, int]:
    """Seconds, processor seconds of the reader, and the groups that have no numbers."""
    at_s, start_s, start_used_s = int(time.time()), time.perf_counter(), time.process_time()
    signals = reader.samples(at_s, at_s, TICK_S).column("signal").to_pylist()
    took_s, used_s = time.perf_counter() - start_s, time.process_time() - start_used_s
    return took_s, used_s, signals.count("fleet") - signals.count("backlog_records")


def _listings(address: str) -> Iterator[Figure]:
    """The two listings of a minute; a share group is in the second one alone."""
    admin = client.AdminClient({"bootstrap.servers": address})
    calls = {
        "list_consumer_groups": lambda: admin.list_consumer_groups(request_timeout=_LONG_S).result(),
        "list_groups": partial(admin.list_groups, timeout=_LONG_S),
    }
    for name, call in calls.items():
        yield Figure(f"{name} of {sum(SIZES)} groups", tuple(_seconds(call) for _ in range(TICKS)), "s")


def _seconds(call: Any) -> float:
    start_s = time.perf_counter()
    call()
    return time.perf_counter() - start_s


def _in_flight(address: str) -> Iterator[Figure]:
    """Seconds for the offsets of the most groups with a bound on the requests under way; the source has none."""
    admin = client.AdminClient({"bootstrap.servers": address})
    groups = [f"group-{SIZES[-1]}-{number}" for number in range(SIZES[-1])]
    for bound in (1, 10, 100, 1_000, len(groups)):
        times = tuple(_seconds(partial(_fetch, admin, groups, bound)) for _ in range(5))
        yield Figure(f"offsets of {len(groups)} groups, {bound} requests under way", times, "s")


def _fetch(admin: Any, groups: list[str], bound: int) -> None:
    waiting: deque[Future[Any]] = deque()
    for group in groups:
        if len(waiting) == bound:
            waiting.popleft().result()
        request = [ConsumerGroupTopicPartitions(group)]
        waiting.append(admin.list_consumer_group_offsets(request, request_timeout=_LONG_S)[group])
    for future in waiting:
        future.result()


def _requests(address: str) -> Iterator[Figure]:
    """How many FindCoordinator requests the offsets of 100 groups cost, and whether one call may name two groups."""
    statistics: list[dict[str, Any]] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": address,
        "statistics.interval.ms": int(_STATISTICS_S * 1000),
        "stats_cb": lambda text: statistics.append(json.loads(text)),
    }
    admin = client.AdminClient(settings)
    requests = [ConsumerGroupTopicPartitions(f"group-{SIZES[0]}-{number}") for number in range(100)]
    for each in requests:
        admin.list_consumer_group_offsets([each])[each.group_id].result()
    time.sleep(2 * _STATISTICS_S)
    admin.poll(0)
    found = sum(each["req"]["FindCoordinator"] for each in statistics[-1]["brokers"].values())
    yield Figure("100 groups, one call each: FindCoordinator requests", (float(found),), "")
    try:
        admin.list_consumer_group_offsets(requests[:2])
    except ValueError as error:
        yield Figure(f"2 groups in one call: {error}", (), "")
