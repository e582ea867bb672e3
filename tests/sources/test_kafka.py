"""The reader on answers that a real broker gave; data/kafka/*.json are the calls of one tick each."""

import json
import socket
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException
from sample_rows import rows_of

from adapter import config
from adapter.config import Config, KafkaReading, KafkaSource
from adapter.core.samples import EVERY
from adapter.errors import SourceError
from adapter.sources.kafka import KafkaReader, check, hints
from adapter.sources.kafka_plan import GroupPattern, GroupRead, ReadPlan, read_plan
from adapter.sources.kafka_properties import mask_secrets, parse
from adapter.sources.kafka_requests import coordinator_partition
from adapter.sources.sample_table import FAULT

RECORDED = Path(__file__).parents[1] / "data" / "kafka"
SETTINGS = KafkaSource(kind="kafka", bootstrap_servers="broker:9092", deadline_s=2)
PLAN = ReadPlan(
    explicit=(
        GroupRead("shop/orders", (("orders", "orders"),)),
        GroupRead("shop/lost", (("orders", "nope"),)),
        GroupRead("shop/idle", (("nobody", "clicks"),)),
    ),
    patterns=(GroupPattern(0, "web", "clicks.*"),),
    offset_reset="earliest",
)
NOW_S = 1_700_000_000


