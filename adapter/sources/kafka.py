"""Kafka's committed and log-end offsets -> samples, with a handful of requests a tick for all groups."""

import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka import admin as client

from adapter.config import Config, KafkaSource
from adapter.errors import SourceError
from adapter.sources import Row
from adapter.sources.kafka_admin import Admin, Open
from adapter.sources.kafka_errors import LOST, TRANSIENT, group_fault, topic_fault
from adapter.sources.kafka_properties import merged, without_secrets
from adapter.sources.offsets import Offsets, Partition, Plan, found_readings, members, readings, rows

__all__ = ["KafkaReader", "check", "readings"]

_OffsetSpec: Any = client.OffsetSpec  # type: ignore[attr-defined]  # public, but not exported to type checkers
# Committed offsets are waited for here, not there: librdkafka (2.16, its issues 3663 and 4605) ends the process with a
# failed assertion when its own time limit for them passes while no broker is connected.
_COMMITS_TIMEOUT_S = 600.0
_GRACE_S = 0.1  # a request tells its own timeout within this
_GROUPS_AGE_S = 60.0  # a new group of a fleet is found within a minute
_Key = TypeVar("_Key", bound=Hashable)


def check(config: Config) -> list[str]:
    """Faults of Kafka sources' properties, as librdkafka judges them; nothing is waited for."""
    faults = []
    for name, source in config.sources.items():
        if isinstance(source, KafkaSource):
            try:
                _client(name, source, lambda error: None)
            except SourceError as error:
                faults.append(f"sources.{name}.{error.cause}")
    return faults


