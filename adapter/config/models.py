"""The settings of workloads, fleets and processes, each with its unit, its bounds and why its default."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from adapter.apiserver.limits import ServerLimits
from adapter.config.faults import Fault
from adapter.config.limits import Limits
from adapter.config.model import LISTED, Model, has, pair
from adapter.config.settings import RuleOverrides
from adapter.config.sources import AnyReading, AnySource
from adapter.config.values import (
    DAYS,
    Day,
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

_PIPELINE_PORT = 8443  # what the unprivileged may bind for HTTPS
_SERVING_PORT = 6443
_OWN_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105  # where every pod has it

Host = Annotated[Text, Field(description="Address to listen on; all addresses by default, as a pod needs it.")]


class Pause(Model):
    """Nothing is scaled in a direction for a while."""

    direction: Literal["up", "down", "both"] = Field(description="What is paused.")
    until: Instant | None = Field(
        default=None, description="Its end with zone, as 2026-01-31T18:00:00Z; never by default."
    )


class ExcludedPeriod(Model):
    """Hours in which nothing is decided: the target of their beginning is held."""

    days: Annotated[tuple[Day, ...], LISTED] = Field(
        default=DAYS, min_length=1, description="Days on which it begins; every day by default."
    )
    begin: TimeOfDay = Field(alias="from", description='Its begin, as "22:00".')
    to: TimeOfDay = Field(description="Its end, not included; one at or before the begin lies on the next day.")
    zone: Zone = Field(default="UTC", description="Time zone of its times, as Europe/Berlin.")


Periods = Annotated[tuple[ExcludedPeriod, ...], LISTED]


class Workload(Model):
    """What one HPA scales."""

    namespace: Namespace = Field(default="default", description="Kubernetes namespace of the HPA.")
    name: Name = Field(description="Name of the workload; the label `workload` of its metrics.")
    labels: Labels = Field(default={}, description="Further labels that an HPA's selector can use.")
    read: Annotated[tuple[AnyReading, ...], LISTED] = Field(min_length=1, description="Where its counts come from.")
    rules: RuleOverrides = Field(default={}, description="Its own rules, over the file's.")
    pause: Pause | None = Field(default=None, description="A pause of its scaling; none by default.")
    excluded_periods: Periods | None = Field(
        default=None, description="When nothing is decided for it; else the file's periods."
    )
    failover: bool | None = Field(
        default=None, description="No scale-down while traffic may come back; unset, the file's `failover` applies."
    )


class Fleet(Model):
    """One preset query (or one pattern of consumer groups) that yields many workloads."""

    name: Name = Field(description="Name of the fleet, for logs.")
    source: Text = Field(description="Name of a prometheus or kafka source.")
    preset: Text | None = Field(default=None, description="prometheus: set of queries for one engine, such as flink.")
    match: dict[str, str] = Field(default={}, description="prometheus: labels that choose the fleet's series.")
    signals: dict[str, str] = Field(
        default={}, description="prometheus: signal -> PromQL of your own; over the preset's."
    )
    workload_label: Text | None = Field(default=None, description="prometheus: names the workload; else the preset's.")
    namespace_label: Text | None = Field(
        default=None, description="prometheus: names the namespace; else the preset's."
    )
    stage_label: Text | None = Field(default=None, description="prometheus: names the stage; else the preset's.")
    groups: Pattern | None = Field(default=None, description="kafka: regular expression of consumer groups.")
    namespace: Namespace = Field(default="default", description="Namespace of workloads whose series do not tell.")
    labels: Labels = Field(default={}, description="Further labels of every found workload.")
    rules: RuleOverrides = Field(default={}, description="The fleet's own rules, over the file's.")
    pause: Pause | None = Field(
        default=None, description="A pause of the scaling of all its workloads; none by default."
    )
    excluded_periods: Periods | None = Field(
        default=None, description="When nothing is decided for its workloads; else the file's periods."
    )
    failover: bool | None = Field(
        default=None, description="No scale-down while traffic may come back; unset, the file's `failover` applies."
    )


class Timing(Model):
    """When things happen."""

    tick_s: int = Field(
        default=15, ge=1, le=300, description="Seconds between decisions; 15 is also the HPA's own period."
    )
    warm_up_s: int = Field(
        default=300, ge=0, le=86_400, description="Seconds of the past read at first: five rate windows."
    )
    most_ticks: int = Field(
        default=20, ge=1, le=10_000, description="Missed ticks made up in one batch: 300 s of 15 s."
    )


class Pipeline(Model):
    """The process that decides."""

    checkpoint: Text = Field(description="Directory of the state, on a volume that outlives the pod.")
    cores: int = Field(default=2, ge=1, description="Threads of local Spark; two carry 1 000 workloads.")
    memory: Memory = Field(default="1g", description="Memory of Spark's JVM, as 1g or 1500m.")
    host: Host = "0.0.0.0"  # noqa: S104  # a pod listens on all its addresses
    port: int = Field(default=_PIPELINE_PORT, ge=0, le=65535, description="Port of snapshots and metrics; 0 takes any.")
    cert_file: Text | None = Field(default=None, description="PEM file of its certificate; plain HTTP without one.")
    key_file: Text | None = Field(default=None, description="PEM file of the certificate's key.")
    token_file: Text | None = Field(default=None, description="File of the token that readers must bring.")

    @classmethod
    def together(cls, given: Mapping[Any, Any]) -> list[Fault]:
        """A certificate needs its key."""
        return pair(given, "cert_file", "key_file")


class Serving(Model):
    """The process that answers the Kubernetes API server."""

    host: Host = "0.0.0.0"  # noqa: S104  # a pod listens on all its addresses
    port: int = Field(default=_SERVING_PORT, ge=0, le=65535, description="Port of the metrics API; 0 takes any.")
    cert_file: Text | None = Field(default=None, description="PEM file of its certificate, re-read on change.")
    key_file: Text | None = Field(default=None, description="PEM file of the certificate's key.")
    metrics_port: int | None = Field(default=None, ge=0, le=65535, description="Port of metrics and probes.")
    kubeconfig: Text | None = Field(default=None, description="Path of a kubeconfig; else the pod's own account.")
    snapshot_url: Url | None = Field(default=None, description="Address of the pipeline's snapshot; none in `run`.")
    snapshot_ca_file: Text | None = Field(default=None, description="PEM file of the CA of the pipeline's certificate.")
    snapshot_token_file: Text | None = Field(default=None, description="File of the token to bring to the pipeline.")
    service: Service | None = Field(
        default=None, description="Its own Service as namespace/name, to notice when another one owns the API."
    )
    access_log: Literal["all", "refusals", "none"] = Field(
        default="refusals",
        description="Requests that are logged; refusals are all but 2xx and 304, the same one once in five minutes.",
    )
    limits: Limits = Field(default_factory=ServerLimits, description="What one client may use.")

    @classmethod
    def together(cls, given: Mapping[Any, Any]) -> list[Fault]:
        """A certificate needs its key, two servers two ports, and a token TLS."""
        port, metrics_port = given.get("port", _SERVING_PORT), given.get("metrics_port")
        faults = pair(given, "cert_file", "key_file")
        if port == metrics_port and port != 0:
            faults.append(Fault(("metrics_port",), f"expected another port than port, got {metrics_port!r} for both"))
        if has(given, "snapshot_token_file") and str(given.get("snapshot_url")).lower().startswith("http:"):
            text = "expected https://host with snapshot_token_file: a token does not travel in the clear"
            faults.append(Fault(("snapshot_url",), text))
        return faults


class Config(Model):
    """The whole file."""

    sources: dict[Name, AnySource] = Field(min_length=1, description="The systems to read, by names of your choice.")
    workloads: Annotated[tuple[Workload, ...], LISTED] = Field(default=(), description="Workloads, one by one.")
    fleets: Annotated[tuple[Fleet, ...], LISTED] = Field(
        default=(), description="Workloads found by a query or a pattern."
    )
    rules: RuleOverrides = Field(default={}, description="Rules of all workloads, over the built-in defaults.")
    excluded_periods: Periods = Field(
        default=(), description="When nothing is decided for workloads that name no periods of their own."
    )
    failover: bool = Field(
        default=False, description="No scale-down while traffic may come back, for workloads that do not set it."
    )
    timing: Timing = Field(default=Timing(), description="The tick and the warm-up.")
    pipeline: Pipeline = Field(description="Settings of the process that decides.")
    serving: Serving = Field(default=Serving(), description="Settings of the process that answers the API server.")
