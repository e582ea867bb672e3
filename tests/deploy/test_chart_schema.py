"""charts/backlog-adapter/values.schema.json: generated, and refuses a wrong value by its path."""

import json
import subprocess
from collections.abc import Callable

import pytest

from charts.values_schema import RESULT, text

Helm = Callable[..., subprocess.CompletedProcess[str]]
CHART = str(RESULT.parent)


def test_the_committed_schema_is_the_generated_one() -> None:
    assert RESULT.read_text() == text(), "run make chart"


def test_a_complete_configuration_is_accepted(helm: Helm) -> None:
    """One entry of every kind of source, with every way of reading it."""
    sources = {
        "metrics": {"kind": "prometheus", "url": "https://prom", "bearer_token_file": "/run/prom/token"},
        "events": {"kind": "kafka", "bootstrap_servers": "kafka:9092", "properties_file": "/run/kafka/client"},
        "streams": {"kind": "pravega", "url": "http://pravega:9091", "prometheus": "metrics"},
        "cluster": {"kind": "kubernetes"},
        "past": {"kind": "trace", "file": "/traces/a.csv"},
    }
    read = [
        {"source": "metrics", "preset": "flink", "match": {"job": "orders"}},
        {"source": "events", "group": "orders", "topics": ["orders"]},
        {"source": "streams", "scope": "shop", "stream": "clicks"},
        {"source": "past"},
    ]
    workload = {"name": "orders", "namespace": "shop", "read": read, "rules": {"policy": "drain"}}
    config = {
        "sources": sources,
        "workloads": [workload],
        "fleets": [{"name": "all", "source": "events", "groups": ".*"}],
        "rules": {"backlog_time_target_s": 120},
        "excluded_periods": [{"days": ["sat"], "from": "22:00", "to": "06:00"}],
        "serving": {"access_log": "all"},
    }
    done = helm("template", "orders", CHART, "--set-json", f"config={json.dumps(config)}")
    assert done.returncode == 0, done.stderr


def test_a_parent_chart_may_switch_the_chart_off(helm: Helm) -> None:
    """helm passes the values of `condition: backlog-adapter.enabled` and the global ones to the chart."""
    done = helm("template", "orders", CHART, "--set", "enabled=true,global.a=b")
    assert done.returncode == 0, done.stderr


def of_the_source(name: str, value: object) -> str:
    """The values of a Prometheus source with one setting."""
    source = {"kind": "prometheus", "url": "http://prometheus:9090", name: value}
    return f"config.sources.metrics={json.dumps(source)}"


def mounted_at(folder: str) -> str:
    return f"serve.extraVolumeMounts={json.dumps([{'name': 'a', 'mountPath': folder}])}"


def of_the_workload(name: str, value: object) -> str:
    """The values of a workload with one setting."""
    workload = {"name": "orders", "read": [{"source": "cluster"}], name: value}
    return f"config.workloads=[{json.dumps(workload)}]"


KAFKA = {"kind": "kafka", "bootstrap_servers": "kafka:9092"}


