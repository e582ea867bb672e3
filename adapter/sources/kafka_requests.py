"""The requests of one tick to a Kafka cluster, within one deadline."""

import time
from collections.abc import Collection, Hashable, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka import admin as client

from adapter.sources.kafka_errors import TRANSIENT, UNREACHABLE, group_fault, topic_fault
from adapter.sources.offsets import Partition

_OffsetSpec: Any = client.OffsetSpec  # type: ignore[attr-defined]  # public, but not exported to type checkers
# KafkaRequests applies the deadline of committed offsets, because librdkafka (2.16, its issues 3663 and 4605) ends the
# process with a failed assertion when its own timeout for them passes while no broker is connected.
_COMMITS_TIMEOUT_S = 600.0
_GRACE_S = 0.1  # a request reports its own timeout within this time
_LOG_OFFSETS = {  # fields of Offsets -> how to request them
    "earliest": (_OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED),
    "latest": (_OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED),
    "stable": (_OffsetSpec.latest(), IsolationLevel.READ_COMMITTED),
}
_COMMITS_TOPIC = "__consumer_offsets"
_FEW_GROUPS = 50  # the default number of partitions of that topic
_Key = TypeVar("_Key", bound=Hashable)


class UnreachableError(Exception):
    """No broker answers, or none accepts the credentials."""


@dataclass(frozen=True, slots=True)
class GroupListing:
    """The names of all groups."""

    consumers: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()  # share groups (KIP-932) and streams groups (KIP-1071)
    complete: bool = False  # whether every broker answered


class KafkaRequests:
    """The requests of one tick and the time that is left for them."""

    def __init__(self, admin: client.AdminClient, deadline_s: float, unanswered: dict[str, Future[Any]]) -> None:
        """unanswered: the requests of earlier ticks that are under way, by group; updated by read_commits()."""
        self._admin = admin
        self._unanswered = unanswered
        self._deadline_at_s = time.monotonic() + deadline_s
        self.has_old_leaders = False  # the client does not learn the new partition leaders: replace it
        self.silent_groups: frozenset[str] | None = None  # without an answer of their coordinator; None before requests

    def _left_s(self, share: float = 1.0) -> float:
        return max(0.001, share * (self._deadline_at_s - time.monotonic()))

    def check_connection(self) -> None:
        """Check that a broker answers. Before that, no other request is safe or worth its time."""
        cluster = {"cluster": self._admin.describe_cluster(request_timeout=self._left_s())}
        _raise_if_unreachable(_answers(cluster, self._left_s()))

    def groups(self) -> GroupListing:
        """All group names. Raises UnreachableError if no broker answers."""
        # First, because the second listing then contains every consumer group that is new.
        others = self._without_classic_state()
        listing = {"groups": self._admin.list_consumer_groups(request_timeout=self._left_s(0.5))}
        answer = _answers(listing, self._left_s())["groups"]
        errors = [answer] if isinstance(answer, KafkaError) else answer.errors
        listed = frozenset() if isinstance(answer, KafkaError) else frozenset(group.group_id for group in answer.valid)
        if errors and not listed:
            raise UnreachableError(errors[0].str())
        return GroupListing(listed, frozenset() if errors else others - listed, complete=not errors)

    def _without_classic_state(self) -> frozenset[str]:
        """The groups that a broker lists and, described as a classic group, reports as dead; none without an answer."""
        try:  # deprecated, but the only call that sees share groups
            found = self._admin.list_groups(timeout=self._left_s(0.25))
        except KafkaException:
            return frozenset()
        return frozenset(str(group.id) for group in found if group.state == "Dead" and not group.protocol_type)

    def read_commits(self, groups: Iterable[str], answered: frozenset[str]) -> dict[str, dict[Partition, int] | str]:
        """The committed offsets of each group, in half of the time left. A dead coordinator affects only its groups.

        answered: groups whose coordinator answered the last request. The others are described first, because
        librdkafka (2.16) can crash the process if the coordinator of a requested group is not available.
        """
        # Groups without an answer come first, so that a slow broker gives each group its turn.
        wanted = sorted(groups, key=lambda group: (group in answered, group))
        absent = self._find_groups_without_coordinator([group for group in wanted if group not in answered])
        answers = self._commits_of([group for group in wanted if group not in absent])
        answers |= self._commits_of(_transient(answers))
        answers |= absent
        self.silent_groups = frozenset(group for group, answer in answers.items() if _is_unreachable(_error(answer)))
        _raise_if_unreachable(answers)
        return {group: _commits(group, answer) for group, answer in answers.items()}

    def _find_groups_without_coordinator(self, groups: list[str]) -> dict[str, Any]:
        """The groups without a coordinator, each with its error.

        All groups of one partition of __consumer_offsets have the same coordinator, so one of them is described.
        """
        count = self._offsets_partitions() if len(groups) > _FEW_GROUPS else None
        alike: dict[object, list[str]] = {}
        for group in groups:
            alike.setdefault(group if count is None else coordinator_partition(group, count), []).append(group)
        if not alike:
            return {}
        described = self._admin.describe_consumer_groups(
            [same[0] for same in alike.values()], request_timeout=self._left_s(0.5)
        )
        answers = _answers(described, self._left_s(0.5))
        return {
            group: answer
            for same in alike.values()
            if isinstance(answer := answers[same[0]], KafkaError) and answer.name() in TRANSIENT | UNREACHABLE
            for group in same
        }

    def _offsets_partitions(self) -> int | None:
        """The number of partitions of __consumer_offsets, None if the adapter may not describe it."""
        count = self.partitions([_COMMITS_TOPIC])[_COMMITS_TOPIC]
        return None if isinstance(count, str) else count

    def _commits_of(self, groups: list[str]) -> dict[str, Any]:
        """The answers for some groups. The client has one request for each group; all of them run at the same time.

        A group whose last request is still under way gets no second one: otherwise requests pile up at a slow broker.
        """
        list_offsets = self._admin.list_consumer_group_offsets
        busy = {group: each for group, each in self._unanswered.items() if not each.done()}
        requests = {
            group: list_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=_COMMITS_TIMEOUT_S)[group]
            for group in groups
            if group not in busy
        }
        answers = _answers(requests, self._left_s(0.5))
        self._unanswered.clear()
        self._unanswered.update(busy | {group: each for group, each in requests.items() if not each.done()})
        return answers | {group: KafkaError(KafkaError._TIMED_OUT) for group in groups if group in busy}

    def partitions(self, topics: list[str]) -> dict[str, int | str]:
        """The number of partitions of each topic."""
        if not topics:
            return {}
        described = self._admin.describe_topics(TopicCollection(topics), request_timeout=self._left_s())
        answers = _answers(described, self._left_s())
        _raise_if_unreachable(answers)
        return {
            topic: topic_fault(topic, answer.name(), answer.str())
            if isinstance(answer, KafkaError)
            else len(answer.partitions)
            for topic, answer in answers.items()
        }

    def log_offsets(
        self, partitions: Mapping[str, int | str], read_committed: Collection[str]
    ) -> dict[str, dict[Partition, int | str]]:
        """The offsets of every partition of the topics whose partitions are known, by their field of Offsets.

        read_committed: topics whose last stable offsets are read too.
        """
        known = [(topic, n) for topic, count in partitions.items() if not isinstance(count, str) for n in range(count)]
        stable = [each for each in known if each[0] in read_committed]
        answers = self._list_offsets({"earliest": known, "latest": known, "stable": stable})
        transient = {name: _transient(each) for name, each in answers.items()}
        if any(transient.values()):
            # Describing the topics makes the client learn their leaders; otherwise the error repeats.
            self.partitions(sorted({topic for each in transient.values() for topic, _ in each}))
            second = self._list_offsets(transient)
            answers = {name: each | second[name] for name, each in answers.items()}
            self.has_old_leaders = any(_transient(each) for each in answers.values())
        _raise_if_unreachable(answers["latest"])
        return {name: _offsets(each) for name, each in answers.items()}

    def _list_offsets(self, wanted: Mapping[str, list[Partition]]) -> dict[str, dict[Partition, Any]]:
        requests = {name: self._request_offsets(each, *_LOG_OFFSETS[name]) for name, each in wanted.items()}
        return {name: _answers(futures, self._left_s()) for name, futures in requests.items()}

    def _request_offsets(
        self, partitions: list[Partition], spec: Any, isolation: IsolationLevel
    ) -> "dict[Partition, Future[Any]]":
        if not partitions:
            return {}
        request = {TopicPartition(topic, number): spec for topic, number in partitions}
        futures = self._admin.list_offsets(request, isolation_level=isolation, request_timeout=self._left_s())
        return {(partition.topic, partition.partition): future for partition, future in futures.items()}