def settled(answer: Any, shaped: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(answer, Mapping) and "error" in answer:
        code = getattr(KafkaError, answer["error"])
        future.set_exception(KafkaException(KafkaError(code, answer["text"])))
    else:
        future.set_result(shaped(answer))
    return future


class Cluster:
    """An AdminClient that answers with recorded calls, each kind in its order; it fails on other calls."""

    def __init__(self, *names: str) -> None:
        calls = [call for name in names for call in json.loads((RECORDED / f"{name}.json").read_text())["calls"]]
        self.by_kind: dict[str, list[Any]] = {}
        for kind, *answer in calls:
            self.by_kind.setdefault(kind, []).append(answer)
        self.requests: list[str] = []
        self.on_error: Any = None
        self.errors: list[KafkaError] = []
        self.coordinator_errors: dict[str, str] = {}  # by group
        self.without_classic_state: set[str] = set()
        self.old_listing_fault: KafkaError | None = None
        self.described: list[str] = []
        self.clients = 0

    def open(self, name: str, settings: KafkaSource, on_error: Any) -> "Cluster":
        self.clients += 1
        self.on_error = on_error
        return self

    def _next(self, kind: str) -> Any:
        self.requests.append(kind)
        return self.by_kind[kind].pop(0)

    def poll(self, timeout_s: float) -> int:
        for error in self.errors:
            self.on_error(error)
        return len(self.errors)

    def describe_cluster(self, **settings: Any) -> Future[Any]:
        return settled(self._next("cluster")[0], lambda nodes: SimpleNamespace(nodes=nodes))

    def list_consumer_groups(self, **settings: Any) -> Future[Any]:
        return settled(self._next("groups")[0], listing)

    def list_groups(self, *, timeout: float) -> list[Any]:
        """Share groups are dead classic groups without a protocol type, and so are next-generation groups."""
        if self.old_listing_fault is not None:
            raise KafkaException(self.old_listing_fault)
        return [SimpleNamespace(id=group, state="Dead", protocol_type="") for group in self.without_classic_state]

    def describe_consumer_groups(self, groups: list[str], **settings: Any) -> dict[str, Future[Any]]:
        """Not recorded: every group has a coordinator, except those that a test names."""
        self.requests.append("described")
        self.described += groups
        errors = {group: {"error": name, "text": "no coordinator"} for group, name in self.coordinator_errors.items()}
        return {group: settled(errors.get(group, {}), lambda _: None) for group in groups}

    def list_consumer_group_offsets(self, request: Any, **settings: Any) -> dict[str, Future[Any]]:
        self.requests.append("committed")
        recorded = dict(self.by_kind["committed"])
        group = request[0].group_id
        return {group: settled(recorded[group], committed)}

    def describe_topics(self, topics: Any, **settings: Any) -> dict[str, Future[Any]]:
        answers = self._next("topics")[0]
        return {
            topic: settled(answers[topic], lambda count: SimpleNamespace(partitions=[None] * count))
            for topic in topics.topic_names
        }

    def list_offsets(self, partitions: Any, **settings: Any) -> dict[Any, Future[Any]]:
        kind = "earliest" if "Earliest" in type(next(iter(partitions.values()))).__name__ else "latest"
        if settings["isolation_level"] is IsolationLevel.READ_COMMITTED:
            kind = "stable"
        answers = {(topic, number): answer for topic, number, answer in self._next(kind)[0]}
        return {
            part: settled(answers[part.topic, part.partition], lambda offset: SimpleNamespace(offset=offset))
            for part in partitions
        }


def listing(answer: Any) -> Any:
    errors = [KafkaError(getattr(KafkaError, error["error"]), error["text"]) for error in answer["errors"]]
    return SimpleNamespace(valid=[SimpleNamespace(group_id=group) for group in answer["groups"]], errors=errors)


def committed(answer: Any) -> Any:
    parts = [SimpleNamespace(topic=t, partition=p, offset=offset, error=None) for t, p, offset in answer]
    return SimpleNamespace(topic_partitions=parts)


def reader(cluster: Cluster, plan: ReadPlan = PLAN, now_s: float = NOW_S) -> KafkaReader:
    return KafkaReader("kafka", SETTINGS, plan, lambda: now_s, cluster.open)


def seen(source: KafkaReader, at_s: int = NOW_S) -> dict[tuple[str, str], float | str]:
    return {(row.workload, row.signal): row.text or row.value for row in rows_of(source.samples(at_s, at_s, 15))}


def test_a_tick_of_a_real_broker() -> None:
    found = seen(reader(Cluster("a_tick")))
    assert found[("shop/orders", "processed_records")] == 990.0
    assert found[("shop/orders", "appended_records")] == 1100.0
    assert found[("shop/orders", "backlog_records")] == 210.0  # 11 partitions 10 behind, one never committed
    assert found[("shop/orders", "partitions")] == 12.0
    assert found[("shop/lost", FAULT)] == "topic nope does not exist"
    assert str(found[("shop/idle", FAULT)]).startswith("group nobody has no committed offset on topic clicks")
    assert found[("web/clicks-eu", "fleet")] == 0.0
    assert found[("web/clicks-eu", "backlog_records")] == 177.0
    assert found[("web/clicks.us", "partitions")] == 5.0  # 3 of clicks, 2 of audit


def test_the_backlog_of_a_read_committed_group_ends_at_the_last_stable_offset() -> None:
    cluster, inputs = Cluster("a_tick"), (("orders", "orders"),)
    [[ends]] = cluster.by_kind["latest"]
    orders = [end for end in ends if end[0] == "orders"]
    cluster.by_kind["stable"] = [[[[topic, number, end - 4] for topic, number, end in orders]]]
    waiting = GroupRead("shop/orders", inputs, read_committed=frozenset(inputs))
    found = seen(reader(cluster, replace(PLAN, explicit=(waiting, *PLAN.explicit[1:]))))
    assert found[("shop/orders", "backlog_records")] == 210.0 - 12 * 4
    assert found[("shop/orders", "appended_records")] == 1100.0
    assert found[("web/clicks-eu", "backlog_records")] == 177.0


def test_committed_offsets_are_read_before_log_end_offsets() -> None:
    cluster = Cluster("a_tick")
    seen(reader(cluster))
    assert cluster.requests == ["cluster", "groups", "described", *["committed"] * 4, "topics", "earliest", "latest"]


def test_the_offsets_of_a_group_without_a_coordinator_are_not_requested() -> None:
    cluster = Cluster("a_tick")
    cluster.coordinator_errors = {"nobody": "NOT_COORDINATOR"}
    found = seen(reader(cluster))
    assert found[("shop/idle", FAULT)] == "group nobody: no coordinator"
    assert found[("shop/orders", "backlog_records")] == 210.0
    commit_requests = len([kind for kind in cluster.requests if kind == "committed"])
    assert commit_requests == len(cluster.described) - 1


def test_a_group_whose_coordinator_answered_is_not_described_again() -> None:
    cluster = Cluster("a_tick", "a_tick")
    source = reader(cluster)
    seen(source)
    cluster.described.clear()
    seen(source)
    assert "orders" not in cluster.described


@pytest.mark.parametrize(
    ("later_s", "listings"),
    [
        pytest.param(59, 1, id="within the minute"),
        pytest.param(60, 2, id="after a minute"),
        pytest.param(-3600, 2, id="after the clock was set back"),
    ],
)
def test_groups_are_listed_once_a_minute(later_s: int, listings: int) -> None:
    cluster, now_s = Cluster("a_tick", "after_retention"), NOW_S
    cluster.by_kind["groups"] *= 2
    source = KafkaReader("kafka", SETTINGS, PLAN, lambda: now_s, cluster.open)
    seen(source)
    now_s += later_s
    assert seen(source, now_s)[("web/clicks-eu", "backlog_records")] == 177.0
    assert cluster.requests.count("groups") == listings


def test_groups_are_listed_once_a_minute_too_while_a_broker_is_away() -> None:
    cluster = Cluster("a_tick", "after_retention")
    cluster.by_kind["groups"] = [
        [{"groups": answer["groups"], "errors": [AWAY]}] for (answer,) in cluster.by_kind["groups"]
    ]
    source = KafkaReader("kafka", SETTINGS, PLAN, lambda: NOW_S, cluster.open)
    seen(source)
    assert seen(source)[("web/clicks-eu", "backlog_records")] == 177.0
    assert cluster.requests.count("groups") == 1


AWAY = {"error": "_TRANSPORT", "text": "a broker does not answer"}
NO_CONSUMER_GROUP = (
    "has no committed offset and is no consumer group: a streams group (KIP-1071) is read after its first commit; a "
    "share group (KIP-932) is not supported"
)


def with_other_groups(*names: str) -> Cluster:
    cluster = Cluster("a_tick")
    cluster.without_classic_state = set(names)
    cluster.by_kind["committed"] += [[name, []] for name in names]
    return cluster


def test_a_configured_group_that_is_no_consumer_group_has_a_fault_of_its_own() -> None:
    found = seen(reader(with_other_groups("nobody")))
    assert str(found[("shop/idle", FAULT)]).startswith(f"group nobody {NO_CONSUMER_GROUP}")
    assert found[("shop/orders", "backlog_records")] == 210.0


def test_a_group_of_a_fleet_that_is_no_consumer_group_has_a_fault_of_its_own() -> None:
    found = seen(reader(with_other_groups("clicks-shared")))
    assert str(found[("web/clicks-shared", FAULT)]).startswith(f"group clicks-shared {NO_CONSUMER_GROUP}")
    assert found[("web/clicks-shared", "fleet")] == 0.0


def test_a_next_generation_group_is_a_consumer_group() -> None:
    """The old listing calls it dead too, but the listing of consumer groups has it."""
    cluster = Cluster("a_tick")
    cluster.without_classic_state = {"clicks-eu", "orders"}
    found = seen(reader(cluster))
    assert found[("web/clicks-eu", "backlog_records")] == 177.0
    assert found[("shop/orders", "backlog_records")] == 210.0


def test_without_the_old_listing_a_group_without_a_commit_has_the_general_fault() -> None:
    cluster = with_other_groups("nobody")
    cluster.old_listing_fault = KafkaError(KafkaError._PARTIAL, "Local: Partial response")
    found = seen(reader(cluster))
    assert str(found[("shop/idle", FAULT)]).startswith(
        "group nobody has no committed offset on topic clicks: it has not"
    )


def test_records_deleted_by_a_real_broker_are_no_backlog_x_04() -> None:
    source = reader(Cluster("a_tick", "after_retention"))
    seen(source)
    assert seen(source)[("shop/orders", "backlog_records")] == 205.0  # partition 0 begins at 95, its commit is 90


def test_new_partition_leaders_are_learned_within_the_tick() -> None:
    cluster = Cluster("a_tick", "after_a_pause")
    source = reader(cluster)
    seen(source)
    cluster.requests.clear()
    assert seen(source)[("shop/orders", "backlog_records")] == 205.0
    assert cluster.requests[-6:] == ["topics", "earliest", "latest", "topics", "earliest", "latest"]


def test_a_stopped_broker_is_an_error_of_the_source_and_no_commit_is_requested() -> None:
    cluster = Cluster("a_stopped_broker")
    with pytest.raises(SourceError, match=r"^kafka: no answer from broker:9092 within 2 s: .*Timed out$"):
        seen(reader(cluster))
    assert cluster.requests == ["cluster"]


def test_the_error_of_a_source_has_the_cause_of_the_refusal() -> None:
    cluster = Cluster("a_stopped_broker")
    cluster.errors = [
        KafkaError(KafkaError._AUTHENTICATION, "SASL PLAIN authentication failed"),
        KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"),
    ]
    with pytest.raises(SourceError, match="SASL PLAIN authentication failed"):
        seen(reader(cluster))


def test_a_cause_that_is_reported_once_stays_until_an_answer() -> None:
    cluster = Cluster("a_stopped_broker", "a_stopped_broker", "a_tick", "a_stopped_broker")
    source = reader(cluster)
    cluster.errors = [KafkaError(KafkaError._AUTHENTICATION, "no token")]
    for _ in range(2):
        with pytest.raises(SourceError, match="no token"):
            seen(source)
        cluster.errors = []
    seen(source)
    with pytest.raises(SourceError, match="Timed out"):
        seen(source)


@pytest.mark.parametrize(
    ("recording", "sentence"),
    [
        pytest.param("a_deleted_topic", "topic orders does not exist", id="deleted"),
        pytest.param("a_recreated_topic", "group orders has no committed offset on topic orders", id="recreated"),
    ],
)
def test_a_deleted_topic_affects_only_its_workload(recording: str, sentence: str) -> None:
    source = reader(Cluster("a_tick", recording))
    seen(source)
    found = seen(source)
    assert str(found[("shop/orders", FAULT)]).startswith(sentence)
    assert ("shop/orders", "backlog_records") not in found
    assert found[("web/clicks-eu", "backlog_records")] == 177.0


def test_no_log_end_offset_at_all_is_an_error_of_the_source() -> None:
    cluster = Cluster("a_tick")
    [[ends]] = cluster.by_kind["latest"]
    cluster.by_kind["latest"] = [[[[topic, number, -1001] for topic, number, _ in ends]]]
    with pytest.raises(SourceError, match="Timed out"):
        seen(reader(cluster))


def test_a_missing_log_end_offset_affects_only_its_workload() -> None:
    cluster = Cluster("a_tick")
    [[ends]] = cluster.by_kind["latest"]
    changed = [[topic, number, -1001 if (topic, number) == ("orders", 7) else end] for topic, number, end in ends]
    cluster.by_kind["latest"] = [[changed]]
    found = seen(reader(cluster))
    assert str(found[("shop/orders", FAULT)]).startswith("the log end offset of partition 7 of topic orders is missing")
    assert found[("web/clicks-eu", "backlog_records")] == 177.0


def test_the_fault_of_a_forbidden_group_names_the_fix() -> None:
    cluster = Cluster("a_tick")
    answers = dict(cluster.by_kind["committed"])
    answers["orders"] = {"error": "GROUP_AUTHORIZATION_FAILED", "text": "Broker: Group authorization failed"}
    cluster.by_kind["committed"] = [list(pair) for pair in answers.items()]
    assert seen(reader(cluster))[("shop/orders", FAULT)] == (
        "group orders: Broker: Group authorization failed: allow the adapter to Describe the group"
    )


def test_the_groups_of_a_broker_that_does_not_answer_stay() -> None:
    cluster = Cluster("a_tick", "after_retention")
    clock = SimpleNamespace(now_s=NOW_S)
    source = KafkaReader("kafka", SETTINGS, PLAN, lambda: clock.now_s, cluster.open)
    seen(source)
    clock.now_s = NOW_S + 60
    timed_out = {"error": "_TIMED_OUT", "text": "Local: Timed out"}
    cluster.by_kind["groups"] = [[{"groups": ["clicks-eu"], "errors": [timed_out]}]]
    assert ("web/clicks.us", "backlog_records") in seen(source, clock.now_s)


@pytest.mark.parametrize(
    ("late_s", "answers"),
    [
        pytest.param(14.9, True, id="within one step: the present is its tick"),
        pytest.param(15.0, False, id="a step late: the offsets of that tick are gone"),
        pytest.param(3600, False, id="the past"),
    ],
)
def test_kafka_has_no_past(late_s: float, answers: bool) -> None:
    cluster = Cluster("a_tick")
    source = reader(cluster, now_s=NOW_S + late_s)
    rows = rows_of(source.samples(NOW_S - 300, NOW_S, 15))
    assert any(row.signal != FAULT for row in rows) is answers
    assert bool(cluster.requests) is answers


@pytest.mark.parametrize(
    ("late_s", "missed"),
    [
        pytest.param(0.0, range(NOW_S - 45, NOW_S, 15), id="the ticks before the present one"),
        pytest.param(15.0, range(NOW_S - 45, NOW_S + 1, 15), id="also the last one, which is a step late"),
    ],
)
def test_missed_ticks_are_a_fault_of_a_fleet(late_s: float, missed: range) -> None:
    rows = rows_of(reader(Cluster("a_tick"), now_s=NOW_S + late_s).samples(NOW_S - 45, NOW_S, 15))
    text = "kafka: this tick was missed, and Kafka stores no past offsets"
    assert {row.at_s for row in rows if (row.workload, row.text) == (EVERY, text)} == set(missed)
    assert {row.at_s for row in rows if row.text != text} <= {NOW_S}


def test_missed_ticks_without_a_fleet_are_empty() -> None:
    source = reader(Cluster("a_tick"), ReadPlan(explicit=PLAN.explicit))
    assert {row.at_s for row in rows_of(source.samples(NOW_S - 300, NOW_S, 15))} == {NOW_S}


def test_a_source_without_workloads_gets_no_request() -> None:
    cluster = Cluster("a_tick")
    assert rows_of(reader(cluster, ReadPlan()).samples(NOW_S, NOW_S, 15)) == []
    assert cluster.requests == []


def configured(properties: str = "") -> Config:
    return config.parse(
        f"""
sources:
  main: {{kind: kafka, bootstrap_servers: "broker:9092"{properties}}}
  other: {{kind: kafka, bootstrap_servers: "other:9092"}}
workloads:
  - namespace: shop
    name: orders
    read:
      - {{source: main, group: orders, topics: [orders, returns, orders]}}
      - {{source: main, group: orders, topics: [payments], transactional: true, isolation_level: read_committed}}
  - name: clicks
    read: [{{source: other, group: clicks, topics: [clicks]}}]
fleets:
  - {{name: eu, source: other, groups: "eu-.*"}}
  - {{name: all, source: main, groups: ".*", namespace: shop, transactional: true, isolation_level: read_committed}}
pipeline: {{checkpoint: /var/lib/x}}
""",
        "test.yaml",
    )


def test_the_plan_has_the_groups_of_the_named_source_and_the_index_of_fleets() -> None:
    payments = ("orders", "payments")
    inputs = (("orders", "orders"), ("orders", "returns"), payments)
    assert read_plan(configured(), "main") == ReadPlan(
        explicit=(GroupRead("shop/orders", inputs, frozenset([payments]), frozenset([payments])),),
        patterns=(GroupPattern(1, "shop", ".*", transactional=True, read_committed=True),),
        history_file=Path("/var/lib/x/partitions-main.msgpack"),
    )


def test_valid_properties_have_no_fault() -> None:
    assert check(configured()) == []


def test_a_check_of_properties_connects_to_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(1.0)
        source = SETTINGS.model_copy(update={"bootstrap_servers": f"127.0.0.1:{server.getsockname()[1]}"})
        assert check(configured().model_copy(update={"sources": {"main": source}})) == []
        with pytest.raises(TimeoutError):
            server.accept()


def test_an_unknown_property_is_a_fault_with_its_path() -> None:
    assert check(configured(', properties: {"sesion.timeout": "5"}')) == [
        'sources.main.properties: not accepted by librdkafka: No such configuration property: "sesion.timeout"'
    ]


def test_the_protocol_of_an_address_has_to_be_the_security_protocol() -> None:
    configured_at = configured().model_copy(
        update={"sources": {"main": SETTINGS.model_copy(update={"bootstrap_servers": "SSL://a:1,PLAINTEXT://b:2"})}}
    )
    assert check(configured_at) == [
        "sources.main.bootstrap_servers: expected the protocol of security.protocol, plaintext, or none, got SSL"
    ]


ABSENT_FILES = {
    "a properties file": ", properties_file: /nowhere/kafka.properties, properties: {security.protocol: sasl_ssl",
    "a CA": ", properties: {security.protocol: ssl, ssl.ca.location: /nowhere/ca.pem",
}


@pytest.mark.parametrize("properties", ABSENT_FILES.values(), ids=ABSENT_FILES)
def test_a_file_that_is_only_where_the_pipeline_runs_hides_no_fault_of_the_others(properties: str) -> None:
    assert check(configured(properties + "}")) == []
    assert check(configured(properties + ', sesion.timeout: "5"}')) == [
        'sources.main.properties: not accepted by librdkafka: No such configuration property: "sesion.timeout"'
    ]


MISSPELT_NAMES = {
    "a protocol": ("security.protocol: sasl_sll", "sasl_sll"),
    "a mechanism": ("security.protocol: sasl_ssl, sasl.mechanism: SCRAM-SHA-521", "SCRAM-SHA-521"),
    "a mechanism, where the file has the protocol": ("sasl.mechanisms: SCRAM-SHA-521", "SCRAM-SHA-521"),
}


@pytest.mark.parametrize(("properties", "misspelt"), MISSPELT_NAMES.values(), ids=MISSPELT_NAMES)
def test_an_absent_properties_file_hides_no_misspelt_name(properties: str, misspelt: str) -> None:
    absent = f", properties_file: /nowhere/kafka.properties, properties: {{{properties}}}"
    [sentence] = check(configured(absent))
    assert sentence.startswith("sources.main.properties: not accepted by librdkafka: ")
    assert misspelt in sentence


def test_missing_credentials_are_a_fault_also_where_the_ca_file_is_absent() -> None:
    scram = (
        ", properties: {security.protocol: SASL_SSL, sasl.mechanism: SCRAM-SHA-512, ssl.ca.location: /nowhere/ca.pem}"
    )
    [sentence] = check(configured(scram))
    assert sentence.endswith("sasl.username and sasl.password must be set")
    assert check(configured(f"{scram}, properties_file: /nowhere/kafka.properties")) == []


NO_EFFECT = " has no effect without security.protocol (default plaintext); set it, such as "
HINTS = {
    "no protocol": (", properties: {sasl.mechanism: PLAIN}", [f"sasl.mechanism{NO_EFFECT}SASL_SSL"]),
    "a file that may have it": (
        ", properties: {ssl.ca.location: /ca.pem}, properties_file: /nowhere/kafka.properties",
        [f"ssl.ca.location{NO_EFFECT}SSL, unless /nowhere/kafka.properties does"],
    ),
    "a protocol": (", properties: {security.protocol: ssl, ssl.ca.location: /ca.pem}", []),
    "plaintext": ("", []),
}


@pytest.mark.parametrize(("properties", "sentences"), HINTS.values(), ids=HINTS)
def test_security_settings_without_a_protocol_are_named(properties: str, sentences: list[str]) -> None:
    assert hints(configured(properties)) == [f"sources.main.properties: {sentence}" for sentence in sentences]


def test_properties_of_consumers_are_named() -> None:
    given = ", properties: {auto.offset.reset: earliest, isolation.level: read_committed, group.id: a}"
    unread = "has no effect, because the adapter consumes no records;"
    assert hints(configured(given)) == [
        f"sources.main.properties: auto.offset.reset {unread} set offset_reset of the source",
        f"sources.main.properties: isolation.level {unread} "
        "set isolation_level beside topics, or beside groups in a fleet",
        f"sources.main.properties: group.id {unread} name the group beside topics, or groups in a fleet",
    ]


@pytest.mark.parametrize("group", ["reports-*", "reports-.*"])
def test_a_group_that_looks_like_a_pattern_is_named(group: str) -> None:
    known = configured()
    readings = [KafkaReading(source="main", group=each, topics=("reports",)) for each in ("reports", group)]
    workload = known.workloads[0].model_copy(update={"read": tuple(readings)})
    assert hints(known.model_copy(update={"workloads": (workload,)})) == [
        "workloads[0].read[1].group: names one group, because * is no wildcard here; for all that match, use a fleet "
        "with groups: reports-.*"
    ]


@pytest.mark.parametrize(
    ("group", "hint"),
    [
        ("${GROUP}", "names one group as written, because variables of the environment are not replaced in this file"),
        (" reports", "begins or ends with a space, which is a part of the name; remove it"),
        ("my reports", None),
    ],
)
def test_a_name_of_a_group_that_is_probably_another_is_named(group: str, hint: str | None) -> None:
    known = configured()
    reading = KafkaReading(source="main", group=group, topics=("reports",))
    workload = known.workloads[0].model_copy(update={"read": (reading,)})
    found = hints(known.model_copy(update={"workloads": (workload,)}))
    assert found == ([f"workloads[0].read[0].group: {hint}"] if hint else [])


def test_a_missing_properties_file_is_an_error_of_the_source_with_its_fix() -> None:
    source = KafkaReader("main", SETTINGS.model_copy(update={"properties_file": "/nowhere/kafka.properties"}), MANY)
    with pytest.raises(SourceError) as refused:
        source.samples(int(time.time()), int(time.time()), 15)
    assert str(refused.value) == (
        "main: properties_file: expected a readable file, got /nowhere/kafka.properties (no such file or directory); "
        "mount its Secret or volume there, or run this where the file is"
    )


def test_a_secret_of_the_properties_file_is_in_no_message(tmp_path: Path) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text("ssl.key.password=hunter2\nsecurity.protocol=hunter2\n")
    [sentence] = check(configured(f', properties_file: "{file}"'))
    assert "security.protocol" in sentence
    assert "hunter2" not in sentence


def test_changed_properties_and_changed_files_that_they_name_are_used_in_the_next_tick(tmp_path: Path) -> None:
    file, ca = tmp_path / "kafka.properties", tmp_path / "ca.pem"
    cluster = LargeCluster(1)
    opened: list[tuple[str, str]] = []

    def open_admin(name: str, settings: KafkaSource, on_error: Any) -> Cluster:
        opened.append((file.read_text(), ca.read_text()))
        return cluster.open(name, settings, on_error)

    settings = SETTINGS.model_copy(update={"properties_file": str(file), "properties": {"ssl.ca.location": str(ca)}})
    source = KafkaReader("kafka", settings, MANY, lambda: NOW_S, open_admin)
    versions = [("sasl.password=old", "ca"), ("sasl.password=new", "ca"), ("sasl.password=new", "new ca")]
    for version in versions:
        file.write_text(version[0])
        ca.write_text(version[1])
        seen(source)
        seen(source)
    assert opened == versions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a.b=c", {"a.b": "c"}, id="key=value"),
        pytest.param(" a.b = c d ", {"a.b": "c d"}, id="spaces around"),
        pytest.param("a.b: c", {"a.b": "c"}, id="a colon"),
        pytest.param("a.b c", {"a.b": "c"}, id="a space"),
        pytest.param("a=b=c==", {"a": "b=c=="}, id="the first sign separates"),
        pytest.param("a=b\x0cc=d", {"a": "b\x0cc=d"}, id="a form feed"),
        pytest.param("# x\n! y\n\na=b\r\n", {"a": "b"}, id="comments and blank lines"),
        pytest.param("# C:\\certs\\\na=b", {"a": "b"}, id="a comment that ends with a backslash"),
        pytest.param("a=b\\\nc=d", {"a": "b\\", "c": "d"}, id="a value that ends with a backslash"),
        pytest.param("a=b\\\\\nc=d", {"a": "b\\\\", "c": "d"}, id="a value that ends with two"),
        pytest.param("a=", {"a": ""}, id="an empty value"),
    ],
)
def test_each_line_of_a_properties_file_is_one_property(text: str, expected: dict[str, str]) -> None:
    assert parse(text) == expected


