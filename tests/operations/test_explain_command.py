"""`backlog-adapter explain` against a pipeline's own port on loopback."""

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from flask import Flask
from hostile_server import http_server, send
from msgspec.json import encode
from records import growing

from adapter import cli, config
from adapter.apiserver.app import create_app
from adapter.apiserver.server import Server
from adapter.apiserver.tls import LiveTls
from adapter.core.decisions import Decision
from adapter.http_body import LARGEST_BODY
from adapter.operations import record_client
from adapter.serving.routes import publisher_routes
from adapter.serving.snapshots.columns import entries_of
from adapter.serving.snapshots.records import Record
from adapter.serving.snapshots.snapshot import Entry, Snapshot
from adapter.serving.snapshots.store import SnapshotStore

RECORD = growing(max_workers=12)
CA, OTHER_CA = trustme.CA(), trustme.CA()


@dataclass(frozen=True)
class Pipeline:
    """A running publisher and the files of its clients."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    @property
    def token(self) -> str:
        return str(self.folder / "token")

    @property
    def ca(self) -> str:
        return str(self.folder / "ca.crt")


def serving(record: Record, token_file: str | None, tls: LiveTls | None) -> Server:
    store = SnapshotStore(clock=lambda: record.decision.at_s)
    entries = entries_of(record.decision.at_s, [Entry(decision=record.decision, error_after_s=180, window_s=60.0)])
    store.put(Snapshot(at_s=record.decision.at_s, tick_s=15, error_after_s=180, entries=entries))

    def record_of(workload: str) -> tuple[Decision, dict[str, float | None]] | None:
        return (record.decision, dict(record.record)) if workload == record.decision.workload else None

    app = create_app(publisher_routes(store, record_of, token_file))
    return Server(app, "127.0.0.1", 0, tls)


@contextmanager
def started(server: Server) -> Iterator[Server]:
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    """The address of a pipeline without TLS and token, as `run` has it."""
    with started(serving(RECORD, None, None)) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """A pipeline as the chart runs it: TLS and a token."""
    folder = tmp_path_factory.mktemp("pipeline")
    leaf = CA.issue_cert("localhost")
    leaf.private_key_pem.write_to_path(str(folder / "tls.key"))
    leaf.cert_chain_pems[0].write_to_path(str(folder / "tls.crt"))
    CA.cert_pem.write_to_path(str(folder / "ca.crt"))
    OTHER_CA.cert_pem.write_to_path(str(folder / "other.crt"))
    (folder / "token").write_text("secret\n")
    (folder / "wrong").write_text("guess\n")
    (folder / "two-lines").write_text("hunter2\nsecond\n")
    (folder / "accent").write_text("hunter2é\n", encoding="utf-8")
    tls = LiveTls(str(folder / "tls.crt"), str(folder / "tls.key"))
    with started(serving(RECORD, str(folder / "token"), tls)) as server:
        yield Pipeline(folder, server.port)


def run(*arguments: str) -> int:
    """The exit code of the command."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["explain", *arguments])
    return int(ended.value.code or 0)


