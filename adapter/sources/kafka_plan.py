"""Configuration -> the consumer groups to read from one Kafka source."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from adapter.config import Config, Fleet, KafkaReading, KafkaSource
from adapter.sources.names import slug

Input = tuple[str, str]  # group and topic


@dataclass(frozen=True, slots=True)
class GroupRead:
    """A workload and its consumer groups."""

    workload: str
    inputs: tuple[Input, ...] = ()
    transactional: frozenset[Input] = frozenset()  # those whose producers write transactions
    read_committed: frozenset[Input] = frozenset()  # those whose consumers wait for the end of transactions
    fleet: int | None = None  # index of the fleet that discovered it, None if the workload is configured by name
    fault: str = ""  # why its counts are unknown whatever the brokers answer


@dataclass(frozen=True, slots=True)
class GroupPattern:
    """A fleet: every group whose whole name matches is a workload."""

    fleet: int  # index in the configuration
    namespace: str
    groups: str  # regular expression
    transactional: bool = False
    read_committed: bool = False

    def workload(self, group: str) -> str:
        """The name of a group's workload."""
        return f"{self.namespace}/{slug(group)}"


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The groups and patterns to read from one Kafka source."""

    explicit: tuple[GroupRead, ...] = ()
    patterns: tuple[GroupPattern, ...] = ()
    offset_reset: str = "latest"  # where groups start to read a partition without a commit
    window_s: int = 60  # the time over which partitions are compared
    history_file: Path | None = None  # of the partitions over the last ticks


def read_plan(config: Config, name: str) -> ReadPlan:
    """The plan of the Kafka source of that name, from the configuration."""
    explicit = [
        _configured_read(workload.id, own)
        for workload in config.workloads
        if (own := [each for each in workload.read if isinstance(each, KafkaReading) and each.source == name])
    ]
    patterns = [
        GroupPattern(index, fleet.namespace, fleet.groups, fleet.transactional, _waits(fleet))
        for index, fleet in enumerate(config.fleets)
        if fleet.source == name and fleet.groups is not None
    ]
    source = config.sources[name]
    assert isinstance(source, KafkaSource)  # noqa: S101 - the callers read Kafka sources alone
    file = Path(config.pipeline.checkpoint) / f"partitions-{name}.msgpack"
    return ReadPlan(tuple(explicit), tuple(patterns), source.offset_reset, config.timing.source_window_s, file)


def _configured_read(workload: str, readings: Iterable[KafkaReading]) -> GroupRead:
    pairs = [((each.group, topic), each) for each in readings for topic in each.topics]
    inputs = dict.fromkeys(pair for pair, _ in pairs)  # a pair that is listed twice is one input
    transactional = frozenset(pair for pair, each in pairs if each.transactional)
    return GroupRead(workload, tuple(inputs), transactional, frozenset(pair for pair, each in pairs if _waits(each)))


def _waits(settings: KafkaReading | Fleet) -> bool:
    """Whether the consumers wait for the end of transactions."""
    return settings.isolation_level == "read_committed"
