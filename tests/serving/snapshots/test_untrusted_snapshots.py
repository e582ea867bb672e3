"""What is no snapshot, or comes from no pipeline: nothing of it is held, and the log says what to mend."""

import gzip
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog
from serving_builders import AT_S, edited, entry, snapshot
from serving_certificates import SERVER, STRANGERS, pem
from strange_servers import Behave, StrangeServer, response, saying, strange_server, tls_of

from adapter.http_body import LARGEST_BODY
from adapter.serving.snapshots.snapshot import VERSION, encode
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.snapshots.transport import Follower

BODY = encode(snapshot(entry()))
OTHER_VERSION = edited(BODY, lambda message: message.update(version=VERSION + 1))
SOUND = saying(response(200, BODY))


@contextmanager
def pulling(
    folder: Path, behave: Behave, tls: ssl.SSLContext | None = None, url: str = "{scheme}://localhost:{port}"
) -> Iterator[tuple[Follower, SnapshotStore, StrangeServer]]:
    """A follower that trusts our CA, its store, which holds one snapshot, and the server it asks."""
    (folder / "ca.crt").write_text(pem(SERVER))
    (folder / "token").write_text("secret")
    held = SnapshotStore(clock=lambda: AT_S)
    held.put(snapshot(entry(), at_s=AT_S - 15))
    with strange_server(behave, tls) as server:
        address = url.format(scheme="https" if tls else "http", port=server.port)
        follower = Follower(address, held, ca_file=f"{folder}/ca.crt", token_file=f"{folder}/token")
        try:
            yield follower, held, server
        finally:
            follower.stop()


def refused(follower: Follower, held: SnapshotStore) -> str:
    """Why a snapshot was not pulled; the held one stays, and the log has one line however often it is tried."""
    before = held.current
    with structlog.testing.capture_logs() as logs:
        assert not follower.pull()
        assert not follower.pull()
    assert held.current is before
    (line,) = logs
    assert (line["log_level"], line["event"]) == ("warning", "the pipeline's snapshot cannot be pulled; retrying")
    assert "secret" not in str(line)
    return str(line["cause"])


def test_a_valid_snapshot_is_stored(tmp_path: Path) -> None:
    with pulling(tmp_path, SOUND, tls_of(SERVER.issue_cert("localhost"))) as (follower, held, server):
        assert follower.pull()
        assert held.current is not None
        assert held.current.snapshot.at_s == AT_S
        assert "Authorization: Bearer secret" in server.heads[0].split("\r\n")


def test_a_server_of_an_unknown_ca_gets_no_token(tmp_path: Path) -> None:
    with pulling(tmp_path, SOUND, tls_of(STRANGERS.issue_cert("localhost"))) as (follower, held, server):
        cause = refused(follower, held)
        assert "snapshot_ca_file must be the CA of a certificate for localhost" in cause
        assert server.heads == []


def test_a_server_with_a_certificate_of_another_name_gets_no_token(tmp_path: Path) -> None:
    with pulling(tmp_path, SOUND, tls_of(SERVER.issue_cert("another.svc"))) as (follower, held, server):
        assert "Hostname mismatch" in refused(follower, held)
        assert server.heads == []


def test_a_server_with_plain_http_at_an_https_url_gets_no_token(tmp_path: Path) -> None:
    with pulling(tmp_path, SOUND, url="https://localhost:{port}") as (follower, held, server):
        assert "does the pipeline serve plain HTTP?" in refused(follower, held)
        assert not any("secret" in head for head in server.heads)


def test_a_pipeline_that_requires_tls_is_logged_as_such(tmp_path: Path) -> None:
    tls = tls_of(SERVER.issue_cert("localhost"))
    with pulling(tmp_path, SOUND, tls, url="http://localhost:{port}") as (follower, held, _):
        assert "does the pipeline require https?" in refused(follower, held)


