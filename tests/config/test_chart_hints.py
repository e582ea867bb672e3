"""Warnings about files that the chart does not mount; tests/test_cli.py has those of the command."""

import re
from pathlib import Path
from typing import Any

import pytest

from adapter.config import parse
from adapter.config.chart_hints import USED, unmounted_files

TEMPLATES = Path(__file__).parents[2] / "charts" / "backlog-adapter" / "templates"

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


def test_a_relative_path_is_no_file_of_the_pod_and_is_not_shown() -> None:
    config = parse(f"sources: {{main: {{{PROMETHEUS}, bearer_token_file: s3cret}}}}\npipeline: {{checkpoint: /c}}", "v")
    fix = "write that of a file in a folder of pipeline.secretMounts, such as /run/secrets/NAME/token"
    assert unmounted_files({}, config) == [f"sources.main.bearer_token_file: is no absolute path; {fix}"]


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


@pytest.mark.parametrize(
    "file", ["/etc/ca.pem", "/ca.pem", "/run/ca.pem", "/var/run/ca.pem", "/opt/java/ca.pem", "/run/secrets/ca.pem"]
)
def test_no_mount_is_proposed_that_the_chart_refuses(file: str) -> None:
    config = parse(f"sources: {{main: {{{PROMETHEUS}, tls: {{ca_file: {file}}}}}}}\npipeline: {{checkpoint: /c}}", "a")
    (sentence,) = unmounted_files({}, config)
    assert "as NAME: /run/secrets/NAME, and write /run/secrets/NAME/ca.pem here, because the pod uses /" in sentence


def test_the_folders_that_the_chart_refuses_are_known() -> None:
    """/var/run is a link to /run in the images."""
    (refused,) = re.findall(r'\$used := splitList " " "(.*?)"', (TEMPLATES / "_helpers.tpl").read_text("utf-8"))
    assert set(refused.split()) - {"/var/run"} == set(USED)


@pytest.mark.parametrize("value", [None, "text", ["text"], {"a": None}, [{"mountPath": 1}, None]])
def test_invalid_mounts_are_left_to_helm(value: Any) -> None:
    source = f"{PROMETHEUS}, bearer_token_file: /run/token"
    assert unmounted(source, secretMounts=value, extraVolumeMounts=value) == ["sources.main.bearer_token_file"]
