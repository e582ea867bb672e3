"""Kafka offsets -> the counts of each workload. Pure: the answers of the brokers are plain mappings."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from adapter.config.patterns import matcher
from adapter.core.samples import fleet_conflict
from adapter.sources.kafka_plan import GroupPattern, GroupRead, Input, ReadPlan
from adapter.sources.names import MOST_WORKLOADS, slug
from adapter.sources.partition_history import (
    Key,
    Partitions,
    Position,
    advance,
    hottest_ratio,
    marker_keys,
    stuck_backlog,
)
from adapter.sources.sample_table import SampleTable

SIGNALS = (
    "processed_records",
    "appended_records",
    "backlog_records",
    "highest_partition_backlog_records",
    "stuck_backlog_records",
    "hottest_partition_ratio",
    "partitions",
    "uncommitted_partitions",
)
Partition = tuple[str, int]  # topic and number
Committed = Mapping[str, Mapping[Partition, int] | str]  # group -> committed offset of each partition, or a fault
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Offsets:
    """The answers of the brokers in one tick. A text in place of an answer is the reason why it is missing."""

    at_s: int = 0  # Unix seconds of the tick
    committed: Committed = field(default_factory=dict)  # read before `latest`
    partitions: Mapping[str, int | str] = field(default_factory=dict)  # topic -> number of partitions
    earliest: Mapping[Partition, int | str] = field(default_factory=dict)  # log start offset
    latest: Mapping[Partition, int | str] = field(default_factory=dict)  # log end offset
    stable: Mapping[Partition, int | str] = field(default_factory=dict)  # last stable offset, for read_committed


class _UnknownError(Exception):
    """Why the counts of a workload are unknown in this tick."""


def matching_groups(plan: ReadPlan, groups: Iterable[str]) -> list[tuple[GroupPattern, str]]:
    """The groups that the fleets discover, each with every fleet that matches it.

    Groups of configured workloads are left out.
    """
    configured = {group for read in plan.explicit for group, _ in read.inputs}
    return [
        (pattern, group)
        for group in sorted(set(groups) - configured)
        for pattern in plan.patterns
        if slug(group) and matcher(pattern.groups)(group)
    ]


def within_limit(found: list[tuple[GroupPattern, str]]) -> tuple[list[tuple[GroupPattern, str]], list[str]]:
    """The first MOST_WORKLOADS of the groups found, and the fault of each fleet with more."""
    fleets = sorted({pattern.fleet for pattern, _ in found[MOST_WORKLOADS:]})
    faults = [f"fleets[{fleet}]: more than {MOST_WORKLOADS} workloads; narrow groups" for fleet in fleets]
    return found[:MOST_WORKLOADS], faults


def discovered_reads(
    plan: ReadPlan, found: Iterable[tuple[GroupPattern, str]], committed: Committed
) -> list[GroupRead]:
    """The workloads of discovered groups. Each one reads the topics on which its group has committed.

    If several groups have the same workload name, the group with exactly that name is read. Without such a group, none
    is read, and a fault names them. Two fleets that find one group are a fault too. A configured workload of that name
    replaces a discovered one.
    """
    by_workload: dict[str, list[tuple[GroupPattern, str]]] = {}
    for pattern, group in found:
        by_workload.setdefault(pattern.workload(group), []).append((pattern, group))
    explicit = {read.workload for read in plan.explicit}
    return [
        _discovered_read(workload, same, committed)
        for workload, same in by_workload.items()
        if workload not in explicit
    ]


def _discovered_read(workload: str, same: list[tuple[GroupPattern, str]], committed: Committed) -> GroupRead:
    # A stray group such as orders- must not freeze the workload of the group orders.
    same = [each for each in same if workload == f"{each[0].namespace}/{each[1]}"] or same
    pattern, group = same[0]
    fleets = sorted({each.fleet for each, _ in same})
    if len(fleets) > 1:
        return GroupRead(workload, fleet=pattern.fleet, fault=fleet_conflict(fleets))
    if len(same) > 1:
        names = " and ".join(name for _, name in same)
        fault = f"groups {names} have the same workload name: configure each of them as a workload"
        return GroupRead(workload, fleet=pattern.fleet, fault=fault)
    offsets = committed.get(group, {})
    if isinstance(offsets, str):
        return GroupRead(workload, fleet=pattern.fleet, fault=offsets)
    topics = sorted({topic for (topic, _), offset in offsets.items() if offset >= 0})
    inputs = tuple((group, topic) for topic in topics)
    fault = "" if topics else _no_commit(group, "any topic")
    transactional = frozenset(inputs if pattern.transactional else ())
    read_committed = frozenset(inputs if pattern.read_committed else ())
    return GroupRead(workload, inputs, transactional, read_committed, pattern.fleet, fault)


def add_counts(
    table: SampleTable, read: GroupRead, offsets: Offsets, plan: ReadPlan, history: Partitions | None = None
) -> Partitions | None:
    """Add the counts of one workload, or one fault; never a sum over a part of its partitions.

    history: of the workload, None in its first tick. Returns it with this tick.
    """
    fleet = {} if read.fleet is None else {"fleet": float(read.fleet)}
    try:
        positions = _positions(read, offsets)
        partitions = sum(_partitions(topic, offsets) for topic in {topic for _, topic in read.inputs})
    except _UnknownError as unknown:
        table.add(offsets.at_s, read.workload, fleet)
        table.add_fault(offsets.at_s, read.workload, str(unknown))
        return history
    history = advance(history or Partitions(), offsets.at_s, positions, plan.window_s)
    markers = frozenset(key for key in marker_keys(history) if key[:2] in read.transactional)
    counts = _counts(positions, markers, plan.offset_reset) | {"partitions": float(partitions)}
    table.add(offsets.at_s, read.workload, fleet | counts | _of_history(history, plan.window_s))
    for assumption in _assumptions(positions, len(markers), plan.offset_reset):
        table.add_note(offsets.at_s, read.workload, assumption)
    return history


def _counts(positions: list[Position], markers: frozenset[object], offset_reset: str) -> dict[str, float]:
    """Sums over partitions. Both counters leave out partitions without a commit: a counter that includes them would
    rise when retention deletes records or producers append to a partition that the group does not read yet."""
    backlogs = [position.backlog(offset_reset) for position in positions if position.key not in markers]
    committed = [position for position in positions if position.committed is not None]
    return {
        "processed_records": float(sum(position.committed or 0 for position in committed)),
        "appended_records": float(sum(position.latest for position in committed)),
        "backlog_records": float(sum(backlogs)),
        # The sum hides a single slow worker (S4-38).
        "highest_partition_backlog_records": float(max(backlogs, default=0)),
        "uncommitted_partitions": float(len(positions) - len(committed)),
    }


def _of_history(history: Partitions, window_s: int) -> dict[str, float]:
    found = {
        "stuck_backlog_records": stuck_backlog(history, window_s),
        "hottest_partition_ratio": hottest_ratio(history, window_s),
    }
    return {signal: float(value) for signal, value in found.items() if value is not None}


def _assumptions(positions: list[Position], markers: int, offset_reset: str) -> Iterator[str]:
    # An empty partition without a commit needs no assumption.
    if count := sum(each.committed is None and each.latest > each.earliest for each in positions):
        yield _assumption(count, offset_reset)
    if markers:
        lag = "1 partition has" if markers == 1 else f"{markers} partitions have"
        yield f"{lag} a lag of 1 that does not change, counted as the end of a transaction and not as backlog"
    if count := sum(each.unstable_records for each in positions):
        yield _left_out(count)


def _assumption(count: int, offset_reset: str) -> str:
    has = "partition has" if count == 1 else "partitions have"
    backlog = "all retained records counted as backlog" if offset_reset == "earliest" else "no backlog assumed"
    return f"{count} {has} no committed offset, {backlog} (offset_reset: {offset_reset})"


def _left_out(count: int) -> str:
    records, are = ("record", "is") if count == 1 else ("records", "are")
    reason = "the group waits for open transactions to end (isolation_level: read_committed)"
    return f"{count} {records} after the last stable offset {are} not counted: {reason}"


def _positions(read: GroupRead, offsets: Offsets) -> list[Position]:
    """The positions of the workload's groups in every partition of their topics."""
    if read.fault:
        raise _UnknownError(read.fault)
    return [position for pair in read.inputs for position in _positions_in(pair, offsets, pair in read.read_committed)]


