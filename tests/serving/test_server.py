"""The server over real TLS on loopback: who is admitted, what is rotated, who waits for whom."""

import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
import trustme
from serving_builders import AT_S, entry, snapshot
from serving_certificates import CLIENTS, PROXIES, SERVER, STRANGERS, Files, client, pem, serving_files

from adapter.errors import ConfigError, SetupError
from adapter.serving import external
from adapter.serving.app import create_app
from adapter.serving.authn import ClusterAuthenticator
from adapter.serving.probes import Readiness
from adapter.serving.server import Server, listen
from adapter.serving.store import SnapshotStore
from adapter.serving.telemetry import Telemetry
from adapter.serving.tls import LiveTls

DISCOVERY = f"/apis/{external.GROUP_VERSION}"
METRIC = f"{DISCOVERY}/namespaces/shop/required_workers"
ALICE = {"X-Remote-User": "alice", "X-Remote-Group": "staff"}
FRONT_PROXY = PROXIES.issue_cert(common_name="front-proxy-client")


class Cluster:
    """What a cluster's ConfigMap says, to be changed by a test."""

    def __init__(self, proxies: trustme.CA | None = PROXIES) -> None:
        self.data: dict[str, str] = {}
        self.rotate(*([] if proxies is None else [proxies]))

    def rotate(self, *proxies: trustme.CA) -> None:
        self.data = {
            "client-ca-file": pem(CLIENTS),
            "requestheader-client-ca-file": pem(*proxies),
            "requestheader-allowed-names": '["front-proxy-client"]',
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
        }

    def read(self) -> dict[str, str]:
        return self.data


class Replica:
    """A server with its moving parts."""

    def __init__(self, files: Files, cluster: Cluster) -> None:
        store = SnapshotStore()
        store.put(snapshot(entry()))
        self.authenticator = ClusterAuthenticator(cluster.read)
        self.tls = LiveTls(str(files.cert), str(files.key), self.authenticator.ca_pem)
        app = create_app(
            store,
            authenticate=self.authenticator.identify,
            readiness=Readiness(lambda: True),
            telemetry=Telemetry(store, workloads=False),
            clock=lambda: AT_S + 1,
        )
        self.server = Server(app, "127.0.0.1", 0, self.tls)

    def url(self, path: str, host: str = "localhost") -> str:
        return f"https://{host}:{self.server.port}{path}"


@contextmanager
def replica(files: Files, cluster: Cluster, *, known: bool = True) -> Iterator[Replica]:
    running = Replica(files, cluster)
    if known:
        running.authenticator.refresh()
        running.tls.refresh()
    running.server.start()
    try:
        yield running
    finally:
        running.server.stop()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return serving_files(tmp_path)


@pytest.fixture
def running(files: Files) -> Iterator[Replica]:
    with replica(files, Cluster()) as started:
        yield started


def get(
    running: Replica, path: str, leaf: trustme.LeafCert | None = None, headers: dict[str, str] | None = None
) -> int:
    with client(leaf) as asking:
        return asking.get(running.url(path), headers=headers or {}).status_code


def test_auth_176_the_front_proxy_is_served(running: Replica) -> None:
    assert get(running, METRIC, FRONT_PROXY, ALICE) == 200


def test_auth_181_a_wrong_common_name_is_a_401(running: Replica) -> None:
    assert get(running, METRIC, PROXIES.issue_cert(common_name="mallory"), ALICE) == 401


def test_auth_182_an_unknown_ca_does_not_pass_the_handshake(running: Replica) -> None:
    """Go answers 401; Python's TLS ends the connection. Nobody is served either way."""
    with pytest.raises((httpx.TransportError, ssl.SSLError)):
        get(running, METRIC, STRANGERS.issue_cert(common_name="front-proxy-client"), ALICE)


def test_auth_183_headers_without_certificate_are_a_403(running: Replica) -> None:
    assert get(running, METRIC, None, ALICE) == 403


