"""Read committed offsets and log end offsets from Kafka, all groups of a cluster in one tick."""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import admin as client

from adapter.config import Config, KafkaReading, KafkaSource
from adapter.config.faults import Fault
from adapter.core.samples import EVERY
from adapter.errors import SourceError
from adapter.sources.history_file import HistoryFile
from adapter.sources.kafka_errors import other_group_fault
from adapter.sources.kafka_plan import ReadPlan
from adapter.sources.kafka_properties import Inputs, exists, inputs, mask_secrets, merge
from adapter.sources.kafka_requests import GroupListing, KafkaRequests, UnreachableError
from adapter.sources.kafka_silence import SilentGroups
from adapter.sources.offsets import (
    Offsets,
    add_counts,
    discovered_reads,
    matching_groups,
    within_limit,
)
from adapter.sources.sample_table import SampleTable

OnError = Callable[[KafkaError], None]
Open = Callable[[str, KafkaSource, OnError], client.AdminClient]  # with the name of the source

_GROUPS_AGE_S = 60.0  # a new group of a fleet is discovered within a minute
_METADATA_AGE_MS = 15_000  # a tick by default
_SECURITY_NAMES = {"security.protocol", "sasl.mechanism", "sasl.mechanisms"}
_PLACEHOLDERS = {  # what a missing properties file may say
    "security.protocol": "sasl_ssl",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "unknown",
    "sasl.password": "unknown",
}

_CONSUMERS = {  # properties of consumers, and what to set instead
    "auto.offset.reset": "set offset_reset of the source",
    "isolation.level": "set isolation_level beside topics, or beside groups in a fleet",
    "group.id": "name the group beside topics, or groups in a fleet",
}


def check(config: Config) -> list[str]:
    """Faults in the properties of Kafka sources, found by librdkafka without a connection."""
    faults = []
    for name, source in config.sources.items():
        if isinstance(source, KafkaSource):
            try:
                _check(name, source)
            except SourceError as error:
                faults.append(f"sources.{name}.{error.cause}")
    return faults


def hints(config: Config) -> list[str]:
    """Properties that have no effect, and groups whose names probably are others.

    Each sentence begins with its path.
    """
    kafka = {name: source for name, source in config.sources.items() if isinstance(source, KafkaSource)}
    found = ((name, _without_protocol(name, source)) for name, source in kafka.items())
    ineffective = [f"sources.{name}.properties: {sentence}" for name, sentence in found if sentence]
    of_consumers = [
        f"sources.{name}.properties: {key} has no effect, because the adapter consumes no records; {_CONSUMERS[key]}"
        for name, source in kafka.items()
        for key in source.properties
        if key in _CONSUMERS
    ]
    return [*ineffective, *of_consumers, *_unlikely_groups(config)]


def _unlikely_groups(config: Config) -> Iterator[str]:
    for at, workload in enumerate(config.workloads):
        for number, reading in enumerate(workload.read):
            if isinstance(reading, KafkaReading) and (text := _unlikely_group(reading.group)):
                yield Fault(("workloads", at, "read", number, "group"), text).sentence()


def _unlikely_group(group: str) -> str | None:
    if "*" in group:
        meant = re.sub(r"(?<!\.)\*", ".*", group)
        return f"names one group, because * is no wildcard here; for all that match, use a fleet with groups: {meant}"
    if "${" in group:
        return "names one group as written, because variables of the environment are not replaced in this file"
    if group != group.strip():
        return "begins or ends with a space, which is a part of the name; remove it"
    return None


def _without_protocol(name: str, settings: KafkaSource) -> str:
    mounted = exists(settings.properties_file)
    properties = merge(name, settings) if mounted else settings.properties
    first = next((key for key in properties if key.startswith(("sasl.", "ssl."))), None)
    if first is None or "security.protocol" in properties:
        return ""
    unless = "" if mounted else f", unless {settings.properties_file} does"
    protocol = "SASL_SSL" if any(key.startswith("sasl.") for key in properties) else "SSL"
    return f"{first} has no effect without security.protocol (default plaintext); set it, such as {protocol}{unless}"


