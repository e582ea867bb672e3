"""The settings of workloads, fleets and processes."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from adapter.config.faults import Fault, refusal
from adapter.config.issuer import API_SERVICES, Issuer, issuer_faults
from adapter.config.model import LISTED, Model, has, pair
from adapter.config.settings import RuleOverrides
from adapter.config.sources import AnyReading, AnySource, IsolationLevel
from adapter.config.values import (
    DAYS,
    Day,
    File,
    Folder,
    Instant,
    Labels,
    Memory,
    Name,
    Namespace,
    Pattern,
    Service,
    Text,
    TimeOfDay,
    Url,
    Zone,
)

_PIPELINE_PORT = 8443  # a process without privileges can bind it
_SERVING_PORT = 6443

Host = Annotated[
    Text, Field(description="Address to listen on; by default all addresses, of IPv4 and IPv6, as a pod requires.")
]


class Pause(Model):
    """A pause of scaling in one or both directions."""

    direction: Literal["up", "down", "both"] = Field(description="Direction of scaling that is paused.")
    until: Instant | None = Field(
        default=None, description="End of the pause with its zone, such as 2026-01-31T18:00:00Z; no end by default."
    )


class ExcludedPeriod(Model):
    """A period without decisions, which holds the target from its start."""

    days: Annotated[tuple[Day, ...], LISTED] = Field(
        default=DAYS, min_length=1, description="Days on which the period begins; every day by default."
    )
    begin: TimeOfDay = Field(alias="from", description='Start, such as "22:00".')
    to: TimeOfDay = Field(description="End, exclusive; an end at or before the start is on the next day.")
    zone: Zone = Field(default="UTC", description="Time zone of start and end, such as Europe/Berlin.")


class ExpectedEvent(Model):
    """A known event with more input. `drain` scales up before it, and no policy scales down until it ends."""

    begin: Instant = Field(alias="from", description="Start with its zone, such as 2026-01-31T18:00:00Z.")
    to: Instant = Field(description="End with its zone, exclusive.")
    times: float = Field(gt=1, le=100, description="Input of the event / input without it, such as 1.5.")

    @field_validator("to")
    @classmethod
    def _ends_after_begin(cls, to: datetime, known: ValidationInfo) -> datetime:
        begin = known.data.get("begin")
        if begin is not None and to <= begin:
            raise refusal(f"expected a time after from = {begin.isoformat()}, got {to.isoformat()}")
        return to


Periods = Annotated[tuple[ExcludedPeriod, ...], LISTED]
Events = Annotated[tuple[ExpectedEvent, ...], LISTED]
OwnPeriods = Annotated[Periods | None, Field(description="Periods without decisions; the file's periods by default.")]
OwnEvents = Annotated[Events | None, Field(description="Known events with more input; the file's events by default.")]
OwnFailover = Annotated[
    bool | None, Field(description="Prevent scale-down while traffic may return; the file's `failover` by default.")
]


class Workload(Model):
    """A workload that one HPA scales."""

    namespace: Namespace = Field(default="default", description="Kubernetes namespace of the HPA.")
    name: Name = Field(description="Name of the workload; the label `workload` of its metrics.")
    labels: Labels = Field(default={}, description="Further labels that an HPA's selector can use.")
    read: Annotated[tuple[AnyReading, ...], LISTED] = Field(min_length=1, description="The sources of its counts.")
    rules: RuleOverrides = Field(default={}, description="Rules of this workload; they override the file's rules.")
    pause: Pause | None = Field(default=None, description="Pause of its scaling; the file's `pause` by default.")
    excluded_periods: OwnPeriods = None
    expected: OwnEvents = None
    failover: OwnFailover = None

    @property
    def id(self) -> str:
        """Its name in samples and decisions, as namespace/name."""
        return f"{self.namespace}/{self.name}"


class Fleet(Model):
    """Many workloads, discovered by the queries of a preset or by a pattern of consumer groups."""

    name: Name = Field(description="Name of the fleet in logs.")
    source: Text = Field(description="Name of a prometheus or kafka source.")
    preset: Text | None = Field(
        default=None, description="prometheus: preset with the queries of one engine, such as flink."
    )
    match: dict[str, str] = Field(default={}, description="prometheus: labels that select the fleet's series.")
    signals: dict[str, str] = Field(
        default={}, description="prometheus: signal -> your own PromQL; overrides the preset."
    )
    workload_label: Text | None = Field(
        default=None, description="prometheus: label with the workload's name; the preset's by default."
    )
    namespace_label: Text | None = Field(
        default=None, description="prometheus: label with the namespace; the preset's by default."
    )
    stage_label: Text | None = Field(
        default=None, description="prometheus: label with the stage; the preset's by default."
    )
    groups: Pattern | None = Field(default=None, description="kafka: regular expression of consumer groups.")
    transactional: bool = Field(
        default=False, description="kafka: the producers write transactions; see transactional of a reading."
    )
    isolation_level: IsolationLevel = Field(
        default="read_uncommitted", description="kafka: isolation.level of the consumers; see that of a reading."
    )
    namespace: Namespace = Field(default="default", description="Namespace of workloads without a namespace label.")
    labels: Labels = Field(default={}, description="Further labels of every discovered workload.")
    rules: RuleOverrides = Field(default={}, description="Rules of the fleet; they override the file's rules.")
    pause: Pause | None = Field(
        default=None, description="Pause of the scaling of all its workloads; the file's `pause` by default."
    )
    excluded_periods: OwnPeriods = None
    expected: OwnEvents = None
    failover: OwnFailover = None


class RuleMatch(Model):
    """Rules of the workloads that match all conditions given here. Only the first match of a workload applies."""

    namespace: Pattern | None = Field(default=None, description="Regular expression of namespaces; all by default.")
    name: Pattern | None = Field(default=None, description="Regular expression of names; all by default.")
    labels: Labels = Field(default={}, description="Labels that the workload or its fleet has in this file.")
    rules: RuleOverrides = Field(description="Rules; they override the file's and a fleet's rules.")

    @classmethod
    def relation_faults(cls, given: Mapping[Any, Any]) -> list[Fault]:
        """A match without a condition would hide all matches after it."""
        if any(given.get(name) for name in ("namespace", "name", "labels")):
            return []
        return [Fault((), "expected a namespace, a name or labels; rules of all workloads belong under rules")]


class Timing(Model):
    """When the pipeline decides."""

    tick_s: int = Field(
        default=15, ge=1, le=300, description="Seconds between decisions; 15 is also the HPA's sync period."
    )
    history_s: int = Field(
        default=300,
        ge=0,
        le=86_400,
        description="Seconds of history that a new state is learned from. One batch of most_ticks is read each tick, "
        "so 6 h at 15 s need 19 min before the first decision on current samples.",
    )
    most_ticks: int = Field(
        default=20, ge=1, le=10_000, description="Most missed ticks in one batch; 20 of 15 s are 300 s."
    )

    @property
    def source_window_s(self) -> int:
        """The time over which sources compute rates and compare partitions."""
        return max(60, 4 * self.tick_s)  # PromQL's rate() needs two scrapes, and many are 30 s apart


class Pipeline(Model):
    """The process that makes the decisions."""

    checkpoint: Folder = Field(description="Directory of the state, on a persistent volume.")
    cores: int = Field(
        default=2, ge=1, le=256, description="Threads of local Spark; two are enough for 1 000 workloads."
    )
    memory: Memory = Field(default="1g", description="Memory of Spark's JVM, such as 1g or 1500m; at least 512m.")
    host: Host = "::"
    port: int = Field(
        default=_PIPELINE_PORT, ge=0, le=65535, description="Port of snapshots and metrics; 0 selects a free port."
    )
    cert_file: File | None = Field(default=None, description="PEM file of its certificate; plain HTTP without one.")
    key_file: File | None = Field(default=None, description="PEM file of the certificate's key.")
    token_file: File | None = Field(default=None, description="File of the bearer token that clients must send.")

    @classmethod
    def relation_faults(cls, given: Mapping[Any, Any]) -> list[Fault]:
        """A certificate needs its key, and a token needs TLS."""
        faults = pair(given, "cert_file", "key_file")
        if has(given, "token_file") and not (has(given, "cert_file") or has(given, "key_file")):
            faults.append(Fault(("cert_file",), "is required with token_file: a token must not be sent without TLS"))
        return faults


class Serving(Model):
    """The process that serves the metrics API."""

    host: Host = "::"
    port: int = Field(
        default=_SERVING_PORT, ge=0, le=65535, description="Port of the metrics API; 0 selects a free port."
    )
    cert_file: File | None = Field(default=None, description="PEM file of its certificate, re-read on change.")
    key_file: File | None = Field(default=None, description="PEM file of the certificate's key.")
    metrics_port: int | None = Field(default=None, ge=0, le=65535, description="Port of metrics and probes.")
    kubeconfig: Text | None = Field(
        default=None, description="Path of a kubeconfig; the pod's service account by default."
    )
    snapshot_url: Url | None = Field(default=None, description="Address of the pipeline's snapshot; none in `run`.")
    snapshot_ca_file: File | None = Field(default=None, description="PEM file of the CA of the pipeline's certificate.")
    snapshot_token_file: File | None = Field(default=None, description="File of the bearer token for the pipeline.")
    service: Service | None = Field(
        default=None, description="Its Service as namespace/name, to detect that another one owns the API."
    )
    api_services: Annotated[tuple[Text, ...], LISTED] = Field(
        default=API_SERVICES,
        description="APIServices of that Service: serve warns of another owner, and an issuer writes its CA into "
        "caBundle. One of another owner is never written.",
    )
    issuer: Issuer | None = Field(
        default=None,
        description="Certificates and token that serve issues itself; by default you provide the files.",
    )
    access_log: Literal["all", "refusals", "none"] = Field(
        default="refusals",
        description="Requests to log; refusals are all but 2xx and 304, each of them once in five minutes.",
    )

    @classmethod
    def relation_faults(cls, given: Mapping[Any, Any]) -> list[Fault]:
        """A certificate needs its key, two servers need two ports, and a token needs TLS."""
        port, metrics_port = given.get("port", _SERVING_PORT), given.get("metrics_port")
        faults = [*pair(given, "cert_file", "key_file"), *issuer_faults(given)]
        if port == metrics_port and port != 0:
            faults.append(Fault(("metrics_port",), f"expected another port than port, got {metrics_port!r} for both"))
        if has(given, "snapshot_token_file") and str(given.get("snapshot_url")).lower().startswith("http:"):
            text = "expected https://host with snapshot_token_file: a token requires TLS"
            faults.append(Fault(("snapshot_url",), text))
        return faults


class ServerConfig(Model):
    """The part of the file that `serve` reads."""

    serving: Serving = Field(default=Serving(), description="Settings of the process that serves the metrics API.")


class Config(ServerConfig):
    """The whole file."""

    sources: dict[Name, AnySource] = Field(
        min_length=1, description="The systems to read, by a name of your choice, each with its kind."
    )
    workloads: Annotated[tuple[Workload, ...], LISTED] = Field(default=(), description="Workloads, one by one.")
    fleets: Annotated[tuple[Fleet, ...], LISTED] = Field(
        default=(), description="Workloads discovered by queries or a pattern."
    )
    rules: RuleOverrides = Field(default={}, description="Rules of all workloads; they override the defaults.")
    rules_by_match: Annotated[tuple[RuleMatch, ...], LISTED] = Field(
        default=(), max_length=100, description="Rules of workloads by their namespace, name or labels."
    )
    excluded_periods: Periods = Field(
        default=(), description="Periods without decisions, for workloads without their own periods."
    )
    expected: Events = Field(
        default=(), description="Known events with more input, for workloads without their own events."
    )
    pause: Pause | None = Field(
        default=None, description="Pause of scaling, for workloads without their own pause; none by default."
    )
    failover: bool = Field(
        default=False, description="Prevent scale-down while traffic may return, for workloads that do not set it."
    )
    timing: Timing = Field(default=Timing(), description="The tick and the history.")
    pipeline: Pipeline = Field(
        description="Settings of the process that makes the decisions, such as {checkpoint: /tmp/checkpoint}. The "
        "chart adds the checkpoint to what is below config."
    )
