"""The settings of sources, and of the entries that read from them."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, ModelWrapValidatorHandler, ValidationInfo, WrapValidator

from adapter.config.faults import Fault
from adapter.config.model import LISTED, Model, has, pair
from adapter.config.values import Brokers, File, Headers, KafkaProperties, PrometheusUrl, Text, Topic, Url

Deadline = Annotated[
    float,
    Field(gt=0, description="Seconds to wait, less than timing.tick_s; a late source loses its samples, not the tick."),
]


class Tls(Model):
    """TLS of a client."""

    ca_file: File | None = Field(default=None, description="PEM file of the trusted CAs; the system's CAs by default.")
    cert_file: File | None = Field(default=None, description="PEM file of the client certificate; none by default.")
    key_file: File | None = Field(default=None, description="PEM file of the client certificate's key.")

    @classmethod
    def relation_faults(cls, given: Mapping[Any, Any]) -> list[Fault]:
        """A certificate needs its key."""
        return pair(given, "cert_file", "key_file")


def _unused_tls(given: Mapping[Any, Any]) -> list[Fault]:
    """Certificates of an address without TLS, whose author expects an encrypted connection."""
    tls, url = given.get("tls"), given.get("url")
    is_set = isinstance(tls, Mapping) and any(tls.values())
    plain = isinstance(url, str) and url.lower().startswith("http:")
    return [Fault(("tls",), "has no effect with http://; expected a url with https://")] if is_set and plain else []


class Basic(Model):
    """HTTP basic authentication."""

    username: Text = Field(description="User name.")
    password_file: File = Field(description="File with the password and nothing else.")


class PrometheusSource(Model):
    """A server with the Prometheus query API (Prometheus, Thanos, Mimir, VictoriaMetrics)."""

    kind: Literal["prometheus"] = Field(description="Kind of the system.")
    url: PrometheusUrl = Field(description="Address of the server, without /api/v1.")
    bearer_token_file: File | None = Field(default=None, description="File of the bearer token; excludes basic.")
    basic: Basic | None = Field(default=None, description="User and password file; excludes bearer_token_file.")
    tls: Tls = Field(default=Tls(), description="Certificates; the system's CAs by default.")
    query_language: Literal["promql", "metricsql"] = Field(
        default="promql", description="Language of `signals`; metricsql, that of VictoriaMetrics, is not checked."
    )
    headers: Headers = Field(default={}, description="Headers of every request, such as X-Scope-OrgID.")
    parameters: dict[str, str] = Field(default={}, description="Parameters of every request, such as dedup.")
    lookback_s: float | None = Field(
        default=None,
        gt=0,
        description="Oldest sample of a query, in seconds; more than the scrape interval. The server's own by default.",
    )
    deadline_s: Deadline = 5.0

    @classmethod
    def relation_faults(cls, given: Mapping[Any, Any]) -> list[Fault]:
        """Only one way to authenticate, and certificates only with TLS."""
        faults = _unused_tls(given)
        if has(given, "bearer_token_file") and has(given, "basic"):
            faults.append(Fault(("basic",), "excludes bearer_token_file; remove one of them"))
        return faults


class KafkaSource(Model):
    """A Kafka cluster."""

    kind: Literal["kafka"] = Field(description="Kind of the system.")
    bootstrap_servers: Brokers = Field(description="Bootstrap brokers as host:port, separated by commas.")
    properties: KafkaProperties = Field(
        default={}, description="Settings of librdkafka as text, such as security.protocol; no secrets."
    )
    properties_file: File | None = Field(default=None, description="File with lines name=value, for secret settings.")
    offset_reset: Literal["latest", "earliest"] = Field(
        default="latest",
        description="auto.offset.reset of the groups: where they start to read a partition without a committed offset.",
    )
    deadline_s: Deadline = 5.0


class PravegaSource(Model):
    """A Pravega controller's REST API."""

    kind: Literal["pravega"] = Field(description="Kind of the system.")
    url: Url = Field(description="Address of the controller's REST API.")
    tls: Tls = Field(default=Tls(), description="Certificates; the system's CAs by default.")
    prometheus: Text | None = Field(default=None, description="Name of the prometheus source with Pravega's rates.")
    deadline_s: Deadline = 5.0

    @classmethod
    def relation_faults(cls, given: Mapping[Any, Any]) -> list[Fault]:
        """Certificates only with TLS."""
        return _unused_tls(given)