class KafkaReader:
    """Reads one Kafka cluster. It has no past: offsets are told as they are now."""

    def __init__(
        self,
        name: str,
        settings: KafkaSource,
        plan: Plan,
        clock: Callable[[], float] = time.time,
        open_admin: Open | None = None,
    ) -> None:
        self._name = name
        self._settings = settings
        self._plan = plan
        self._clock = clock
        self._open_admin = open_admin or _client
        self._admin: Admin | None = None
        self._groups: frozenset[str] = frozenset()
        self._groups_until_s = 0.0
        self._settled: frozenset[str] = frozenset()  # groups whose coordinator answered at the last tick
        self._trouble = ""

    def samples(self, start_s: int, end_s: int, step_s: int) -> list[Row]:
        """The offsets now, as the tick end_s; nothing when that tick is older than one step."""
        if self._clock() - end_s >= step_s or not (self._plan.explicit or self._plan.patterns):
            return []
        admin = self._admin = self._admin or self._open_admin(self._name, self._settings, self._on_error)
        admin.poll(0)  # callbacks of the time between two ticks, else they pile up
        self._trouble = ""
        try:
            ask = _Questions(admin, self._settings.deadline_s)
            found = self._rows(ask, end_s)
            if ask.is_mistaken:
                self._admin = None
            return found
        except _LostError as lost:
            self._settled = frozenset()
            admin.poll(0)
            raise SourceError(self._name, self._no_answer(str(lost))) from lost

    def close(self) -> None:
        """Drop the client; its threads end with it."""
        self._admin = None

    def _rows(self, ask: "_Questions", at_s: int) -> list[Row]:
        ask.anyone()
        found = members(self._plan, self._known_groups(ask))
        explicit = self._plan.explicit
        groups = {group for reading in explicit for group, _ in reading.inputs} | {group for _, group in found}
        committed = ask.committed(sorted(groups), self._settled)
        self._settled = frozenset(group for group, told in committed.items() if not isinstance(told, str))
        workloads = [*explicit, *found_readings(self._plan, found, committed)]
        partitions = ask.partitions(sorted({topic for reading in workloads for _, topic in reading.inputs}))
        earliest, latest = ask.first_and_end(partitions)
        offsets = Offsets(committed, partitions, earliest, latest)
        return [row for reading in workloads for row in rows(reading, offsets, at_s, self._plan.offset_reset)]

    def _known_groups(self, ask: "_Questions") -> frozenset[str]:
        """Names of all groups, at most a minute old; those of a broker that does not answer are kept."""
        if not self._plan.patterns or self._clock() < self._groups_until_s:
            return self._groups
        listed, complete = ask.groups()
        self._groups = listed if complete else self._groups | listed
        self._groups_until_s = self._clock() + (_GROUPS_AGE_S if complete else 0.0)
        return self._groups

    def _on_error(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # says less than the error before it
            self._trouble = error.str()

    def _no_answer(self, lost: str) -> str:
        cause = without_secrets(self._trouble or lost, merged(self._name, self._settings))
        return f"no answer from {self._settings.bootstrap_servers} within {self._settings.deadline_s:g} s: {cause}"


def _client(name: str, settings: KafkaSource, on_error: Callable[[KafkaError], None]) -> Any:
    properties = merged(name, settings)
    configuration: dict[str, Any] = {
        "client.id": "backlog-adapter",
        "log_level": 0,  # librdkafka writes to stderr past every logger; its errors come to on_error
        **properties,
        "bootstrap.servers": settings.bootstrap_servers,
        "error_cb": on_error,
    }
    try:
        return client.AdminClient(configuration)
    except KafkaException as error:
        cause = without_secrets(error.args[0].str(), properties)
        raise SourceError(name, f"properties: not accepted by librdkafka: {cause}") from None


class _LostError(Exception):
    """No broker answered, or none that lets us in."""


class _Questions:
    """The questions of one tick and the time that is left for them."""

    def __init__(self, admin: Admin, deadline_s: float) -> None:
        self._admin = admin
        self._ends_s = time.monotonic() + deadline_s
        self.is_mistaken = False  # the client holds leaders that are no more, and keeps them: a new client is needed

    def _left_s(self, share: float = 1.0) -> float:
        return max(0.001, share * (self._ends_s - time.monotonic()))

    def anyone(self) -> None:
        """Is a broker there? No other question is safe to ask, or worth its time, before one has answered."""
        _raise_if_lost(
            _settle({"cluster": self._admin.describe_cluster(request_timeout=self._left_s())}, self._left_s())
        )

    def groups(self) -> tuple[frozenset[str], bool]:
        """Names of all groups, and whether every broker answered."""
        answer = _settle(
            {"groups": self._admin.list_consumer_groups(request_timeout=self._left_s(0.5))}, self._left_s()
        )["groups"]
        errors = [answer] if isinstance(answer, KafkaError) else answer.errors
        listed = frozenset() if isinstance(answer, KafkaError) else frozenset(group.group_id for group in answer.valid)
        if errors and not listed:
            raise _LostError(errors[0].str())
        return listed, not errors

    def committed(self, groups: Iterable[str], settled: frozenset[str]) -> dict[str, dict[Partition, int] | str]:
        """Committed offsets of each group, in half of the time left: a dead coordinator costs its groups, no others.

        settled: groups whose coordinator is known to answer. The others are described first: asked for the offsets of a
        group whose coordinator is not there yet, librdkafka (2.16) was seen to end the process.
        """
        absent = self._without_coordinator([group for group in groups if group not in settled])
        answers = _settle(self._asked_commits(group for group in groups if group not in absent), self._left_s(0.5))
        answers |= _settle(self._asked_commits(_transient(answers)), self._left_s(0.5))
        answers |= absent
        _raise_if_lost(answers)
        return {group: _commits(group, answer) for group, answer in answers.items()}

    def _without_coordinator(self, groups: list[str]) -> dict[str, Any]:
        """Of these groups, those that no coordinator speaks for, with the error that says so."""
        if not groups:
            return {}
        asked = self._admin.describe_consumer_groups(groups, request_timeout=self._left_s(0.5))
        answers = _settle(asked, self._left_s(0.5))
        return {
            group: answer
            for group, answer in answers.items()
            if isinstance(answer, KafkaError) and answer.name() in TRANSIENT | LOST
        }

    def _asked_commits(self, groups: Iterable[str]) -> "dict[str, Future[Any]]":
        """One request a group is all the client has; all are under way before the first is waited for."""
        ask = self._admin.list_consumer_group_offsets
        names = {group: [ConsumerGroupTopicPartitions(group)] for group in groups}
        return {group: ask(name, request_timeout=_COMMITS_TIMEOUT_S)[group] for group, name in names.items()}

    def partitions(self, topics: list[str]) -> dict[str, int | str]:
        """How many partitions each topic has."""
        if not topics:
            return {}
        answers = _settle(
            self._admin.describe_topics(TopicCollection(topics), request_timeout=self._left_s()), self._left_s()
        )
        _raise_if_lost(answers)
        return {
            topic: topic_fault(topic, answer.name(), answer.str())
            if isinstance(answer, KafkaError)
            else len(answer.partitions)
            for topic, answer in answers.items()
        }

    def first_and_end(
        self, partitions: Mapping[str, int | str]
    ) -> tuple[dict[Partition, int | str], dict[Partition, int | str]]:
        """First and end offset of every partition of the topics that have a number."""
        wanted = [(topic, n) for topic, count in partitions.items() if not isinstance(count, str) for n in range(count)]
        first, end = self._list_offsets(wanted, wanted)
        again_first, again_end = _transient(first), _transient(end)
        if again_first or again_end:
            # Asking for the topics makes the client learn their leaders anew; without that the error repeats.
            self.partitions(sorted({topic for topic, _ in [*again_first, *again_end]}))
            more_first, more_end = self._list_offsets(again_first, again_end)
            first, end = first | more_first, end | more_end
            self.is_mistaken = bool(_transient(first) or _transient(end))
        _raise_if_lost(end)
        return _offsets(first), _offsets(end)

    def _list_offsets(
        self, first: list[Partition], end: list[Partition]
    ) -> tuple[dict[Partition, Any], dict[Partition, Any]]:
        asked = [self._asked_offsets(first, _OffsetSpec.earliest()), self._asked_offsets(end, _OffsetSpec.latest())]
        earliest, latest = (_settle(futures, self._left_s()) for futures in asked)
        return earliest, latest

    def _asked_offsets(self, partitions: list[Partition], spec: Any) -> "dict[Partition, Future[Any]]":
        if not partitions:
            return {}
        request = {TopicPartition(topic, number): spec for topic, number in partitions}
        futures = self._admin.list_offsets(request, request_timeout=self._left_s())
        return {(asked.topic, asked.partition): future for asked, future in futures.items()}


def _settle(futures: "Mapping[_Key, Future[Any]]", within_s: float) -> dict[_Key, Any]:
    """Every answer, or the KafkaError in its place."""
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


def _raise_if_lost(answers: Mapping[_Key, Any]) -> None:
    """One broker of many may be away and cost its groups; when nothing at all was answered, the cluster is."""
    errors = [_error(answer) for answer in answers.values()]
    if errors and all(error is not None and error.name() in LOST for error in errors):
        raise _LostError(errors[0].str() if errors[0] else "")


def _error(answer: Any) -> KafkaError | None:
    """list_offsets does not raise on a timeout: it answers the offset -1001."""
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