REFUSED: dict[str, tuple[bytes, str]] = {
    "another version": (response(200, OTHER_VERSION), f"snapshot of version {VERSION + 1}, expected {VERSION}"),
    "cut off in its columns": (response(200, BODY[:-20]), "not a snapshot"),
    "cut off on its way": (response(200, BODY)[:-20], "RemoteProtocolError"),
    "cut off in its gzip": (response(200, gzip.compress(BODY)[:-20], Content_Encoding="gzip"), "got a part of it"),
    "more than its gzip": (response(200, gzip.compress(BODY) + b" ", Content_Encoding="gzip"), "got more bytes"),
    "no gzip": (response(200, BODY, Content_Encoding="gzip"), "expected a gzipped answer"),
    "packed otherwise": (response(200, BODY, Content_Encoding="br"), "got Content-Encoding 'br'"),
    "packed twice": (response(200, BODY, Content_Encoding="gzip, gzip"), "got Content-Encoding 'gzip, gzip'"),
    "nested too deep": (response(200, b"\x81\xa7version" + b"\x91" * 100_000), "not a snapshot"),
    "no text": (response(200, BODY.replace(b"shop/orders", b"\xffhop/orders")), "not a snapshot"),
    "a gzip bomb": (
        response(200, gzip.compress(b" " * (LARGEST_BODY + 1), compresslevel=1), Content_Encoding="gzip"),
        f"the answer is larger than {LARGEST_BODY} bytes",
    ),
    "a web page": (
        response(200, b"<html>", "text/html"),
        "expected application/vnd.msgpack, got text/html: is this the address of a pipeline?",
    ),
    "of no type": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "expected application/vnd.msgpack, got nothing"),
    "not there yet": (response(404, b"no snapshot yet\n", "text/plain"), "expected 200, got 404: no snapshot yet"),
    "another API": (
        response(404, b'{"paths":[]}', "application/json"),
        "expected 200, got 404: is this the address of a pipeline?",
    ),
    "not for us": (response(401, b'{"message":"Unauthorized"}'), "expected 200, got 401"),
    "a redirect": (response(302, b"", Location="http://localhost:1/"), "expected 200, got 302"),
    "not modified": (b"HTTP/1.1 304 Not Modified\r\n\r\n", "expected 200, got 304"),
    "no HTTP": (b"garbage\r\n\r\n", "RemoteProtocolError"),
    "nothing": (b"", "RemoteProtocolError"),
}


@pytest.mark.parametrize(("sent", "cause"), REFUSED.values(), ids=REFUSED)
def test_an_invalid_response_is_logged_and_the_stored_snapshot_stays(tmp_path: Path, sent: bytes, cause: str) -> None:
    with pulling(tmp_path, saying(sent)) as (follower, held, _):
        assert cause in refused(follower, held)


def test_an_older_snapshot_is_logged_by_the_store_and_pulled_again(tmp_path: Path) -> None:
    older = saying(response(200, encode(snapshot(entry(), at_s=AT_S - 60)), ETag='"older"'))
    with pulling(tmp_path, older) as (follower, held, server), structlog.testing.capture_logs() as logs:
        before = held.current
        assert follower.pull()
        assert follower.pull()
        assert held.current is before
        assert not any("If-None-Match" in head for head in server.heads)
    assert [log["event"][:42] for log in logs] == ["a snapshot older than the current one is r"]


def test_before_the_first_snapshot_each_fault_is_logged(tmp_path: Path) -> None:
    held = SnapshotStore(clock=lambda: AT_S)
    with strange_server(saying(response(404, b"no snapshot yet")), None) as server:
        follower = Follower(f"http://127.0.0.1:{server.port}", held)
        with structlog.testing.capture_logs() as logs:
            follower.pull()
            server.behave = saying(response(200, OTHER_VERSION))
            follower.pull()
            follower.pull()
            assert held.current is None
            server.behave = SOUND
            assert follower.pull()
        follower.stop()
    assert held.current is not None
    assert [log["log_level"] for log in logs] == ["warning", "warning", "info"]


@pytest.mark.parametrize(
    ("token", "cause"),
    [(None, "No such file"), ("", "expected a token in"), ("sec\nret", "other characters")],
    ids=["absent", "empty", "two lines"],
)
def test_an_invalid_token_is_logged_without_its_text(tmp_path: Path, token: str | None, cause: str) -> None:
    with pulling(tmp_path, SOUND) as (follower, held, server):
        (tmp_path / "token").unlink()
        if token is not None:
            (tmp_path / "token").write_text(token)
        message = refused(follower, held)
        assert cause in message
        assert "sec" not in message.replace("secs", "")
        assert server.heads == []


def test_a_connection_is_reused(tmp_path: Path) -> None:
    """A handshake a second would be most of the work of a pull."""
    reusable = response(200, BODY, ETag='"1"', Connection="keep-alive")
    unchanged = b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n'
    connections = []

    def behave(connection: Any, head: str) -> None:
        connections.append(connection)
        connection.sendall(reusable)
        for _ in range(2):
            connection.recv(4096)
            connection.sendall(unchanged)

    with pulling(tmp_path, behave) as (follower, _, _):
        assert [follower.pull() for _ in range(3)] == [True, True, True]
    assert len(connections) == 1


@pytest.mark.parametrize(
    ("url", "warned"),
    [("http://pipeline.invalid:8443", True), ("http://127.0.0.1:1", False), ("https://pipeline.invalid", False)],
)
def test_snapshots_over_plain_http_are_logged(url: str, warned: bool) -> None:
    follower = Follower(url, SnapshotStore())
    with structlog.testing.capture_logs() as logs:
        follower.start()
        follower.stop()
    assert any("plain HTTP" in log["event"] for log in logs) is warned
