"""Snapshots pulled over real TLS from a publisher on loopback."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import structlog
from serving_builders import AT_S, entry, snapshot
from serving_certificates import SERVER, STRANGERS, Files, pem, serving_files

from adapter.apiserver.app import create_app
from adapter.apiserver.server import Server
from adapter.apiserver.tls import LiveTls
from adapter.serving.routes import publisher_routes
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.snapshots.transport import Follower


@contextmanager
def publisher(store: SnapshotStore, files: Files, token: Path, port: int = 0) -> Iterator[Server]:
    app = create_app(publisher_routes(store, lambda workload: None, str(token)))
    server = Server(app, "127.0.0.1", port, LiveTls(str(files.cert), str(files.key)))
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return serving_files(tmp_path)


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("secret")
    return file


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    file = tmp_path / "ca.crt"
    file.write_text(pem(SERVER))
    return file


def follower(server: Server, held: SnapshotStore, ca: Path, token: Path | None) -> Follower:
    return Follower(
        f"https://localhost:{server.port}/", held, ca_file=str(ca), token_file=None if token is None else str(token)
    )


def test_a_published_snapshot_is_pulled_and_stored_once(files: Files, ca: Path, token: Path) -> None:
    source, held = SnapshotStore(), SnapshotStore()
    source.put(snapshot(entry()))
    with publisher(source, files, token) as server:
        pulling = follower(server, held, ca, token)
        assert pulling.pull()
        first = held.current
        assert pulling.pull()
        assert held.current is first
        source.put(snapshot(entry(required_workers=7.0), at_s=AT_S + 15))
        assert pulling.pull()
        pulling.stop()
    assert first is not None
    assert source.current is not None
    assert held.current == source.current


def test_a_snapshot_in_the_future_is_pulled_again_until_its_time_has_come(files: Files, ca: Path, token: Path) -> None:
    now_s = [AT_S - 3600]
    source, held = SnapshotStore(), SnapshotStore(clock=lambda: now_s[0])
    source.put(snapshot(entry()))
    with publisher(source, files, token) as server:
        pulling = follower(server, held, ca, token)
        assert pulling.pull()
        assert held.current is None
        now_s[0] = AT_S
        assert pulling.pull()
        pulling.stop()
    assert held.current == source.current


def test_with_a_wrong_token_nothing_is_stored(files: Files, ca: Path, token: Path, tmp_path: Path) -> None:
    source, held = SnapshotStore(), SnapshotStore()
    source.put(snapshot(entry()))
    wrong = tmp_path / "wrong"
    wrong.write_text("guess")
    with publisher(source, files, token) as server:
        for given in (wrong, None):
            pulling = follower(server, held, ca, given)
            assert not pulling.pull()
            pulling.stop()
    assert held.current is None


def test_a_changed_ca_file_is_used_by_the_next_pull(files: Files, ca: Path, token: Path) -> None:
    """While one CA replaces the other both are in the file, and no pull fails."""
    source, held = SnapshotStore(), SnapshotStore()
    source.put(snapshot(entry()))
    with publisher(source, files, token) as server:
        pulling = follower(server, held, ca, token)
        for authorities, is_trusted in (((SERVER,), True), ((STRANGERS, SERVER), True), ((STRANGERS,), False)):
            ca.write_text(pem(*authorities))
            assert pulling.pull() is is_trusted
        pulling.stop()


def test_a_publisher_of_another_ca_is_not_trusted(files: Files, ca: Path, token: Path) -> None:
    source, held = SnapshotStore(), SnapshotStore()
    source.put(snapshot(entry()))
    files.write(STRANGERS.issue_cert("localhost"))
    with publisher(source, files, token) as server:
        pulling = follower(server, held, ca, token)
        assert not pulling.pull()
        ca.write_text(pem(STRANGERS))
        assert pulling.pull(), "a new CA file is read after a failure"
        pulling.stop()
    assert held.current is not None


def test_an_unreachable_pipeline_is_logged_once_and_the_last_snapshot_stays(
    files: Files, ca: Path, token: Path
) -> None:
    source, held = SnapshotStore(), SnapshotStore()
    source.put(snapshot(entry()))
    with publisher(source, files, token) as server:
        pulling = follower(server, held, ca, token)
        assert pulling.pull()
    with structlog.testing.capture_logs() as logs:
        assert not pulling.pull()
        assert not pulling.pull()
        with publisher(source, files, token, server.port):
            assert pulling.pull()
            assert pulling.pull()
        pulling.stop()
    assert held.current is not None
    assert [log["log_level"] for log in logs] == ["warning", "info"]
