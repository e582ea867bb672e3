"""The ConfigMap, read through the real client from a stand-in of the cluster's API on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from serving_certificates import CLIENTS, PROXIES, pem

from adapter.errors import SourceError
from adapter.serving.authn import CONFIG_MAP, ClusterAuthenticator, read_settings
from adapter.serving.server import Server

DATA = {
    "client-ca-file": pem(CLIENTS),
    "requestheader-client-ca-file": pem(PROXIES),
    "requestheader-username-headers": '["X-Remote-User"]',
}


class ClusterApi:
    """Answers one path to one token."""

    def __init__(self) -> None:
        self.status = "200 OK"
        self.body = json.dumps({"kind": "ConfigMap", "data": DATA}).encode()

    def __call__(self, environ: dict[str, object], start_response: object) -> list[bytes]:
        assert callable(start_response)
        known = environ["PATH_INFO"] == CONFIG_MAP and environ.get("HTTP_AUTHORIZATION") == "Bearer t0k3n"
        body = self.body if known else b"{}"
        start_response(self.status if known else "403 Forbidden", [("Content-Length", str(len(body)))])
        return [body]


@pytest.fixture
def cluster() -> ClusterApi:
    return ClusterApi()


@pytest.fixture
def server(cluster: ClusterApi) -> Iterator[Server]:
    running = Server(cluster, "127.0.0.1", 0)
    running.start()
    yield running
    running.stop()


def kubeconfig(folder: Path, port: int, bearer: str = "t0k3n") -> str:
    file = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {"token": bearer}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    file.write_text(json.dumps(document))
    return str(file)


def test_the_config_map_is_read(server: Server, tmp_path: Path) -> None:
    assert read_settings(kubeconfig(tmp_path, server.port)) == DATA


def test_a_role_that_is_missing_is_told(server: Server, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="expected 200, got 403; bind Role extension-apiserver-authentication-reader"):
        read_settings(kubeconfig(tmp_path, server.port, bearer="other"))


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>"])
def test_an_answer_that_is_no_config_map_is_told(
    server: Server, cluster: ClusterApi, tmp_path: Path, body: bytes
) -> None:
    cluster.body = body
    with pytest.raises(SourceError, match="expected a ConfigMap in JSON"):
        read_settings(kubeconfig(tmp_path, server.port))


def test_a_cluster_that_does_not_answer_is_told(server: Server, tmp_path: Path) -> None:
    server.stop()
    with pytest.raises(SourceError, match=f"reading {CONFIG_MAP}"):
        read_settings(kubeconfig(tmp_path, server.port))


@pytest.mark.parametrize("path", [None, "/nowhere/kubeconfig"], ids=["outside a pod", "no such file"])
def test_a_place_without_credentials_is_told(path: str | None) -> None:
    with pytest.raises(SourceError, match="kubernetes"):
        read_settings(path)


class Flaky:
    """Fails as often as told, then answers."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def __call__(self) -> dict[str, str]:
        if self.failures > 0:
            self.failures -= 1
            raise SourceError("kubernetes", "connection refused")
        return DATA


def test_a_failure_at_start_is_logged_loudly_once_and_retried() -> None:
    authenticator = ClusterAuthenticator(Flaky(2))
    with structlog.testing.capture_logs() as logs:
        assert not authenticator.refresh()
        assert not authenticator.refresh()
        assert authenticator.ca_pem() == ""
        assert authenticator.refresh()
    assert [log["log_level"] for log in logs] == ["error", "info"]
    assert "metrics are refused" in logs[0]["effect"]
    assert pem(PROXIES).strip() in authenticator.ca_pem()


def test_a_failure_later_keeps_the_last_settings() -> None:
    flaky = Flaky(0)
    authenticator = ClusterAuthenticator(flaky)
    authenticator.refresh()
    known = authenticator.ca_pem()
    flaky.failures = 1
    with structlog.testing.capture_logs() as logs:
        assert not authenticator.refresh()
    assert authenticator.ca_pem() == known
    assert "the last settings stay" in logs[0]["effect"]


def test_following_stops_at_once() -> None:
    authenticator = ClusterAuthenticator(Flaky(1))
    authenticator.start()
    authenticator.stop()