def coordinator_partition(group: str, count: int) -> int:
    """The partition of __consumer_offsets with the commits of a group; its leader is the coordinator of the group.

    count: partitions of __consumer_offsets. Source: GroupCoordinatorService.partitionFor, Java's String.hashCode.
    """
    code = 0
    units = group.encode("utf-16-be")
    for unit in (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)):
        code = (31 * code + unit) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >> 31 else code
    return (abs(signed) & 0x7FFFFFFF) % count  # the smallest code counts as 0


def _answers(futures: "Mapping[_Key, Future[Any]]", within_s: float) -> dict[_Key, Any]:
    """The answer of each request, or its KafkaError."""
    wait(futures.values(), within_s + _GRACE_S)
    answers: dict[_Key, Any] = {}
    for key, future in futures.items():
        try:
            answers[key] = future.result(timeout=0)
        except KafkaException as error:
            answers[key] = error.args[0]
        except TimeoutError:
            answers[key] = KafkaError(KafkaError._TIMED_OUT)
    return answers


def _transient(answers: Mapping[_Key, Any]) -> list[_Key]:
    return [key for key, answer in answers.items() if isinstance(answer, KafkaError) and answer.name() in TRANSIENT]


def _raise_if_unreachable(answers: Mapping[_Key, Any]) -> None:
    """Raise UnreachableError if every request failed. A single broker that is away affects only its groups."""
    errors = [_error(answer) for answer in answers.values()]
    if errors and all(_is_unreachable(error) for error in errors):
        raise UnreachableError(errors[0].str() if errors[0] else "")


def _is_unreachable(error: KafkaError | None) -> bool:
    return error is not None and error.name() in UNREACHABLE


def _error(answer: Any) -> KafkaError | None:
    """The error of an answer. After a timeout, list_offsets does not raise: it returns the offset -1001."""
    if isinstance(answer, KafkaError):
        return answer
    return KafkaError(KafkaError._TIMED_OUT) if getattr(answer, "offset", 0) < 0 else None


def _commits(group: str, answer: Any) -> dict[Partition, int] | str:
    parts = [] if isinstance(answer, KafkaError) else answer.topic_partitions
    error = answer if isinstance(answer, KafkaError) else next((part.error for part in parts if part.error), None)
    if error is not None:
        return group_fault(group, error.name(), error.str())
    return {(part.topic, part.partition): part.offset for part in parts}


def _offsets(answers: Mapping[Partition, Any]) -> dict[Partition, int | str]:
    return {
        (topic, number): f"partition {number} of topic {topic}: {answer.str()}"
        if isinstance(answer, KafkaError)
        else answer.offset
        for (topic, number), answer in answers.items()
    }