@pytest.mark.parametrize(
    ("value", "path", "fault"),
    [
        # the configuration of the program
        ("config.sources=null", "/config", "missing property 'sources'"),
        ('config.sources.metrics={"url": "http://prometheus"}', "/config/sources/metrics", "missing property 'kind'"),
        ('config.sources.metrics={"kind": "promtheus"}', "/config/sources/metrics/kind", "must be one of"),
        ('config.sources.metrics={"kind": "prometheus"}', "/config/sources/metrics", "missing property 'url'"),
        (of_the_source("url", "prometheus:9090"), "/config/sources/metrics/url", "does not match pattern"),
        (of_the_source("url", "https://me:secret@prometheus"), "/config/sources/metrics/url", "does not match"),
        (of_the_source("bearer_token", "abc"), "/config/sources/metrics", "'bearer_token' not allowed"),
        (of_the_source("basic", {"username": "a", "password": "b"}), "/config/sources/metrics/basic", "'password' not"),
        (
            of_the_source("headers", {"Authorization": "Bearer b"}),
            "/config/sources/metrics/headers/Authorization",
            "false",
        ),
        (of_the_source("deadline_s", 0), "/config/sources/metrics/deadline_s", "exclusiveMinimum"),
        (
            f"config.sources.events={json.dumps(KAFKA | {'properties': {'sasl.password': 'b'}})}",
            "/config/sources/events/properties/sasl.password",
            "false schema",
        ),
        (
            f"config.sources.events={json.dumps(KAFKA | {'offset_reset': 'none'})}",
            "/config/sources/events/offset_reset",
            "must be one of",
        ),
        ("config.source={}", "/config", "'source' not allowed"),
        (of_the_workload("name", "my orders"), "/config/workloads/0/name", "does not match pattern"),
        (of_the_workload("namespace", "Shop"), "/config/workloads/0/namespace", "does not match pattern"),
        (of_the_workload("read", []), "/config/workloads/0/read", "minItems"),
        (of_the_workload("read", [{"topics": ["orders"]}]), "/config/workloads/0/read/0", "missing property 'source'"),
        (of_the_workload("read", [{"source": "a", "topic": "b"}]), "/config/workloads/0/read/0", "'topic' not allowed"),
        (of_the_workload("rules", {"policy": "drian"}), "/config/workloads/0/rules/policy", "must be one of"),
        ('config.rules={"backlog_time_target_s": "2m"}', "/config/rules/backlog_time_target_s", "got string"),
        ('config.rules={"backlog_target_s": 120}', "/config/rules", "'backlog_target_s' not allowed"),
        ('config.timing={"tick_s": 0}', "/config/timing/tick_s", "minimum"),
        ('config.pipeline={"memory": "1Gi"}', "/config/pipeline/memory", "does not match pattern"),
        # the values of the chart
        ("serve.replicas=0", "/serve/replicas", "minimum"),
        ("serve.replica=2", "/serve", "'replica' not allowed"),
        ("serve.port=443", "/serve/port", "minimum"),
        ("serve.hostNetwork=1", "/serve/hostNetwork", "got number, want boolean"),
        ('serve.resources.limits.memory="lots"', "/serve/resources/limits/memory", "does not match pattern"),
        ('serve.readinessProbe.path="/ready"', "/serve/readinessProbe", "'path' not allowed"),
        ('serve.affinity.nodeAfinity={"a": 1}', "/serve/affinity", "'nodeAfinity' not allowed"),
        ('serve.podLabels={"app.kubernetes.io/name": "x"}', "/serve/podLabels/app.kubernetes.io~1name", "false"),
        ('pipeline.podAnnotations={"checksum/config": "x"}', "/pipeline/podAnnotations/checksum~1config", "false"),
        ('pipeline.nodeSelectors={"zone": "a"}', "/pipeline", "'nodeSelectors' not allowed"),
        ("pipeline.replicas=2", "/pipeline", "'replicas' not allowed"),
        ("pipeline.persistence.size=-1", "/pipeline/persistence/size", "minimum"),
        ('pipeline.persistence.accessModes=["ReadOnlyMany"]', "/pipeline/persistence/accessModes/0", "must be one of"),
        ('pipeline.secretMounts={"kafka": "run/kafka"}', "/pipeline/secretMounts/kafka", "does not match pattern"),
        (mounted_at("/opt/backlog-adapter"), "/serve/extraVolumeMounts/0/mountPath", "'not' failed"),
        (mounted_at("/run/secrets/"), "/serve/extraVolumeMounts/0/mountPath", "'not' failed"),
        ('prometheusRule.disabled=["BacklogAdapterStucked"]', "/prometheusRule/disabled/0", "must be one of"),
        ('serve.extraEnv=[{"name": "a", "val": "b"}]', "/serve/extraEnv/0", "'val' not allowed"),
        ('pipeline.extraEnv=[{"value": "a"}]', "/pipeline/extraEnv/0", "missing property 'name'"),
        ('images.registry="https://registry.example.com/team"', "/images/registry", "does not match pattern"),
        ('images.pullPolicy="always"', "/images/pullPolicy", "must be one of"),
        ('images.serve="backlog-adapter-serve@sha256:1"', "/images/serve", "does not match pattern"),
        ('images.digests.serve="sha256:1"', "/images/digests/serve", "does not match pattern"),
        ("apiService.create=false", "/apiService", "'create' not allowed"),
        # a SparkApplication has no scale subresource
        ('rbac.extraScaleTargets=["sparkoperator.k8s.io"]', "/rbac/extraScaleTargets/0", "does not match pattern"),
        ('commonLabels={"app.kubernetes.io/managed-by": "x"}', "/commonLabels/app.kubernetes.io~1managed-by", "false"),
        ('rbac.extraScaleTargets=["flink"]', "/rbac/extraScaleTargets/0", "does not match pattern"),
        ('rbac.extraRules=[{"apiGroups": [""]}]', "/rbac/extraRules/0", "missing property 'verbs'"),
        ('networkPolicy.serveFrom=[{"cidr": "10.0.0.0/8"}]', "/networkPolicy/serveFrom/0", "'cidr' not allowed"),
        ('serviceMonitor.interval="15"', "/serviceMonitor/interval", "does not match pattern"),
        ('commonAnnotations={"checksum/config": "x"}', "/commonAnnotations/checksum~1config", "false"),
        ('nameOverride="My App"', "/nameOverride", "does not match pattern"),
        ('extraObjects=[{"kind": "ConfigMap"}]', "/extraObjects/0", "missing properties 'apiVersion', 'metadata'"),
    ],
)
def test_a_wrong_value_is_refused_by_its_path_before_anything_is_installed(
    helm: Helm, value: str, path: str, fault: str
) -> None:
    done = helm("template", "orders", CHART, "--set-json", value)
    assert done.returncode != 0
    assert [line for line in done.stderr.splitlines() if f"at '{path}'" in line and fault in line], done.stderr


@pytest.mark.parametrize(
    "path",
    [
        "commonLabels",
        "commonAnnotations",
        "images.digests",
        "pipeline.persistence.accessModes",
        "pipeline.persistence.size",
        "pipeline.secretMounts",
        "pipeline.podAnnotations",
        "pipeline.podLabels",
        "serve.hostNetwork",
        "serve.podAnnotations",
        "serve.podLabels",
        "networkPolicy.pipelineFrom",
        "networkPolicy.metricsFrom",
    ],
)
def test_a_key_without_a_value_is_refused_by_its_path(helm: Helm, path: str) -> None:
    parent, _, name = path.rpartition(".")
    done = helm("template", "orders", CHART, "--set", "networkPolicy.enabled=true", "--set-json", f"{path}=null")
    pointer = "".join(f"/{key}" for key in parent.split(".") if key)
    assert f"at '{pointer}': missing property '{name}'" in done.stderr


@pytest.mark.parametrize("role", ["pipeline", "serve"])
def test_a_role_may_have_no_resources(helm: Helm, role: str) -> None:
    done = helm("template", "orders", CHART, "--set-json", f"{role}.resources=null")
    assert done.returncode == 0, done.stderr


def test_a_list_of_workloads_without_an_entry_is_empty(helm: Helm) -> None:
    done = helm("install", "orders", CHART, "--dry-run=client", "--set-json", "config.workloads=null")
    assert done.returncode == 0, done.stderr
    assert "It has no workloads yet" in done.stdout
