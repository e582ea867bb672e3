"""Certificates and CAs that change while a server runs, over real handshakes; cases 64 and 65."""

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import trustme
from cryptography import x509
from raw_clients import Client, eventually, serving, trust
from serving_certificates import CLIENTS, PROXIES, SERVER, STRANGERS, Files, pem, serving_files
from structlog.testing import capture_logs

from adapter.apiserver.authentication_settings import AuthenticationSettings
from adapter.apiserver.server import Server
from adapter.apiserver.tls import LiveTls
from adapter.errors import ConfigError

NEW_SERVER = trustme.CA()
PROXY = PROXIES.issue_cert(common_name="front-proxy-client")
OLD = datetime(2020, 1, 1, tzinfo=UTC)


class Running:
    """A server's files and client CAs."""

    def __init__(self, folder: Path, cas: str) -> None:
        self.files = serving_files(folder)
        self.cas = cas
        self.tls = LiveTls(str(self.files.cert), str(self.files.key), lambda: self.cas)

    def now_trusts(self, *authorities: trustme.CA) -> None:
        self.cas = pem(*authorities)
        assert self.tls.refresh()


@contextmanager
def listening(folder: Path, cas: str = "") -> Iterator[tuple[Running, Server]]:
    running = Running(folder, cas)
    with serving(tls=running.tls) as found:
        yield running, found.server


def knows(server: Server, leaf: trustme.LeafCert | None) -> bool:
    """Whether the application sees the certificate. Raises OSError when the handshake fails."""
    with Client(server, trust(leaf)) as caller:
        return bool(caller.get("/").document["certificate"])


def accepts(server: Server, leaf: trustme.LeafCert) -> bool:
    """Whether the certificate passes the handshake."""
    try:
        return knows(server, leaf)
    except OSError:
        return False


