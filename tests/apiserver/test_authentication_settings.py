"""The authentication settings, read by the real client from a stand-in cluster, and read again while they change."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import structlog
from access_builders import CERTIFICATES, CONFIG, NOW_S, PROXIES, Authority, named

from adapter.apiserver.authentication_settings import CONFIG_MAP, AuthenticationSettings, read_settings
from adapter.apiserver.cluster_api import ClusterApi
from adapter.apiserver.front_proxy import identify
from adapter.apiserver.identity import Identity
from adapter.errors import SourceError
from conformance.cluster import Cluster, write_kubeconfig


def test_the_config_map_is_read(api: ClusterApi) -> None:
    assert read_settings(api) == CONFIG


@pytest.mark.parametrize("code", [401, 403])
def test_a_missing_role_is_logged(api: ClusterApi, cluster: Cluster, code: int) -> None:
    cluster.failures.append((code, b"{}"))
    expected = f"expected 200, got {code}; bind Role extension-apiserver-authentication-reader in kube-system"
    with pytest.raises(SourceError, match=expected):
        read_settings(api)


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"null", b'{"data":1}', b"<html>"])
def test_an_answer_that_is_no_config_map_is_logged(api: ClusterApi, cluster: Cluster, body: bytes) -> None:
    cluster.failures.append((200, body))
    with pytest.raises(SourceError, match=f"{CONFIG_MAP}: expected"):
        read_settings(api)


def test_an_empty_config_map_has_no_data(api: ClusterApi, cluster: Cluster) -> None:
    cluster.failures.append((200, b'{"kind":"ConfigMap"}'))
    assert read_settings(api) == {}


def test_another_account_may_not_read_it(cluster: Cluster, tmp_path: Path) -> None:
    api = ClusterApi(write_kubeconfig(tmp_path, cluster.port, token="other"))
    with pytest.raises(SourceError, match="expected 200, got 401"):
        read_settings(api)
    api.close()


class Flaky:
    """Fails a number of times, then answers."""

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


def test_a_failure_at_start_is_logged_once_as_an_error_and_retried() -> None:
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


def test_malformed_settings_keep_the_last_ones() -> None:
    read = dict(CONFIG)
    settings = AuthenticationSettings(lambda: read)
    settings.refresh()
    known = settings.current
    read["client-ca-file"] = "half a certi"
    assert not settings.refresh()
    assert settings.current is known


def test_unchanged_settings_are_the_same_object_and_are_logged_once() -> None:
    settings = AuthenticationSettings(Flaky(0))
    with structlog.testing.capture_logs() as logs:
        settings.refresh()
        known = settings.current
        settings.refresh()
    assert len(logs) == 1
    assert settings.current is known


def test_no_exception_ends_the_reading_and_each_is_logged_once_with_its_traceback() -> None:
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


def test_reading_stops_while_it_waits_for_the_next_period() -> None:
    with following(AuthenticationSettings(Flaky(1), period_s=3600)):
        pass


def test_stop_works_without_start() -> None:
    AuthenticationSettings(Flaky(0)).stop()


def test_case_63_a_new_ca_replaces_the_old_one(api: ClusterApi, cluster: Cluster) -> None:
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


class FakeTime:
    """Makes time pass without waiting, and rejects certificates at given times, until a number of reads."""

    def __init__(self, rejected_at_s: list[float], most_reads: int) -> None:
        self.now_s = 0.0
        self.reads_s: list[float] = []
        self._rejected_at_s = rejected_at_s
        self._most_reads = most_reads
        self.done = threading.Event()
        self.settings = AuthenticationSettings(self.read, 10.0, self.wait)

    def read(self) -> dict[str, str]:
        self.reads_s.append(round(self.now_s, 3))
        return CONFIG

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        ends_s = self.now_s + max(timeout_s, 0.0)
        while not event.is_set() and self._rejected_at_s and self._rejected_at_s[0] <= ends_s:
            self.now_s = max(self.now_s, self._rejected_at_s.pop(0))
            self.settings.refresh_soon()
        if not event.is_set():
            self.now_s = ends_s
        if len(self.reads_s) < self._most_reads:
            return event.is_set()
        self.done.set()
        return event.wait(10)


@pytest.mark.parametrize(
    ("rejected_at_s", "reads_s"),
    [
        pytest.param([], [0.0, 10.0, 20.0], id="every ten seconds"),
        pytest.param([3.5], [0.0, 3.5, 13.5], id="at once after a rejected certificate"),
        pytest.param(
            [n / 10 for n in range(1, 300)], [0.0, 1.0, 11.0, 21.0], id="no more often while many are rejected"
        ),
        pytest.param([3.5, 14.0], [0.0, 3.5, 13.5, 14.5], id="soon again after ten seconds"),
        pytest.param([0.5], [0.0, 1.0, 11.0], id="a second after the last read"),
    ],
)
def test_a_rejected_certificate_makes_the_next_read_soon(rejected_at_s: list[float], reads_s: list[float]) -> None:
    fake = FakeTime(rejected_at_s, len(reads_s))
    with following(fake.settings):
        assert fake.done.wait(10)
    assert fake.reads_s == reads_s


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