def test_the_explanation_has_no_colours(plain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("shop/orders", "--url", plain) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Scaling up from 10 to 12 workers: backlog time 125 s")
    assert "> decided by   max workers" in printed
    assert "\x1b" not in printed


def test_json_is_the_record(plain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("shop/orders", "--url", plain, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["record"] == RECORD.record
    assert printed["sentence"] == RECORD.sentence


def test_the_configuration_gives_address_token_and_ca(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {
        "sources": {"lag": {"kind": "trace", "url": "http://127.0.0.1:1"}},
        "workloads": [{"namespace": "shop", "name": "orders", "read": [{"source": "lag"}]}],
        "pipeline": {"checkpoint": "unused"},
        "serving": {
            "snapshot_url": pipeline.url,
            "snapshot_ca_file": pipeline.ca,
            "snapshot_token_file": pipeline.token,
        },
    }
    file = pipeline.folder / "config.yaml"
    file.write_text(yaml.safe_dump(settings))
    assert run("shop/orders", "--config", str(file)) == 0
    assert "max workers" in capsys.readouterr().out


def test_the_configuration_gives_the_streams(plain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    settings = {
        "sources": {"pravega": {"kind": "pravega", "url": "http://127.0.0.1:1"}},
        "workloads": [
            {"namespace": "shop", "name": "orders", "read": [{"source": "pravega", "scope": "s1", "stream": "orders"}]}
        ],
        "pipeline": {"checkpoint": "unused"},
    }
    file.write_text(yaml.safe_dump(settings))
    assert run("shop/orders", "--config", str(file), "--url", plain) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Streams, as Pravega scales them s1/orders unknown: pravega: stream s1/orders of http://127" in printed
    assert run("shop/orders", "--url", plain) == 0
    assert "Streams" not in capsys.readouterr().out


def test_options_override_the_configuration(pipeline: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--url", pipeline.url.replace("https", "HTTPS"), "--token-file", pipeline.token, "--ca-file", pipeline.ca]
    assert run("shop/orders", *given) == 0
    assert "max workers" in capsys.readouterr().out


FAULTS = {
    "no listener": (["--url", "http://127.0.0.1:1"], "start `backlog-adapter run`, or name the pipeline with --url"),
    "no token": (["--url", "{url}", "--ca-file", "{ca}"], "requires a token"),
    "wrong token": (
        ["--url", "{url}", "--ca-file", "{ca}", "--token-file", "{folder}/wrong"],
        "does not accept the token in",
    ),
    "no such token file": (
        ["--url", "{url}", "--ca-file", "{ca}", "--token-file", "{folder}/none"],
        "cannot be read",
    ),
    "a token of two lines": (
        ["--url", "{url}", "--ca-file", "{ca}", "--token-file", "{folder}/two-lines"],
        "expected a token in",
    ),
    "a token with an accent": (
        ["--url", "{url}", "--ca-file", "{ca}", "--token-file", "{folder}/accent"],
        "expected a token in",
    ),
    "a token without TLS": (["--url", "http://localhost", "--token-file", "{token}"], "is sent over https only"),
    "another CA": (["--url", "{url}", "--ca-file", "{folder}/other.crt"], "is not trusted"),
    "no CA at all": (["--url", "{url}", "--ca-file", "{folder}/token"], "expected PEM certificates in"),
    "http to https": (["--url", "http://localhost:{port}"], "check --url, http or https too"),
    "no scheme": (
        ["--url", "127.0.0.1:8080"],
        "--url: expected an address with http:// or https://, got '127.0.0.1:8080'",
    ),
    "no host": (["--url", "http://"], "check --url, http or https too"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_sentence_with_its_remedy(
    fault: str, pipeline: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, words = FAULTS[fault]
    known = {
        "url": pipeline.url,
        "ca": pipeline.ca,
        "token": pipeline.token,
        "folder": str(pipeline.folder),
        "port": str(pipeline.port),
    }
    assert run("shop/orders", *(argument.format(**known) for argument in arguments)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert words in printed.err
    assert len(printed.err.splitlines()) == 1
    assert "hunter2" not in printed.err


def test_without_an_answer_the_configuration_names_the_command_that_listens_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        'sources: {lag: {kind: trace, url: "http://127.0.0.1:1"}}\n'
        "workloads: [{namespace: shop, name: orders, read: [{source: lag}]}]\n"
        "pipeline: {checkpoint: unused, port: 1}\n"
    )
    assert run("shop/orders", "--config", str(file)) == 2
    assert "start `backlog-adapter pipeline --config FILE`, or name the pipeline with --url" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ("shop/order", "did you mean 'shop/orders'?"),
        ("orders", "expected a workload as namespace/name"),
        ("shop/a/b", "expected a workload as namespace/name"),
        ("../metrics", "expected a workload as namespace/name"),
    ],
)
def test_an_unknown_workload_is_refused(
    workload: str, words: str, plain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(workload, "--url", plain) == 2
    assert words in capsys.readouterr().err


def test_a_record_of_another_release_is_refused(plain: str, capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads(record_client.fetch("shop/orders", record_client.Address(url=plain)))
    app = Flask("another release")
    app.add_url_rule("/explain/shop/orders", view_func=lambda: record | {"version": "9.0"})
    with started(Server(app, "127.0.0.1", 0)) as server:
        assert run("shop/orders", "--url", f"http://127.0.0.1:{server.port}") == 2
    assert "a record of release 9.0" in capsys.readouterr().err


HOSTILE: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "a body without a limit": (
        gzip.compress(b" " * (LARGEST_BODY + 1)),
        {"Content_Encoding": "gzip"},
        f"the answer is larger than {LARGEST_BODY} bytes; give the address of a pipeline",
    ),
    "bytes that are not UTF-8": (b'{"message": "\xff"}', {}, "answers 200 and knows no records"),
    "deep nesting": (b"[" * 100_000, {}, "answers 200 and knows no records"),
    "escape sequences": (b'{"message": "\\u001b[2Jgone"}', {"status": 404}, "backlog-adapter: \\x1b[2Jgone"),
    "a record of another release": (
        encode(replace(RECORD, version="\x1b[2J9.0")),
        {},
        "a record of release \\x1b[2J9.0, this is",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_one_printable_sentence(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    body, more, words = HOSTILE[name]
    with http_server(lambda request, form: send(request, body, **more)) as url:
        assert run("shop/orders", "--url", url) == 2
    printed = capsys.readouterr().err
    assert words in printed
    assert printed.removesuffix("\n").isprintable()


def test_a_sentence_with_escape_sequences_is_printed_as_their_codes(capsys: pytest.CaptureFixture[str]) -> None:
    body = encode(replace(RECORD, sentence="\x1b[2JScaling up"))
    with http_server(lambda request, form: send(request, body)) as url:
        assert run("shop/orders", "--url", url) == 0
    assert capsys.readouterr().out.startswith("\\x1b[2JScaling up")


def test_without_numpy_the_error_names_the_remedy(plain: str) -> None:
    program = "import sys; sys.modules['numpy'] = None; from adapter.cli import main; main()"
    arguments = [sys.executable, "-c", program, "explain", "shop/orders", "--url", plain]
    ended = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "backlog-adapter: numpy is not installed here: ask in the pipeline's pod, or add --json\n"
    assert subprocess.run([*arguments, "--json"], capture_output=True, timeout=60, check=False).returncode == 0


def test_a_server_without_records_is_named_as_such(plain: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("shop/orders", "--url", f"{plain}/apis") == 2
    assert "knows no records" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        (str(IPv4Address(0)), "127.0.0.1"),
        ("::", "127.0.0.1"),
        ("10.1.2.3", "10.1.2.3"),
        ("::1", "[::1]"),
        ("pod", "pod"),
    ],
)
def test_without_a_snapshot_address_the_pipeline_is_on_this_machine(host: str, expected: str) -> None:
    text = f"""
sources: {{lag: {{kind: trace, url: "http://127.0.0.1:1"}}}}
workloads: [{{name: orders, read: [{{source: lag}}]}}]
pipeline: {{checkpoint: unused, host: "{host}", port: 9000}}
"""
    assert record_client.address_of(config.parse(text, "test")).url == f"http://{expected}:9000"


def test_the_token_is_read_from_the_file_that_this_pod_has(tmp_path: Path) -> None:
    """The chart gives both roles one configuration."""
    token = tmp_path / "token"
    token.write_text("secret")
    text = f"""
sources: {{lag: {{kind: trace, url: "http://127.0.0.1:1"}}}}
workloads: [{{name: orders, read: [{{source: lag}}]}}]
pipeline: {{checkpoint: unused, cert_file: crt, key_file: key, token_file: {token}}}
serving: {{snapshot_url: "https://pipeline:8443", snapshot_token_file: {tmp_path}/of-serve}}
"""
    assert record_client.address_of(config.parse(text, "test")).token_file == str(token)