class KubernetesSource(Model):
    """The HPAs that use the adapter's metrics, and their scale targets."""

    kind: Literal["kubernetes"] = Field(description="Kind of the system.")
    kubeconfig: Text | None = Field(
        default=None, description="Path of a kubeconfig; the pod's service account by default."
    )
    context: Text | None = Field(default=None, description="Context of the kubeconfig; its current context by default.")
    deadline_s: Deadline = 5.0


class TraceSource(Model):
    """A recorded or simulated fleet."""

    kind: Literal["trace"] = Field(description="Kind of the system.")
    file: File | None = Field(default=None, description="File of the trace; excludes url.")
    url: Url | None = Field(default=None, description="Address that serves the trace; excludes file.")
    deadline_s: Deadline = 5.0

    @classmethod
    def relation_faults(cls, given: Mapping[Any, Any]) -> list[Fault]:
        """Exactly one of file and url."""
        if has(given, "file") and has(given, "url"):
            return [Fault(("url",), "excludes file; remove one of them")]
        if not has(given, "file") and not has(given, "url"):
            return [Fault((), "expected file or url, got neither")]
        return []


def _with_kind(given: Any) -> Any:
    """Make a missing kind that of a `type`, or an unknown one: only then pydantic lists the kinds."""
    return {"kind": given.get("type"), **given} if isinstance(given, Mapping) else given


_Source = PrometheusSource | KafkaSource | PravegaSource | KubernetesSource | TraceSource
AnySource = Annotated[_Source, Field(discriminator="kind"), BeforeValidator(_with_kind)]
KINDS = tuple(get_args(source.model_fields["kind"].annotation)[0] for source in get_args(_Source))
KINDS_WITH_PAST = ("prometheus", "pravega", "trace")  # their systems store past values


IsolationLevel = Literal["read_uncommitted", "read_committed"]


class KafkaReading(Model):
    """A consumer group and the topics it reads."""

    source: Text = Field(description="Name of a kafka source.")
    group: Text = Field(description="Consumer group whose committed offsets count the processed records.")
    topics: Annotated[tuple[Topic, ...], LISTED] = Field(
        min_length=1, description="Topics whose log end offsets count the appended records, such as [orders]."
    )
    transactional: bool = Field(
        default=False,
        description="The producers write transactions, so each partition may end with a marker that no consumer reads.",
    )
    isolation_level: IsolationLevel = Field(
        default="read_uncommitted",
        description="isolation.level of the consumers: with read_committed the backlog ends at the last stable offset.",
    )


class PrometheusReading(Model):
    """The series of one workload."""

    source: Text = Field(description="Name of a prometheus source.")
    preset: Text | None = Field(default=None, description="Preset with the queries of one engine, such as flink.")
    match: dict[str, str] = Field(default={}, description="Labels that select the workload's series.")
    signals: dict[str, str] = Field(default={}, description="Signal -> your own PromQL; overrides the preset.")

    @classmethod
    def relation_faults(cls, given: Mapping[Any, Any]) -> list[Fault]:
        """At least one query."""
        return (
            []
            if has(given, "preset") or given.get("signals")
            else [Fault((), "expected a preset or signals, got neither")]
        )


class PravegaReading(Model):
    """A Pravega stream."""

    source: Text = Field(description="Name of a pravega source.")
    scope: Text = Field(description="Scope of the stream.")
    stream: Text = Field(description="Name of the stream.")


class TraceReading(Model):
    """The workload's own entry in the trace."""

    source: Text = Field(description="Name of a trace source.")


READINGS: Mapping[str | None, type[Model]] = {
    "kafka": KafkaReading,
    "prometheus": PrometheusReading,
    "pravega": PravegaReading,
    "trace": TraceReading,
}


def _validate_kind(given: Any, handler: ModelWrapValidatorHandler[Any], info: ValidationInfo) -> Any:
    """Validate an entry by the kind of its source, so that the faults concern that kind alone.

    The context has the kinds; without a context, the settings of the entry select the model.
    """
    if info.context is None or isinstance(given, Model):
        return handler(given)
    if not isinstance(given, Mapping):
        return TraceReading.model_validate(given)  # every model reports that a mapping was expected
    source = given.get("source")
    model = READINGS.get(info.context["kinds"].get(source)) if isinstance(source, str) else None
    # Without a model the source is invalid: checks.py reports it, and there is no Config.
    return model.model_validate(given) if model else given


AnyReading = Annotated[KafkaReading | PrometheusReading | PravegaReading | TraceReading, WrapValidator(_validate_kind)]