def _positions_in(pair: Input, offsets: Offsets, read_committed: bool) -> list[Position]:
    group, topic = pair
    partitions = _partitions(topic, offsets)
    commits = _commits(group, topic, offsets)
    if max(commits) >= partitions:
        evidence = f"group {group} has committed on partition {max(commits)}, but the topic has {partitions}"
        raise _UnknownError(_recreated(topic, evidence))
    found = (_position((*pair, number), commits.get(number), offsets) for number in range(partitions))
    return [_until_stable(each, offsets) for each in found] if read_committed else list(found)


def _position(key: Key, committed: int | None, offsets: Offsets) -> Position:
    group, topic, number = key
    earliest = _known(offsets.earliest, (topic, number), f"the log start offset of partition {number} of topic {topic}")
    latest = _known(offsets.latest, (topic, number), f"the log end offset of partition {number} of topic {topic}")
    position = max(earliest if committed is None else committed, earliest)
    if position > latest:
        evidence = f"group {group} is at {position} of partition {number}, which ends at {latest}"
        raise _UnknownError(_recreated(topic, evidence))
    return Position(key, committed, earliest, latest)


def _until_stable(position: Position, offsets: Offsets) -> Position:
    """The position of a group that reads only up to the last stable offset."""
    group, topic, number = position.key
    stable = _known(offsets.stable, (topic, number), f"the last stable offset of partition {number} of topic {topic}")
    if position.committed is not None and position.committed > stable:
        raise _UnknownError(
            f"group {group} has committed {position.committed} on partition {number} of topic {topic}, after the last "
            f"stable offset {stable}: its offsets were reset during a transaction, or it does not wait for "
            "transactions; in that case set isolation_level: read_uncommitted"
        )
    return replace(position, unstable_records=max(0, position.latest - stable))


