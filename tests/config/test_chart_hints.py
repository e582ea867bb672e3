"""Warnings about files that the chart does not mount; tests/test_cli.py has those of the command."""

from typing import Any

import pytest

from adapter.config import parse
from adapter.config.chart_hints import unmounted_files

PROMETHEUS = "kind: prometheus, url: 'https://prom'"
KAFKA = "kind: kafka, bootstrap_servers: 'kafka:9092'"


def unmounted(source: str, **pipeline: Any) -> list[str]:
    config = parse(f"sources: {{main: {{{source}}}}}\npipeline: {{checkpoint: /c}}", "values.yaml")
    return [sentence.partition(": ")[0] for sentence in unmounted_files({"pipeline": pipeline}, config)]


@pytest.mark.parametrize(
    ("source", "setting"),
    [
        (f"{PROMETHEUS}, bearer_token_file: /run/secrets/a/token", "bearer_token_file"),
        (f"{PROMETHEUS}, basic: {{username: a, password_file: /run/secrets/a/password}}", "basic.password_file"),
        (f"{PROMETHEUS}, tls: {{ca_file: /run/secrets/a/ca.crt}}", "tls.ca_file"),
        (f"{KAFKA}, properties_file: /run/secrets/a/client.properties", "properties_file"),
        (f"{KAFKA}, properties: {{ssl.ca.location: /run/secrets/a/ca.crt}}", 'properties["ssl.ca.location"]'),
        ("kind: kubernetes, kubeconfig: /run/secrets/a/config", "kubeconfig"),
        ("kind: trace, file: /run/secrets/a/trace", "file"),
    ],
)
def test_each_file_of_a_source_has_to_be_in_a_mounted_folder(source: str, setting: str) -> None:
    assert unmounted(source) == unmounted(source, secretMounts={"b": "/run/secrets/ab"}) == [f"sources.main.{setting}"]
    assert unmounted(source, secretMounts={"a": "/run/secrets/a/"}) == []
    assert unmounted(source, secretMounts={"a": "/var/run/secrets/a"}) == []
    assert unmounted(source, extraVolumeMounts=[{"name": "a", "mountPath": "/run/secrets"}]) == []


@pytest.mark.parametrize(
    "source",
    [
        f"{PROMETHEUS}, bearer_token_file: /var/run/secrets/kubernetes.io/serviceaccount/token",
        f"{PROMETHEUS}, tls: {{ca_file: /etc/ssl/certs/ca-certificates.crt}}",
        f"{PROMETHEUS}, tls: {{cert_file: /run/secrets/backlog-adapter/tls/tls.crt, "
        "key_file: /run/secrets/backlog-adapter/tls/tls.key}",
        "kind: trace, file: /var/lib/backlog-adapter/trace",
        f"{KAFKA}, properties: {{ssl.ca.location: probe}}",
    ],
)
def test_a_file_of_the_pod_needs_no_mount(source: str) -> None:
    assert unmounted(source) == []


@pytest.mark.parametrize("value", [None, "text", ["text"], {"a": None}, [{"mountPath": 1}, None]])
def test_invalid_mounts_are_left_to_helm(value: Any) -> None:
    source = f"{PROMETHEUS}, bearer_token_file: /run/token"
    assert unmounted(source, secretMounts=value, extraVolumeMounts=value) == ["sources.main.bearer_token_file"]