def test_a_line_without_a_value_is_reported_by_number_without_its_text() -> None:
    with pytest.raises(ValueError, match=r"^line 2: expected key=value$"):
        parse("a=b\nhunter2")


def test_only_secrets_are_hidden() -> None:
    private = {"sasl.password": "hunter2", "sasl.oauthbearer.assertion.private.key.passphrase": "xyzzy"}
    plain = {"sasl.username": "alice", "ssl.key.location": "/tls.key", "ssl.key.password": ""}
    assert mask_secrets("alice used hunter2, xyzzy, /tls.key", private | plain) == "alice used ***, ***, /tls.key"


def test_a_client_with_old_leaders_is_replaced_for_the_next_tick() -> None:
    mistaken, fresh = Cluster("a_tick"), Cluster("a_tick")
    newer = {"error": "UNKNOWN_LEADER_EPOCH", "text": "Broker: Leader epoch is newer than broker epoch"}
    [[ends]] = mistaken.by_kind["latest"]
    wrong = [[topic, number, newer if topic == "orders" else end] for topic, number, end in ends]
    mistaken.by_kind["latest"] = [[wrong], [wrong]]
    mistaken.by_kind["topics"] *= 2
    clusters = iter([mistaken, fresh])
    source = KafkaReader("kafka", SETTINGS, PLAN, lambda: NOW_S, lambda *of: next(clusters).open(*of))
    assert seen(source)[("shop/orders", FAULT)] == (
        "partition 0 of topic orders: Broker: Leader epoch is newer than broker epoch"
    )
    fresh.by_kind.pop("groups")  # they are known still
    assert seen(source)[("shop/orders", "backlog_records")] == 210.0