def test_auth_184_a_client_certificate_is_no_front_proxy(running: Replica) -> None:
    assert get(running, METRIC, CLIENTS.issue_cert(common_name="front-proxy-client"), ALICE) == 401


def test_a_header_with_underscores_is_not_the_proxy_s(running: Replica) -> None:
    assert get(running, METRIC, FRONT_PROXY, {"X_Remote_User": "root"}) == 401


@pytest.mark.parametrize("path", [DISCOVERY, "/apis", "/livez", "/readyz", "/healthz"])
def test_probes_and_discovery_need_no_certificate(running: Replica, path: str) -> None:
    assert get(running, path) == 200


def test_before_the_cluster_is_known_discovery_answers_and_metrics_do_not(files: Files) -> None:
    with replica(files, Cluster(), known=False) as running:
        assert get(running, DISCOVERY, FRONT_PROXY) == 200
        assert get(running, METRIC, FRONT_PROXY, ALICE) == 403


def test_a_connection_made_before_the_cluster_was_known_does_not_stay_anonymous(files: Files) -> None:
    with replica(files, Cluster(), known=False) as running, client(FRONT_PROXY) as aggregator:
        early = aggregator.get(running.url(DISCOVERY))
        assert early.headers["Connection"] == "close"
        running.authenticator.refresh()
        running.tls.refresh()
        assert aggregator.get(running.url(METRIC), headers=ALICE).status_code == 200


def test_a_new_ca_of_the_cluster_is_followed(files: Files) -> None:
    cluster, new = Cluster(), trustme.CA()
    with replica(files, cluster) as running, client(FRONT_PROXY) as old:
        assert old.get(running.url(METRIC), headers=ALICE).status_code == 200
        cluster.rotate(PROXIES, new)
        running.authenticator.refresh()
        running.tls.refresh()
        assert old.get(running.url(METRIC), headers=ALICE).status_code == 200
        assert get(running, METRIC, new.issue_cert(common_name="front-proxy-client"), ALICE) == 200
        cluster.rotate(new)
        running.authenticator.refresh()
        running.tls.refresh()
        assert old.get(running.url(METRIC), headers=ALICE).status_code == 401
        with pytest.raises((httpx.TransportError, ssl.SSLError)):
            get(running, METRIC, FRONT_PROXY, ALICE)


def test_a_new_certificate_is_used_by_new_connections_only(files: Files) -> None:
    new_authority = trustme.CA()
    with replica(files, Cluster()) as running, client() as old, client(authority=new_authority) as new:
        assert old.get(running.url("/livez"), headers={"Connection": "keep-alive"}).status_code == 200
        files.write(new_authority.issue_cert("localhost"))
        assert running.tls.refresh()
        assert new.get(running.url("/livez")).status_code == 200
        with client() as late, pytest.raises(httpx.ConnectError):
            late.get(running.url("/livez"))


def test_a_half_written_pair_keeps_the_old_certificate(files: Files) -> None:
    with replica(files, Cluster()) as running:
        new = SERVER.issue_cert("localhost")
        new.private_key_pem.write_to_path(str(files.key))
        assert not running.tls.refresh()
        assert get(running, "/livez") == 200
        new.cert_chain_pems[0].write_to_path(str(files.cert))
        assert running.tls.refresh()
        assert get(running, "/livez") == 200


def test_a_certificate_file_that_is_gone_keeps_the_old_certificate(files: Files) -> None:
    with replica(files, Cluster()) as running:
        files.cert.unlink()
        assert not running.tls.refresh()
        assert get(running, "/livez") == 200


def test_a_client_that_names_no_host_is_served_the_newest_certificate(files: Files) -> None:
    """The kubelet asks by address, without a name in the handshake."""
    new_authority = trustme.CA()
    with replica(files, Cluster()) as running, client(authority=new_authority) as kubelet:
        files.write(new_authority.issue_cert("127.0.0.1"))
        running.tls.refresh()
        assert kubelet.get(running.url("/livez", "127.0.0.1")).status_code == 200