class KafkaReader:
    """Reads the current offsets of one Kafka cluster, which stores no past offsets."""

    def __init__(
        self,
        name: str,
        settings: KafkaSource,
        plan: ReadPlan,
        clock: Callable[[], float] = time.time,
        open_admin: Open | None = None,
    ) -> None:
        self._name = name
        self._settings = settings
        self._plan = plan
        self._clock = clock
        self._open_admin = open_admin or _client
        self._admin: client.AdminClient | None = None
        self._inputs: Inputs | None = None  # of the client
        self._groups = GroupListing()
        self._listed_at_s = -math.inf
        self._answered: frozenset[str] = frozenset()  # groups whose coordinator answered the client in the last tick
        self._unanswered: dict[str, Future[Any]] = {}  # by group
        self._silent = SilentGroups()
        self._history = HistoryFile(plan.history_file)
        self._last_error = ""

    def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        """The current offsets as the tick end_s. A tick older than one step has none; for a fleet, that is a fault."""
        table = SampleTable()
        is_present = self._clock() - end_s < step_s
        if self._plan.patterns:  # so that the absence of samples does not end the workloads that a fleet discovered
            for at_s in range(start_s, end_s if is_present else end_s + 1, step_s):
                table.add_fault(at_s, EVERY, f"{self._name}: this tick was missed, and Kafka stores no past offsets")
        if is_present and (self._plan.explicit or self._plan.patterns):
            self._read(table, end_s)
        return table.finish()

    def close(self) -> None:
        """Drop the client, which ends its threads."""
        self._admin = None
        self._answered = frozenset()
        self._unanswered = {}
        self._silent.restart()

    def _read(self, table: SampleTable, at_s: int) -> None:
        admin = self._current_client()
        admin.poll(0)  # run the callbacks since the last tick, otherwise they pile up
        requests = KafkaRequests(admin, self._settings.deadline_s, self._unanswered)
        try:
            self._add_all(table, requests, at_s)
            self._last_error = ""  # only after an answer: librdkafka reports a failed token once, not in every tick
        except UnreachableError as error:
            self._answered = frozenset()
            admin.poll(0)
            raise SourceError(self._name, self._no_answer(str(error))) from error
        finally:
            if requests.silent_groups is not None:
                self._silent.update(requests.silent_groups, self._clock())
            if requests.has_old_leaders or self._silent.need_new_client:
                self.close()

    def _current_client(self) -> client.AdminClient:
        """The client, opened anew after its properties or the files that they name have changed."""
        current = inputs(self._name, self._settings)
        if current != self._inputs:
            self.close()
        if self._admin is None:
            self._admin = self._open_admin(self._name, self._settings, self._on_error)
            self._inputs = current
        return self._admin

    def _add_all(self, table: SampleTable, requests: KafkaRequests, at_s: int) -> None:
        requests.check_connection()
        if self._plan.patterns:
            self._list_groups(requests)
        found, faults = within_limit(matching_groups(self._plan, self._groups.consumers | self._groups.others))
        for fault in faults:
            table.add_fault(at_s, EVERY, fault)
        explicit = self._plan.explicit
        groups = {group for read in explicit for group, _ in read.inputs} | {group for _, group in found}
        committed = requests.read_commits(sorted(groups), self._answered)
        self._answered = frozenset(group for group, answer in committed.items() if not isinstance(answer, str))
        committed |= self._other_group_faults(requests, {group for group, answer in committed.items() if not answer})
        workloads = [*explicit, *discovered_reads(self._plan, found, committed)]
        partitions = requests.partitions(sorted({topic for read in workloads for _, topic in read.inputs}))
        read_committed = {topic for read in workloads for _, topic in read.read_committed}
        log = requests.log_offsets(partitions, read_committed)
        offsets = Offsets(at_s=at_s, committed=committed, partitions=partitions, **log)
        before = self._history.load()
        histories = {
            read.workload: history
            for read in workloads
            if (history := add_counts(table, read, offsets, self._plan, before.get(read.workload)))
        }
        self._history.store(histories)

    def _list_groups(self, requests: KafkaRequests) -> None:
        """List the groups once a minute; groups of a broker that does not answer stay."""
        now_s = self._clock()
        if 0 <= now_s - self._listed_at_s < _GROUPS_AGE_S:  # negative after the clock was set back
            return
        before, self._groups = self._groups, requests.groups()
        self._listed_at_s = now_s  # also after a partial listing: a broker that is away costs most of the deadline
        if not self._groups.complete:
            self._groups = replace(before, consumers=before.consumers | self._groups.consumers)

    def _other_group_faults(self, requests: KafkaRequests, silent: set[str]) -> dict[str, str]:
        """The faults of the share and streams groups among the groups without a commit."""
        if silent and not self._plan.patterns:  # with patterns, the groups are listed already
            with suppress(UnreachableError):  # the brokers answered the other requests
                self._list_groups(requests)
        return {group: other_group_fault(group) for group in silent & self._groups.others}

    def _on_error(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # the error before it has the cause
            self._last_error = error.str()

    def _no_answer(self, error: str) -> str:
        cause = mask_secrets(self._last_error or error, merge(self._name, self._settings))
        return f"no answer from {self._settings.bootstrap_servers} within {self._settings.deadline_s:g} s: {cause}"


def _check(name: str, settings: KafkaSource) -> None:
    """Raises SourceError for properties that librdkafka refuses.

    Files may exist only where the pipeline runs. Without one of them, librdkafka cannot check the security settings
    together, but it still knows the names of protocols and mechanisms.
    """
    mounted = exists(settings.properties_file)
    properties = merge(name, settings if mounted else settings.model_copy(update={"properties_file": None}))
    if mounted and all(exists(value) for key, value in properties.items() if key.endswith(".location")):
        _check_protocol(name, settings.bootstrap_servers, properties.get("security.protocol", "plaintext"))
    else:
        if mounted:
            security = {key: value for key, value in properties.items() if not key.startswith("ssl.")}
        else:
            security = _PLACEHOLDERS | {key: properties[key] for key in _SECURITY_NAMES & properties.keys()}
        _open_client(name, security, lambda error: None)
        properties = {**properties, "security.protocol": "plaintext"}
    _open_client(name, properties, lambda error: None)  # without an address, it connects to nothing


def _client(name: str, settings: KafkaSource, on_error: OnError) -> client.AdminClient:
    properties = merge(name, settings)
    _check_protocol(name, settings.bootstrap_servers, properties.get("security.protocol", "plaintext"))
    return _open_client(name, {**properties, "bootstrap.servers": settings.bootstrap_servers}, on_error)


def _open_client(name: str, properties: Mapping[str, str], on_error: OnError) -> client.AdminClient:
    configuration: dict[str, Any] = {
        "client.id": "backlog-adapter",
        "log_level": 0,  # librdkafka writes to stderr and bypasses every logger; on_error receives its errors
        # describe_cluster waits for the broker that is the controller in the client's metadata. If it is lost, only new
        # metadata have another one, and librdkafka renews them every 5 minutes by default.
        "topic.metadata.refresh.interval.ms": _METADATA_AGE_MS,
        **properties,
        "error_cb": on_error,
    }
    try:
        return client.AdminClient(configuration)
    except KafkaException as error:
        cause = mask_secrets(error.args[0].str(), properties)
        raise SourceError(name, f"properties: not accepted by librdkafka: {cause}") from None


def _check_protocol(name: str, brokers: str, protocol: str) -> None:
    """Raises SourceError if an address has another protocol: librdkafka would ignore that address without a reason."""
    others = {found for found in re.findall(r"(\w+)://", brokers) if found.lower() != protocol.lower()}
    if others:
        text = f"expected the protocol of security.protocol, {protocol}, or none, got {', '.join(sorted(others))}"
        raise SourceError(name, f"bootstrap_servers: {text}")
