"""One YAML file -> a frozen Config."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tls(_Model):
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


class Basic(_Model):
    username: str
    password_file: str


class PrometheusSource(_Model):
    kind: Literal["prometheus"]
    url: str
    bearer_token_file: str | None = None
    basic: Basic | None = None
    tls: Tls = Tls()
    headers: dict[str, str] = {}
    parameters: dict[str, str] = {}
    deadline_s: float = Field(5.0, gt=0)


class KafkaSource(_Model):
    kind: Literal["kafka"]
    bootstrap_servers: str
    properties: dict[str, str] = {}
    properties_file: str | None = None
    deadline_s: float = Field(5.0, gt=0)


class PravegaSource(_Model):
    kind: Literal["pravega"]
    url: str
    tls: Tls = Tls()
    prometheus: str | None = None
    deadline_s: float = Field(5.0, gt=0)


class KubernetesSource(_Model):
    kind: Literal["kubernetes"]
    kubeconfig: str | None = None
    context: str | None = None
    deadline_s: float = Field(5.0, gt=0)


class TraceSource(_Model):
    kind: Literal["trace"]
    file: str | None = None
    url: str | None = None
    deadline_s: float = Field(5.0, gt=0)


AnySource = Annotated[
    PrometheusSource | KafkaSource | PravegaSource | KubernetesSource | TraceSource, Field(discriminator="kind")
]


class KafkaReading(_Model):
    source: str
    group: str
    topics: tuple[str, ...] = Field(min_length=1)


class PrometheusReading(_Model):
    source: str
    preset: str | None = None
    match: dict[str, str] = {}
    signals: dict[str, str] = {}


class PravegaReading(_Model):
    source: str
    scope: str
    stream: str


class TraceReading(_Model):
    source: str


class Pause(_Model):
    direction: Literal["up", "down", "both"]
    until: datetime | None = None


class Workload(_Model):
    namespace: str = "default"
    name: str
    labels: dict[str, str] = {}
    read: tuple[KafkaReading | PrometheusReading | PravegaReading | TraceReading, ...] = Field(min_length=1)
    rules: dict[str, Any] = {}
    pause: Pause | None = None


class Fleet(_Model):
    """One preset query (or one pattern of consumer groups) that yields many workloads."""

    name: str
    source: str
    preset: str | None = None
    match: dict[str, str] = {}
    signals: dict[str, str] = {}
    workload_label: str | None = None
    namespace_label: str | None = None
    stage_label: str | None = None
    groups: str | None = None
    namespace: str = "default"
    labels: dict[str, str] = {}
    rules: dict[str, Any] = {}
    pause: Pause | None = None


class Timing(_Model):
    tick_s: int = Field(15, ge=1, le=300)
    warm_up_s: int = Field(300, ge=0)
    most_ticks: int = Field(20, ge=1)


class Pipeline(_Model):
    checkpoint: str
    cores: int = Field(2, ge=1)
    memory: str = "1g"
    host: str = "0.0.0.0"
    port: int = Field(8443, ge=0, le=65535)
    cert_file: str | None = None
    key_file: str | None = None
    token_file: str | None = None


class Serving(_Model):
    host: str = "0.0.0.0"
    port: int = Field(6443, ge=0, le=65535)
    cert_file: str | None = None
    key_file: str | None = None
    metrics_port: int | None = Field(None, ge=0, le=65535)
    kubeconfig: str | None = None
    snapshot_url: str | None = None
    snapshot_ca_file: str | None = None
    snapshot_token_file: str | None = None


class Config(_Model):
    sources: dict[str, AnySource]
    workloads: tuple[Workload, ...] = ()
    fleets: tuple[Fleet, ...] = ()
    rules: dict[str, Any] = {}
    timing: Timing = Timing()
    pipeline: Pipeline
    serving: Serving = Serving()