@pytest.mark.parametrize(
    ("version", "accepted"),
    [(ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)],
    ids=["1.1", "1.2", "1.3"],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_tls_is_1_2_or_newer(running: Replica, version: ssl.TLSVersion, accepted: bool) -> None:
    context = ssl.create_default_context()
    SERVER.configure_trust(context)
    context.minimum_version = context.maximum_version = version
    with ExitStack() as stack:
        if not accepted:
            stack.enter_context(pytest.raises(ssl.SSLError))
        plain = stack.enter_context(socket.create_connection(("127.0.0.1", running.server.port), timeout=10))
        stack.enter_context(context.wrap_socket(plain, server_hostname="localhost"))


def test_20_stalled_handshakes_cost_nobody_else(running: Replica) -> None:
    with ExitStack() as stack:
        for _ in range(20):
            stalled = stack.enter_context(socket.create_connection(("127.0.0.1", running.server.port)))
            stalled.sendall(b"\x16\x03\x01")  # the first bytes of a hello that never comes
        with client(FRONT_PROXY) as asking:
            asking.timeout = httpx.Timeout(5.0)
            answers = [asking.get(running.url(METRIC), headers=ALICE).status_code for _ in range(20)]
    assert answers == [200] * 20


def test_20_requests_that_never_end_cost_nobody_else(running: Replica) -> None:
    context = ssl.create_default_context()
    SERVER.configure_trust(context)
    with ExitStack() as stack:
        for _ in range(20):
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", running.server.port)))
            slow = stack.enter_context(context.wrap_socket(plain, server_hostname="localhost"))
            slow.sendall(b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx")
        assert get(running, METRIC, FRONT_PROXY, ALICE) == 200


def test_many_ask_at_once(running: Replica) -> None:
    with client(FRONT_PROXY) as asking, ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda _: asking.get(running.url(METRIC), headers=ALICE).status_code, range(100)))
    assert answers == [200] * 100


def ok(environ: object, start_response: object) -> Iterable[bytes]:
    assert callable(start_response)
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]


def test_without_tls_it_is_plain_http() -> None:
    server = Server(ok, "127.0.0.1", 0)
    server.start()
    try:
        assert httpx.get(f"http://127.0.0.1:{server.port}/", trust_env=False).text == "ok"
    finally:
        server.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{server.port}/", trust_env=False)


def test_a_taken_port_is_told_with_the_fix() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=f"cannot listen on 127.0.0.1:{port}: the port is taken; set another"):
            Server(ok, "127.0.0.1", port).start()


def test_an_address_of_another_machine_is_told() -> None:
    with pytest.raises(SetupError, match="the address must be one of this machine"):
        Server(ok, "192.0.2.1", 0).start()


def test_a_server_that_never_started_stops() -> None:
    Server(ok, "127.0.0.1", 0).stop()


def test_certificate_files_that_cannot_be_loaded_are_told_at_start(files: Files) -> None:
    files.cert.write_text("nonsense")
    with pytest.raises(ConfigError, match="expected a PEM certificate and its key"):
        LiveTls(str(files.cert), str(files.key))


def test_an_idle_client_does_not_hold_up_the_end() -> None:
    server = Server(ok, "127.0.0.1", 0)
    server.start()
    with httpx.Client(trust_env=False) as idle:
        assert idle.get(f"http://127.0.0.1:{server.port}/").text == "ok"
        server.stop()
        assert not any(thread.name == server.name for thread in threading.enumerate())


def test_answers_are_sent_at_once() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        listener.setblocking(True)
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_changed_files_are_noticed_without_being_told(files: Files) -> None:
    new_authority = trustme.CA()
    with replica(files, Cluster()) as running:
        files.write(new_authority.issue_cert("localhost"))
        deadline_s = time.monotonic() + 30
        while time.monotonic() < deadline_s:
            with client(authority=new_authority) as new, suppress(httpx.ConnectError):
                assert new.get(running.url("/livez")).status_code == 200
                return
        pytest.fail("the new certificate was not used within 30 s")