class LargeCluster(Cluster):
    """A cluster with many groups and one topic; commits of the slow groups stay unanswered."""

    def __init__(self, groups: int, slow: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.groups = [f"group-{number}" for number in range(groups)]
        self.slow = slow
        self.late: dict[str, Future[Any]] = {}
        self.is_reachable = True
        self.requested: list[str] = []

    def describe_cluster(self, **settings: Any) -> Future[Any]:
        self.requests.append("cluster")
        timed_out = {"error": "_TIMED_OUT", "text": "Local: Timed out"}
        return settled([] if self.is_reachable else timed_out, lambda nodes: SimpleNamespace(nodes=nodes))

    def list_consumer_groups(self, **settings: Any) -> Future[Any]:
        self.requests.append("groups")
        return settled({"groups": self.groups, "errors": []}, listing)

    def list_consumer_group_offsets(self, request: Any, **settings: Any) -> dict[str, Future[Any]]:
        group = request[0].group_id
        self.requested.append(group)
        if group in self.slow:
            return {group: self.late.setdefault(group, Future())}
        if group in self.coordinator_errors:
            return {group: settled({"error": self.coordinator_errors[group], "text": "no coordinator"}, committed)}
        return {group: settled([["orders", 0, 5]], committed)}

    def describe_topics(self, topics: Any, **settings: Any) -> dict[str, Future[Any]]:
        self.requests.append("topics")
        counts = {"__consumer_offsets": 50, "orders": 1}
        return {
            topic: settled(counts[topic], lambda count: SimpleNamespace(partitions=[None] * count))
            for topic in topics.topic_names
        }

    def list_offsets(self, partitions: Any, **settings: Any) -> dict[Any, Future[Any]]:
        self.requests.append("offsets")
        end = 0 if "Earliest" in type(next(iter(partitions.values()))).__name__ else 9
        return {part: settled(end, lambda offset: SimpleNamespace(offset=offset)) for part in partitions}


MANY = ReadPlan(patterns=(GroupPattern(0, "shop", "group-.*"),))


@pytest.mark.parametrize(
    ("silent_by_tick", "opened"),
    [
        pytest.param({0: [1], 29: [1]}, 1, id="silent for less than 30 s"),
        pytest.param({0: [1], 30: [1]}, 2, id="silent for 30 s"),
        pytest.param({0: [0, 1], 30: [0, 1]}, 2, id="every group is silent for 30 s"),
        pytest.param({0: [1], 15: [], 30: [1]}, 1, id="with an answer between"),
        pytest.param({0: [0], 15: [1], 30: [0]}, 1, id="one group after the other"),
        pytest.param({0: [1], 15: None, 30: [1]}, 2, id="without the cluster between, which is no answer"),
        pytest.param({0: [1], -3600: [1], -3571: [1]}, 1, id="silent for less than 30 s after the clock was set back"),
        pytest.param({0: [1], -3600: [1], -3570: [1]}, 2, id="silent for 30 s after the clock was set back"),
        pytest.param({0: [1], 30: [1], 45: [1], 104: [1]}, 2, id="less than 60 s after the client was replaced"),
        pytest.param({0: [1], 30: [1], 45: [1], 105: [1]}, 3, id="60 s after the client was replaced"),
        pytest.param({0: [1], 30: [1], 45: None, 60: [1], 90: [1]}, 2, id="60 s, without the cluster between"),
        pytest.param({0: [1], 30: [1], 45: [], 60: [1], 90: [1]}, 3, id="30 s again after an answer"),
        pytest.param({second: [1] for second in range(0, 3601, 15)}, 14, id="every 5 min in the end"),
        pytest.param(
            {second: [1] for second in range(0, 3601, 15)} | {3605: [0, 1], 3635: [0, 1]},
            15,
            id="another group silent for 30 s, beside one that is replaced every 5 min",
        ),
    ],
)
def test_a_client_that_gets_no_answer_for_a_group_is_replaced(
    silent_by_tick: dict[int, list[int] | None], opened: int
) -> None:
    """silent_by_tick: second -> the groups without an answer, None if the cluster gives none."""
    cluster, now_s = LargeCluster(2), NOW_S
    source = KafkaReader("kafka", SETTINGS, MANY, lambda: now_s, cluster.open)
    for second, silent in silent_by_tick.items():
        now_s = NOW_S + second
        cluster.is_reachable = silent is not None
        cluster.coordinator_errors = {f"group-{number}": "_TIMED_OUT" for number in silent or []}
        with suppress(SourceError):
            seen(source, now_s)
    cluster.coordinator_errors = {}
    now_s += 1
    assert seen(source, now_s)["shop/group-1", "backlog_records"] == 4.0
    assert cluster.clients == opened


def test_a_new_client_requests_the_group_that_the_client_before_it_got_no_answer_for() -> None:
    cluster, now_s = LargeCluster(2, slow=frozenset(["group-1"])), NOW_S
    settings = SETTINGS.model_copy(update={"deadline_s": 0.2})
    source = KafkaReader("kafka", settings, MANY, lambda: now_s, cluster.open)
    for now_s in (NOW_S, NOW_S + 30):
        found = seen(source, now_s)
        assert found["shop/group-1", FAULT] == "group group-1: Local: Timed out"
        assert found["shop/group-0", "backlog_records"] == 4.0
    cluster.slow = frozenset()
    found = seen(source, now_s)
    assert found["shop/group-1", "backlog_records"] == found["shop/group-0", "backlog_records"] == 4.0
    assert cluster.requested.count("group-1") == cluster.clients == 2


def test_5000_groups_cost_one_call_each_and_a_handful_beside_them() -> None:
    cluster = LargeCluster(5_000)
    source = reader(cluster, MANY)
    assert len({workload for workload, _ in seen(source)}) == 5_000
    assert cluster.requests == ["cluster", "groups", "topics", "described", "topics", "offsets", "offsets"]
    assert len(cluster.described) <= 50  # one group of each partition of __consumer_offsets
    cluster.requests.clear()
    cluster.described.clear()
    seen(source)
    assert cluster.requests == ["cluster", "topics", "offsets", "offsets"]
    assert cluster.described == []
    assert len(cluster.requested) == 10_000


def test_the_groups_beyond_the_limit_are_a_fault_and_are_not_requested() -> None:
    cluster = LargeCluster(50_001)
    found = seen(reader(cluster, MANY))
    assert len(set(cluster.requested)) == 50_000
    assert found["*", FAULT] == "fleets[0]: more than 50000 workloads; narrow groups"


def test_a_new_client_describes_the_groups_before_it_requests_them() -> None:
    cluster = LargeCluster(200)
    source = reader(cluster, MANY)
    seen(source)
    first = cluster.described.copy()
    cluster.described.clear()
    cluster.requests.clear()
    source.close()
    seen(source)
    assert cluster.requests == ["cluster", "topics", "described", "topics", "offsets", "offsets"]
    assert cluster.described == first


def test_a_partition_of_consumer_offsets_without_a_coordinator_affects_only_its_groups() -> None:
    cluster = LargeCluster(200)
    cluster.coordinator_errors = {"group-0": "NOT_COORDINATOR"}
    found = seen(reader(cluster, MANY))
    alike = [
        group for group in cluster.groups if coordinator_partition(group, 50) == coordinator_partition("group-0", 50)
    ]
    assert [name for name, signal in found if signal == FAULT] == [f"shop/{group}" for group in sorted(alike)]
    assert set(cluster.requested).isdisjoint(alike)


def test_a_group_that_does_not_answer_gets_no_second_request_and_comes_first_when_it_has_answered() -> None:
    cluster = LargeCluster(3, slow=frozenset(["group-2"]))
    source = reader(cluster, MANY)
    assert seen(source)[("shop/group-2", FAULT)] == "group group-2: Local: Timed out"
    assert seen(source)[("shop/group-0", "backlog_records")] == 4.0
    assert cluster.requested == ["group-0", "group-1", "group-2", "group-0", "group-1"]
    cluster.late["group-2"].set_result(committed([["orders", 0, 5]]))
    cluster.slow = frozenset()
    cluster.requested.clear()
    assert seen(source)[("shop/group-2", "backlog_records")] == 4.0
    assert cluster.requested == ["group-2", "group-0", "group-1"]


@pytest.mark.parametrize(
    ("group", "partition"),
    [
        pytest.param("hello", 99_162_322 % 50, id="a positive hash code"),
        pytest.param("polygenelubricants", 0, id="the smallest hash code, whose absolute value overflows"),
        pytest.param("", 0, id="no text"),
    ],
)
def test_the_coordinator_of_a_group_follows_from_javas_hash_code(group: str, partition: int) -> None:
    assert coordinator_partition(group, 50) == partition
