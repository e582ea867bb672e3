"""The ConfigMap, read through the real client from a stand-in of the cluster's API on loopback, and followed."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import structlog
from access_builders import CERTIFICATES, CONFIG, NOW_S, PROXIES, Authority, named
from stand_in_cluster import StandInCluster, kubeconfig

from adapter.apiserver.authentication_settings import CONFIG_MAP, AuthenticationSettings, read_settings
from adapter.apiserver.cluster_api import ClusterApi
from adapter.apiserver.front_proxy import identify
from adapter.apiserver.identity import Identity
from adapter.errors import SourceError


def test_the_config_map_is_read(api: ClusterApi) -> None:
    assert read_settings(api) == CONFIG


@pytest.mark.parametrize("code", [401, 403])
def test_a_missing_role_is_logged(api: ClusterApi, cluster: StandInCluster, code: int) -> None:
    cluster.failures.append((code, b"{}"))
    expected = f"expected 200, got {code}; bind Role extension-apiserver-authentication-reader in kube-system"
    with pytest.raises(SourceError, match=expected):
        read_settings(api)


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"null", b'{"data":1}', b"<html>"])
def test_an_answer_that_is_no_config_map_is_logged(api: ClusterApi, cluster: StandInCluster, body: bytes) -> None:
    cluster.failures.append((200, body))
    with pytest.raises(SourceError, match=f"{CONFIG_MAP}: expected"):
        read_settings(api)


def test_an_empty_config_map_has_no_data(api: ClusterApi, cluster: StandInCluster) -> None:
    cluster.failures.append((200, b'{"kind":"ConfigMap"}'))
    assert read_settings(api) == {}


def test_another_account_may_not_read_it(cluster: StandInCluster, tmp_path: Path) -> None:
    api = ClusterApi(kubeconfig(tmp_path, cluster.port, token="other"))
    with pytest.raises(SourceError, match="expected 200, got 401"):
        read_settings(api)
    api.close()


class Flaky:
    """Fails as often as told, then answers."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.reads = 0

    def __call__(self) -> dict[str, str]:
        self.reads += 1
        if self.failures > 0:
            self.failures -= 1
            raise SourceError("kubernetes", "connection refused")
        return CONFIG


@contextmanager
def following(settings: AuthenticationSettings) -> Iterator[None]:
    settings.start()
    try:
        yield
    finally:
        settings.stop()


def test_a_failure_at_start_is_logged_loudly_once_and_retried() -> None:
    settings = AuthenticationSettings(Flaky(2))
    with structlog.testing.capture_logs() as logs:
        assert not settings.refresh()
        assert not settings.refresh()
        assert (settings.ca_pem(), settings.current) == ("", None)
        assert "connection refused" in logs[0]["cause"]
        assert settings.refresh()
    assert [log["log_level"] for log in logs] == ["error", "info", "info"]
    assert "metric requests fail" in logs[0]["effect"]
    assert PROXIES.pem.strip() in settings.ca_pem()


def test_a_failure_later_keeps_the_last_settings() -> None:
    flaky = Flaky(0)
    settings = AuthenticationSettings(flaky)
    settings.refresh()
    known = settings.ca_pem()
    flaky.failures = 1
    with structlog.testing.capture_logs() as logs:
        assert not settings.refresh()
    assert settings.ca_pem() == known
    assert "the last settings stay" in logs[0]["effect"]


def test_settings_that_cannot_be_understood_keep_the_last_ones() -> None:
    read = dict(CONFIG)
    settings = AuthenticationSettings(lambda: read)
    settings.refresh()
    known = settings.current
    read["client-ca-file"] = "half a certi"
    assert not settings.refresh()
    assert settings.current is known


def test_settings_that_did_not_change_are_the_same_object_and_not_logged_again() -> None:
    settings = AuthenticationSettings(Flaky(0))
    with structlog.testing.capture_logs() as logs:
        settings.refresh()
        known = settings.current
        settings.refresh()
    assert len(logs) == 1
    assert settings.current is known


def test_no_error_whatever_ends_the_following() -> None:
    """And one that nobody foresaw is logged once, with where it came from."""
    errors = [RuntimeError("odd"), RuntimeError("odd"), RecursionError(), KeyError("key"), MemoryError()]
    read = threading.Event()

    def fail() -> dict[str, str]:
        if errors:
            raise errors.pop(0)
        read.set()
        return CONFIG

    settings = AuthenticationSettings(fail, period_s=0.01)
    with structlog.testing.capture_logs() as logs, following(settings):
        assert read.wait(10)
    causes = [log["cause"] for log in logs if log["log_level"] == "error"]
    assert causes == ["RuntimeError: odd", "RecursionError", "KeyError: 'key'", "MemoryError"]
    assert all(isinstance(log["exc_info"], Exception) for log in logs if log["log_level"] == "error")


def test_following_stops_while_it_waits_for_the_next_period() -> None:
    with following(AuthenticationSettings(Flaky(1), period_s=3600)):
        pass


def test_following_that_was_never_started_stops() -> None:
    AuthenticationSettings(Flaky(0)).stop()


def test_a_new_authority_is_trusted_and_the_old_one_no_more(api: ClusterApi, cluster: StandInCluster) -> None:
    """case 63, but for the handshakes"""
    settings = AuthenticationSettings(partial(read_settings, api), period_s=0.05)
    new = Authority("new")
    later = new.issue(named("front-proxy-client"))
    alice = Identity("alice")
    with following(settings):
        assert settings.current is not None
        assert identify(settings.current, CERTIFICATES["proxy"], alice, NOW_S) is not None
        assert identify(settings.current, later, alice, NOW_S) is None
        cluster.config_map["requestheader-client-ca-file"] = new.pem
        deadline_s = time.monotonic() + 10
        while identify(settings.current, later, alice, NOW_S) is None:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        assert identify(settings.current, CERTIFICATES["proxy"], alice, NOW_S) is None
        assert new.pem.strip() in settings.ca_pem()


def test_a_doubt_has_them_read_soon_and_many_doubts_not_more_often() -> None:
    flaky = Flaky(0)
    settings = AuthenticationSettings(flaky, period_s=3600)
    with following(settings):
        while flaky.reads < 2:
            settings.refresh_soon()
            time.sleep(0.005)
    assert flaky.reads == 2


@pytest.mark.parametrize("emptied", [{}, {"requestheader-allowed-names": "[]"}], ids=["no data", "no CA"])
def test_a_config_map_without_any_ca_keeps_the_last_settings_and_warns_once(emptied: dict[str, str]) -> None:
    read = [CONFIG, emptied, emptied, CONFIG]
    settings = AuthenticationSettings(lambda: read.pop(0))
    settings.refresh()
    known = settings.current
    with structlog.testing.capture_logs() as logs:
        assert not settings.refresh()
        assert not settings.refresh()
        assert settings.current is known
        assert settings.refresh()
    assert [log["log_level"] for log in logs] == ["warning", "info"]
    assert "expected the CA of client certificates, got none" in logs[0]["cause"]
    assert logs[0]["effect"] == "the last settings stay in force"
