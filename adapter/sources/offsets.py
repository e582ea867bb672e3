"""Kafka offsets -> rows. Pure: what the brokers said comes in as plain mappings."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from adapter.config import Config, KafkaReading, KafkaSource
from adapter.sources import FAULT, Row
from adapter.sources.names import slug

SIGNALS = (
    "processed_records",
    "appended_records",
    "backlog_records",
    "highest_partition_backlog_records",
    "partitions",
    "uncommitted_partitions",
)  # the signals of a workload
Partition = tuple[str, int]  # topic and number
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Reading:
    """One workload and the (group, topic) pairs it reads.

    fleet: index of the fleet that found it, None when it is configured by name.
    fault: why it cannot be read at all, else "".
    """

    workload: str
    inputs: tuple[tuple[str, str], ...] = ()
    fleet: int | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A fleet: every group whose whole name matches `groups` is a workload of `namespace`."""

    fleet: int
    namespace: str
    groups: str

    def workload(self, group: str) -> str:
        """The workload that a group of this fleet is."""
        return f"{self.namespace}/{slug(group)}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What one Kafka source is to read. offset_reset: where groups start to read a partition without a commit."""

    explicit: tuple[Reading, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    offset_reset: str = "latest"


@dataclass(frozen=True, slots=True)
class Offsets:
    """What the brokers said at one tick. A sentence in place of an answer says why there is none.

    committed: group -> offset of each partition it has committed; read before `latest`.
    partitions: topic -> how many partitions it has.
    earliest, latest: offset of the first record that is kept, and of the next record to come.
    """

    committed: Mapping[str, Mapping[Partition, int] | str] = field(default_factory=dict)
    partitions: Mapping[str, int | str] = field(default_factory=dict)
    earliest: Mapping[Partition, int | str] = field(default_factory=dict)
    latest: Mapping[Partition, int | str] = field(default_factory=dict)


def readings(config: Config, name: str) -> Plan:
    """What the configuration reads from the Kafka source of that name."""
    explicit = [
        Reading(f"{workload.namespace}/{workload.name}", _inputs(workload.read, name))
        for workload in config.workloads
        if _inputs(workload.read, name)
    ]
    patterns = [
        Pattern(index, fleet.namespace, fleet.groups)
        for index, fleet in enumerate(config.fleets)
        if fleet.source == name and fleet.groups is not None
    ]
    source = config.sources[name]
    assert isinstance(source, KafkaSource)  # noqa: S101 - only Kafka sources are opened with these readings
    return Plan(tuple(explicit), tuple(patterns), source.offset_reset)


def _inputs(read: Iterable[object], name: str) -> tuple[tuple[str, str], ...]:
    mine = [reading for reading in read if isinstance(reading, KafkaReading) and reading.source == name]
    pairs = [(reading.group, topic) for reading in mine for topic in reading.topics]
    return tuple(dict.fromkeys(pairs))  # a pair named twice is one input


class _UnknownError(Exception):
    """Why a workload has no number at this tick."""


def members(plan: Plan, groups: Iterable[str]) -> list[tuple[Pattern, str]]:
    """The groups that fleets find, each with its fleet; the first fleet of a namespace that matches has it.

    A group that a configured workload reads is that workload's, and is not found again.
    """
    taken = {group for reading in plan.explicit for group, _ in reading.inputs}
    found: dict[tuple[str, str], tuple[Pattern, str]] = {}
    for group in sorted(set(groups) - taken):
        for pattern in plan.patterns:
            if slug(group) and re.fullmatch(pattern.groups, group):
                found.setdefault((pattern.namespace, group), (pattern, group))
    return list(found.values())


def found_readings(
    plan: Plan, found: Iterable[tuple[Pattern, str]], committed: Mapping[str, Mapping[Partition, int] | str]
) -> list[Reading]:
    """The workloads of found groups: each reads the topics on which its group has committed.

    Two groups with one workload name, or one that a configured workload has, are a fault that names them.
    """
    by_workload: dict[str, list[tuple[Pattern, str]]] = {}
    for pattern, group in found:
        by_workload.setdefault(pattern.workload(group), []).append((pattern, group))
    explicit = {reading.workload for reading in plan.explicit}
    return [
        _found_reading(workload, same, committed) for workload, same in by_workload.items() if workload not in explicit
    ]


def _found_reading(
    workload: str, same: list[tuple[Pattern, str]], committed: Mapping[str, Mapping[Partition, int] | str]
) -> Reading:
    pattern, group = same[0]
    if len(same) > 1:
        names = " and ".join(name for _, name in same)
        return Reading(
            workload, fleet=pattern.fleet, fault=f"groups {names} have one workload name: configure each as a workload"
        )
    answer = committed.get(group, {})
    if isinstance(answer, str):
        return Reading(workload, fleet=pattern.fleet, fault=answer)
    topics = sorted({topic for (topic, _), offset in answer.items() if offset >= 0})
    fault = "" if topics else _no_commit(group, "any topic")
    return Reading(workload, tuple((group, topic) for topic in topics), pattern.fleet, fault)


def rows(reading: Reading, offsets: Offsets, at_s: int, offset_reset: str = "latest") -> list[Row]:
    """The rows of one workload: every number, or one fault; never a sum over a part of its partitions."""
    fleet = [] if reading.fleet is None else [Row(at_s, reading.workload, "", "fleet", float(reading.fleet))]
    try:
        counts = _counts(reading, offsets, offset_reset)
    except _UnknownError as unknown:
        return [*fleet, Row(at_s, reading.workload, "", FAULT, 0.0, str(unknown))]
    found = [*fleet, *(Row(at_s, reading.workload, "", signal, float(count)) for signal, count in counts.items())]
    if counts["uncommitted_partitions"]:
        found += [
            Row(at_s, reading.workload, "", FAULT, 0.0, text) for text in _assumed(reading, offsets, offset_reset)
        ]
    return found


def _counts(reading: Reading, offsets: Offsets, offset_reset: str) -> dict[str, int]:
    """Sums over partitions. Both counters leave out partitions without a commit: nobody reads them yet, and a counter
    that includes them would rise by records that retention deletes or others append."""
    if reading.fault:
        raise _UnknownError(reading.fault)
    positions = [position for group, topic in reading.inputs for position in _positions(group, topic, offsets)]
    backlogs = [position.backlog(offset_reset) for position in positions]
    committed = [position for position in positions if position.committed is not None]
    topics = {topic for _, topic in reading.inputs}
    return {
        "processed_records": sum(position.committed or 0 for position in committed),
        "appended_records": sum(position.latest for position in committed),
        "backlog_records": sum(backlogs),
        # A sum hides the one worker that is slow (S4-38).
        "highest_partition_backlog_records": max(backlogs, default=0),
        "partitions": sum(_told(offsets.partitions, topic, f"topic {topic}") for topic in topics),
        "uncommitted_partitions": len(positions) - len(committed),
    }


@dataclass(frozen=True, slots=True)
class _Position:
    """Where a group stands in one partition. committed: None without a commit."""

    committed: int | None
    earliest: int
    latest: int

    def backlog(self, offset_reset: str) -> int:
        """Records that the group still has to read; retention may have deleted some of them already."""
        start = self.earliest if offset_reset == "earliest" else self.latest
        return self.latest - max(start if self.committed is None else self.committed, self.earliest)


def _assumed(reading: Reading, offsets: Offsets, offset_reset: str) -> list[str]:
    """What is assumed of partitions without a commit that hold records; an empty one needs no assumption."""
    positions = [position for group, topic in reading.inputs for position in _positions(group, topic, offsets)]
    count = sum(each.committed is None and each.latest > each.earliest for each in positions)
    has = "partition has" if count == 1 else "partitions have"
    backlog = "all retained records counted as backlog" if offset_reset == "earliest" else "no backlog assumed"
    return [f"{count} {has} no committed offset, {backlog} (offset_reset: {offset_reset})"] if count else []


def _positions(group: str, topic: str, offsets: Offsets) -> list[_Position]:
    """Where the group stands in each partition of the topic."""
    partitions = _told(offsets.partitions, topic, f"topic {topic}")
    mine = _commits(group, topic, offsets)
    if max(mine) >= partitions:
        raise _UnknownError(
            _recreated(topic, f"group {group} has committed on partition {max(mine)}, it has {partitions}")
        )
    found = []
    for number in range(partitions):
        what = f"partition {number} of topic {topic}"
        earliest = _told(offsets.earliest, (topic, number), f"the first offset of {what}")
        latest = _told(offsets.latest, (topic, number), f"the end offset of {what}")
        committed = mine.get(number)
        position = max(earliest if committed is None else committed, earliest)
        if position > latest:
            raise _UnknownError(
                _recreated(topic, f"group {group} is at {position} of partition {number}, which ends at {latest}")
            )
        found.append(_Position(committed, earliest, latest))
    return found


def _commits(group: str, topic: str, offsets: Offsets) -> dict[int, int]:
    answer = offsets.committed.get(group, {})
    if isinstance(answer, str):
        raise _UnknownError(answer)
    mine = {number: offset for (name, number), offset in answer.items() if name == topic and offset >= 0}
    if not mine:
        raise _UnknownError(_no_commit(group, f"topic {topic}"))
    return mine


def _no_commit(group: str, where: str) -> str:
    return (
        f"group {group} has no committed offset on {where}: it has not run yet, or it commits elsewhere "
        "(Flink commits on checkpoints, Spark never)"
    )


def _recreated(topic: str, evidence: str) -> str:
    return f"topic {topic} was recreated: {evidence}; wait for the group's next commit, or reset its offsets"


def _told(answers: Mapping[_Key, int | str], key: _Key, what: str) -> int:
    """A count that the brokers told. They say a missing offset as a negative one (-1001)."""
    answer = answers.get(key, -1)
    if isinstance(answer, str):
        raise _UnknownError(answer)
    if answer < 0:
        raise _UnknownError(f"{what} is missing: the brokers did not tell it")
    return answer