def trusting(*authorities: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for authority in authorities:
        authority.configure_trust(context)
    return context


@pytest.mark.parametrize(
    ("version", "accepted"),
    [(ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)],
    ids=["1.1", "1.2", "1.3"],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_case_65_tls_is_1_2_or_1_3(tmp_path: Path, version: ssl.TLSVersion, accepted: bool) -> None:
    context = trust()
    context.set_ciphers("ALL:@SECLEVEL=0")  # the client would refuse 1.1 by itself
    context.minimum_version = context.maximum_version = version
    with listening(tmp_path) as (_, server):
        if not accepted:
            with pytest.raises(ssl.SSLError):
                Client(server, context)
            return
        with Client(server, context) as caller:
            assert caller.get("/").code == 200
            assert isinstance(caller.socket, ssl.SSLSocket)
            assert caller.socket.version() == f"TLSv{version.name[-3:].replace('_', '.')}"


def test_a_client_with_http_2_gets_http_1_1(tmp_path: Path) -> None:
    context = trust()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with listening(tmp_path) as (_, server), Client(server, context) as caller:
        assert isinstance(caller.socket, ssl.SSLSocket)
        assert caller.socket.selected_alpn_protocol() == "http/1.1"


# Client certificates.


def test_the_application_sees_a_verified_certificate(tmp_path: Path) -> None:
    with listening(tmp_path, pem(PROXIES, CLIENTS)) as (_, server):
        assert knows(server, PROXY)
        assert knows(server, CLIENTS.issue_cert(common_name="alice"))
        assert not knows(server, None)


def test_auth_182_a_certificate_of_an_unknown_ca_does_not_pass_the_handshake(tmp_path: Path) -> None:
    """Go answers 401; Python's TLS ends the connection. No client is served either way."""
    with listening(tmp_path, pem(PROXIES)) as (_, server):
        with pytest.raises(OSError, match=r"alert|reset|closed|pipe"):
            knows(server, STRANGERS.issue_cert(common_name="front-proxy-client"))
        assert knows(server, PROXY)


@pytest.mark.parametrize(
    ("leaf", "cause"),
    [
        (STRANGERS.issue_cert(common_name="front-proxy-client"), "unable to get local issuer certificate"),
        (
            PROXIES.issue_cert(common_name="front-proxy-client", not_before=OLD, not_after=OLD),
            "certificate has expired",
        ),
    ],
    ids=["an unknown CA", "an expired certificate"],
)
def test_a_certificate_that_fails_the_handshake_is_counted_and_reported_with_its_cause(
    tmp_path: Path, leaf: trustme.LeafCert, cause: str
) -> None:
    files, reports = serving_files(tmp_path), list[tuple[str, ...]]()
    tls = LiveTls(str(files.cert), str(files.key), lambda: pem(PROXIES))
    with serving(tls=tls, on_rejected=lambda *report: reports.append(report)) as found:
        assert not accepts(found.server, leaf)
        assert eventually(lambda: reports)
        assert accepts(found.server, PROXY)
        assert found.server.counters.closed_for_certificate == 1
    assert reports == [(cause, "127.0.0.1")]


def test_the_ca_of_a_rejected_certificate_is_read_soon(tmp_path: Path) -> None:
    files, config_map = serving_files(tmp_path), {"client-ca-file": pem(CLIENTS)}
    settings = AuthenticationSettings(lambda: config_map, period_s=3600)
    tls = LiveTls(str(files.cert), str(files.key), settings.ca_pem)
    with ExitStack() as stack:
        settings.start()
        stack.callback(settings.stop)
        found = stack.enter_context(serving(tls=tls, on_rejected=lambda cause, client: settings.refresh_soon()))
        config_map["client-ca-file"] = pem(CLIENTS, STRANGERS)
        assert eventually(lambda: accepts(found.server, STRANGERS.issue_cert(common_name="alice")), within_s=30)


def test_without_cas_no_certificate_is_requested_and_every_client_may_connect(tmp_path: Path) -> None:
    with listening(tmp_path) as (running, server):
        assert not knows(server, PROXY)
        assert not knows(server, STRANGERS.issue_cert(common_name="anyone"))
        running.now_trusts(PROXIES)
        assert knows(server, PROXY)


def test_a_connection_made_before_the_cas_has_no_certificate(tmp_path: Path) -> None:
    with listening(tmp_path) as (running, server), Client(server, trust(PROXY)) as early:
        running.now_trusts(PROXIES)
        assert early.get("/").document["certificate"] is False
        assert knows(server, PROXY)


def test_case_63_a_replaced_ca_is_followed_without_a_restart(tmp_path: Path) -> None:
    new = trustme.CA()
    with listening(tmp_path, pem(PROXIES)) as (running, server), Client(server, trust(PROXY)) as open_before:
        running.now_trusts(PROXIES, new)
        assert knows(server, PROXY)
        assert knows(server, new.issue_cert(common_name="front-proxy-client"))
        running.now_trusts(new)
        with pytest.raises(OSError, match=r"alert|reset|closed|pipe"):
            knows(server, PROXY)
        assert open_before.get("/").document["certificate"], "whether it still counts is for the application to say"


@pytest.mark.parametrize("nonsense", ["nonsense", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"])
def test_an_unreadable_bundle_keeps_the_last_one(tmp_path: Path, nonsense: str) -> None:
    with listening(tmp_path, pem(PROXIES)) as (running, server), capture_logs() as logs:
        running.cas = nonsense
        with pytest.raises(ConfigError, match="the new certificate or CA cannot be used"):
            running.tls.refresh()
        assert eventually(lambda: logs)
        time.sleep(1.2)  # the server tries again each second
        assert knows(server, PROXY)
        assert [(line["log_level"], line["effect"]) for line in logs] == [
            ("error", "the last certificate and client CAs stay in use")
        ], "logged once"
        running.cas = pem(PROXIES)
        assert eventually(lambda: len(logs) > 1)
        assert [line["log_level"] for line in logs] == ["error", "info"], "it is over"


def test_discovery_answers_although_the_first_bundle_is_unreadable(tmp_path: Path) -> None:
    with capture_logs() as logs, listening(tmp_path, "nonsense") as (running, server):
        assert not knows(server, None)
        assert eventually(lambda: logs)
        assert logs[0]["effect"] == "no client certificate is requested, so metric requests are refused"
        running.now_trusts(PROXIES)
        assert knows(server, PROXY)


def test_cas_that_cannot_be_used_at_the_start_are_tried_again(tmp_path: Path) -> None:
    files, bundles = serving_files(tmp_path), [pem(PROXIES), "nonsense"]
    tls = LiveTls(str(files.cert), str(files.key), lambda: bundles.pop(0) if bundles else pem(PROXIES))
    with serving(tls=tls) as found:
        assert eventually(lambda: knows(found.server, PROXY), within_s=30)


def test_comments_of_a_bundle_may_be_in_any_language(tmp_path: Path) -> None:
    with listening(tmp_path, f"# Zertifizierungsstelle Köln\n{pem(PROXIES)}") as (running, server):
        assert knows(server, PROXY)
        running.cas = f"# 認証局\n{pem(STRANGERS)}"
        assert running.tls.refresh()
        assert knows(server, STRANGERS.issue_cert(common_name="front-proxy-client"))


# The server's own certificate.


def test_case_64_a_replaced_certificate_is_used_by_new_connections_only(tmp_path: Path) -> None:
    with listening(tmp_path) as (running, server), Client(server, trust()) as old:
        running.files.write(NEW_SERVER.issue_cert("localhost"))
        assert running.tls.refresh()
        with Client(server, trusting(NEW_SERVER)) as new:
            assert new.get("/").code == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            Client(server, trust())
        assert old.get("/").code == 200


def test_case_64_no_request_fails_while_certificates_are_replaced(tmp_path: Path) -> None:
    done = threading.Event()
    served: list[int] = []

    def connect_and_ask(server: Server) -> None:
        context = trusting(SERVER, NEW_SERVER)
        while not done.is_set():
            with Client(server, context) as caller:
                served.append(caller.get("/").code)

    with listening(tmp_path) as (running, server), Client(server, trust()) as early:
        threads = [threading.Thread(target=connect_and_ask, args=(server,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for authority in (NEW_SERVER, SERVER):
            running.files.write(authority.issue_cert("localhost"))
            assert eventually(lambda authority=authority: connects(server, trusting(authority)))
            assert early.get("/").code == 200
        done.set()
        for thread in threads:
            thread.join()
    assert set(served) == {200}
    assert len(served) > 10


def test_the_server_notices_changed_files(tmp_path: Path) -> None:
    with listening(tmp_path) as (running, server):
        running.files.write(NEW_SERVER.issue_cert("localhost"))
        assert eventually(lambda: connects(server, trusting(NEW_SERVER)), within_s=30)


def test_changed_files_are_noticed_after_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead_s = [3600.0]
    monkeypatch.setattr("uvicorn.server.time", SimpleNamespace(time=lambda: time.time() + ahead_s[0]))
    with listening(tmp_path) as (running, server):
        running.files.write(NEW_SERVER.issue_cert("localhost"))
        assert eventually(lambda: connects(server, trusting(NEW_SERVER)), within_s=30)
        ahead_s[0] = 0.0
        running.files.write(SERVER.issue_cert("localhost"))
        assert eventually(lambda: connects(server, trusting(SERVER)), within_s=30)


def connects(server: Server, context: ssl.SSLContext) -> bool:
    try:
        with Client(server, context) as caller:
            return caller.get("/").code == 200
    except ssl.SSLError:
        return False


def test_an_unforeseen_error_is_logged_once_and_the_server_goes_on(tmp_path: Path) -> None:
    files, reads = serving_files(tmp_path), list[int]()

    def breaks_after_the_start() -> str:
        reads.append(len(reads))
        return ["", "", ""][reads[-1]]

    tls = LiveTls(str(files.cert), str(files.key), breaks_after_the_start)
    with capture_logs() as logs, serving(tls=tls) as found:
        message = "the certificate or the client CAs cannot be used; retrying"
        assert eventually(lambda: message in [line["event"] for line in logs])
        assert knows(found.server, None) is False
        broken = len(reads)
        assert eventually(lambda: len(reads) > broken), "it goes on"
    assert [line["event"] for line in logs].count(message) == 1


def test_a_certificate_swapped_as_a_mounted_secret_is_noticed(tmp_path: Path) -> None:
    """A kubelet writes a new folder and turns one link, which both files are reached by."""
    leaves = [SERVER.issue_cert("localhost"), NEW_SERVER.issue_cert("localhost")]
    for name, leaf in zip(["one", "two"], leaves, strict=True):
        (tmp_path / name).mkdir()
        Files(tmp_path / name / "tls.crt", tmp_path / name / "tls.key").write(leaf)
    link, turned = tmp_path / "..data", tmp_path / "..tmp"
    link.symlink_to("one")
    tls = LiveTls(str(link / "tls.crt"), str(link / "tls.key"))
    assert not tls.refresh()
    turned.symlink_to("two")
    turned.rename(link)
    assert tls.refresh()
    with serving(tls=tls) as found, Client(found.server, trusting(NEW_SERVER)) as caller:
        assert caller.get("/").code == 200


def test_a_client_of_an_intermediate_ca_needs_no_root(tmp_path: Path) -> None:
    between = CLIENTS.create_child_ca()
    with listening(tmp_path, pem(between)) as (_, server):
        assert knows(server, between.issue_cert(common_name="alice"))


def half_written(files: Files) -> None:
    NEW_SERVER.issue_cert("localhost").private_key_pem.write_to_path(str(files.key))


@pytest.mark.parametrize(
    "damage",
    [half_written, lambda files: files.cert.unlink(), lambda files: files.cert.write_text("nonsense")],
    ids=["only the key is new", "the certificate is gone", "the certificate is nonsense"],
)
def test_an_unusable_certificate_keeps_the_last_one(tmp_path: Path, damage: Callable[[Files], None]) -> None:
    with listening(tmp_path) as (running, server):
        ends_at_s = running.tls.certificate_ends_at_s()
        damage(running.files)
        with pytest.raises(ConfigError):
            running.tls.refresh()
        with Client(server, trust()) as caller:
            assert caller.get("/").code == 200
        assert running.tls.certificate_ends_at_s() == ends_at_s
        running.files.write(NEW_SERVER.issue_cert("localhost"))
        assert running.tls.refresh()


def test_a_client_without_sni_gets_the_newest_certificate(tmp_path: Path) -> None:
    """The kubelet asks by address, without a name in the handshake."""
    context = trusting(NEW_SERVER)
    context.check_hostname = False
    with listening(tmp_path) as (running, server):
        running.files.write(NEW_SERVER.issue_cert("127.0.0.1"))
        running.tls.refresh()
        with Client(server, context, name=None) as kubelet:
            assert kubelet.get("/").code == 200


def test_unusable_certificate_files_are_an_error_at_start(tmp_path: Path) -> None:
    files = serving_files(tmp_path)
    files.cert.write_text("nonsense")
    with pytest.raises(ConfigError, match="expected a PEM certificate and its key"):
        LiveTls(str(files.cert), str(files.key))


def test_the_expiry_of_the_certificate_is_known(tmp_path: Path) -> None:
    files = Files(tmp_path / "tls.crt", tmp_path / "tls.key")
    ends_at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)
    files.write(SERVER.issue_cert("localhost", not_after=ends_at))
    tls = LiveTls(str(files.cert), str(files.key))
    assert tls.certificate_ends_at_s() == ends_at.timestamp()
    later = ends_at + timedelta(days=60)
    files.write(SERVER.issue_cert("localhost", not_after=later))
    assert tls.refresh()
    assert tls.certificate_ends_at_s() == later.timestamp()


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (["localhost"], "adapter.monitoring.svc"),
        (["monitoring.svc"], "adapter.monitoring.svc"),
        (["*.svc"], "adapter.monitoring.svc"),
        (["127.0.0.1"], "127.0.0.1.monitoring.svc"),
    ],
    ids=["localhost", "a part of it", "a wildcard for two labels", "an address"],
)
def test_a_certificate_without_the_name_of_the_service_is_logged_with_the_fix(
    tmp_path: Path, held: list[str], wanted: str
) -> None:
    files = Files(tmp_path / "tls.crt", tmp_path / "tls.key")
    files.write(SERVER.issue_cert(*held))
    with capture_logs() as logs:
        LiveTls(str(files.cert), str(files.key), names=[wanted])
    assert [(line["log_level"], line["missing"]) for line in logs] == [("warning", [wanted])]
    assert wanted in logs[0]["fix"]


def test_a_missing_name_is_logged_once_whatever_the_client_cas_are(tmp_path: Path) -> None:
    files, bundles = serving_files(tmp_path), ["nonsense", pem(PROXIES), pem(CLIENTS)]
    with capture_logs() as logs:
        tls = LiveTls(str(files.cert), str(files.key), lambda: bundles[0], names=["other.monitoring.svc"])
        while bundles[1:]:
            bundles.pop(0)
            assert tls.refresh()
    assert [line["missing"] for line in logs if "missing" in line] == [["other.monitoring.svc"]]


@pytest.mark.parametrize("held", ["adapter.monitoring.svc", "ADAPTER.monitoring.svc", "*.monitoring.svc"])
def test_a_certificate_with_the_name_of_the_service_is_not_logged(tmp_path: Path, held: str) -> None:
    files = Files(tmp_path / "tls.crt", tmp_path / "tls.key")
    files.write(SERVER.issue_cert("localhost", held))
    with capture_logs() as logs:
        LiveTls(str(files.cert), str(files.key), names=["adapter.monitoring.svc"])
    assert logs == []


def test_a_certificate_without_any_name_is_logged(tmp_path: Path) -> None:
    files = Files(tmp_path / "tls.crt", tmp_path / "tls.key")
    files.write(SERVER.issue_cert(common_name="adapter.monitoring.svc"))
    with capture_logs() as logs:
        tls = LiveTls(str(files.cert), str(files.key), names=["adapter.monitoring.svc"])
    assert logs[0]["missing"] == ["adapter.monitoring.svc"]
    assert isinstance(tls.context, ssl.SSLContext)


def test_the_certificate_on_the_wire_is_the_one_in_the_file(tmp_path: Path) -> None:
    with listening(tmp_path) as (running, server), Client(server, trust()) as caller:
        assert isinstance(caller.socket, ssl.SSLSocket)
        seen = caller.socket.getpeercert(binary_form=True)
        assert seen is not None
        in_file = x509.load_pem_x509_certificate(running.files.cert.read_bytes())
        assert x509.load_der_x509_certificate(seen) == in_file
        assert time.time() < running.tls.certificate_ends_at_s()
