"""Kafka offsets -> rows. Pure: what the brokers said comes in as plain mappings."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from adapter.config import Config, KafkaReading
from adapter.sources import FAULT, Row
from adapter.sources.names import slug

SIGNALS = (
    "processed_records",
    "appended_records",
    "backlog_records",
    "highest_partition_backlog_records",
    "partitions",
)  # what is told of a workload
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
    """What one Kafka source is to read."""

    explicit: tuple[Reading, ...] = ()
    patterns: tuple[Pattern, ...] = ()


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
    return Plan(tuple(explicit), tuple(patterns))


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


def rows(reading: Reading, offsets: Offsets, at_s: int) -> list[Row]:
    """The rows of one workload: every number, or one fault; never a sum over a part of its partitions."""
    fleet = [] if reading.fleet is None else [Row(at_s, reading.workload, "", "fleet", float(reading.fleet))]
    try:
        counts = _counts(reading, offsets)
    except _UnknownError as unknown:
        return [*fleet, Row(at_s, reading.workload, "", FAULT, 0.0, str(unknown))]
    return [*fleet, *(Row(at_s, reading.workload, "", signal, float(count)) for signal, count in counts.items())]


def _counts(reading: Reading, offsets: Offsets) -> dict[str, int]:
    if reading.fault:
        raise _UnknownError(reading.fault)
    positions = [position for group, topic in reading.inputs for position in _positions(group, topic, offsets)]
    processed = sum(position for position, _ in positions)
    appended = sum(end for _, end in positions)
    topics = {topic for _, topic in reading.inputs}
    return {
        "processed_records": processed,
        "appended_records": appended,
        "backlog_records": appended - processed,
        # A sum hides the one worker that is slow (S4-38).
        "highest_partition_backlog_records": max((end - position for position, end in positions), default=0),
        "partitions": sum(_told(offsets.partitions, topic, f"topic {topic}") for topic in topics),
    }


def _positions(group: str, topic: str, offsets: Offsets) -> list[tuple[int, int]]:
    """Position of the group and end of the log, one pair a partition.

    A partition without a commit stands at its first record: the group reads the topic, so it will be read. Records
    that retention deleted before they were read can no longer be processed: they count as passed.
    """
    partitions = _told(offsets.partitions, topic, f"topic {topic}")
    mine = _commits(group, topic, offsets)
    if max(mine) >= partitions:
        raise _UnknownError(
            _recreated(topic, f"group {group} has committed on partition {max(mine)}, it has {partitions}")
        )
    pairs = []
    for number in range(partitions):
        what = f"partition {number} of topic {topic}"
        earliest = _told(offsets.earliest, (topic, number), f"the first offset of {what}")
        end = _told(offsets.latest, (topic, number), f"the end offset of {what}")
        position = max(mine.get(number, earliest), earliest)
        if position > end:
            raise _UnknownError(
                _recreated(topic, f"group {group} is at {position} of partition {number}, which ends at {end}")
            )
        pairs.append((position, end))
    return pairs


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