def _partitions(topic: str, offsets: Offsets) -> int:
    return _known(offsets.partitions, topic, f"topic {topic}")


def _commits(group: str, topic: str, offsets: Offsets) -> dict[int, int]:
    committed = offsets.committed.get(group, {})
    if isinstance(committed, str):
        raise _UnknownError(committed)
    of_topic = {number: offset for (name, number), offset in committed.items() if name == topic and offset >= 0}
    if not of_topic:
        raise _UnknownError(_no_commit(group, f"topic {topic}"))
    return of_topic


def _no_commit(group: str, where: str) -> str:
    return (
        f"group {group} has no committed offset on {where}: it has not run yet, its offsets have expired "
        "(offsets.retention.minutes), or it does not commit to Kafka (Flink commits on checkpoints, Spark never)"
    )


def _recreated(topic: str, evidence: str) -> str:
    return f"topic {topic} was recreated: {evidence}; wait for the group's next commit, or reset its offsets"


def _known(answers: Mapping[_Key, int | str], key: _Key, name: str) -> int:
    """A count from the brokers. librdkafka reports a missing offset as a negative one (-1001)."""
    answer = answers.get(key, -1)
    if isinstance(answer, str):
        raise _UnknownError(answer)
    if answer < 0:
        raise _UnknownError(f"{name} is missing in the brokers' answer")
    return answer
