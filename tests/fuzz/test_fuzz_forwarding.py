"""Any request for a metric of another adapter: it is asked once, and whatever it answers is answered soundly."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import quote

import pytest
from fuzz_answers import check, sound_fields
from fuzz_asking import answered
from fuzz_inputs import Sent, mostly, segments, sendable, sent
from fuzz_lengths import examples
from fuzz_servers import forwarding
from hypothesis import given
from hypothesis import strategies as st

from adapter.serving.api.metrics_api import MetricsApi
from conformance.identities import Identities

ROOT = "/apis/external.metrics.k8s.io/v1beta1/namespaces"
NOTHING = b'{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","metadata":{},"items":[]}'
# All that another adapter is told besides the question.
TOLD = {"host", "accept", "accept-encoding", "user-agent", "authorization", "connection"}


def _reply(code: int, content_type: bytes, body: bytes) -> bytes:
    head = b"HTTP/1.1 %d X\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
    return head % (code, content_type, len(body)) + body


@dataclass
class Other:
    """Another adapter. reply: what it sends. targets, headers: of what it was asked."""

    reply: bytes = _reply(200, b"application/json", NOTHING)
    targets: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)


def _behaviour(other: Other) -> type[BaseHTTPRequestHandler]:
    class Behaviour(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            other.targets.append(self.path)
            other.headers = {name.lower(): value for name, value in self.headers.items()}
            with suppress(OSError):
                self.wfile.write(other.reply)

        def log_message(self, *_: object) -> None:
            pass

    return Behaviour


@contextmanager
def _running(other: Other, identities: Identities) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*identities.serving)
    with ThreadingHTTPServer(("127.0.0.1", 0), _behaviour(other)) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"https://localhost:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def other(identities: Identities) -> Other:
    return Other()


@pytest.fixture(scope="module")
def forwarder(other: Other, identities: Identities) -> Iterator[MetricsApi]:
    with _running(other, identities) as url, forwarding(url, identities.folder) as api:
        yield api


def _asking(sending: Sent, namespace: str, metric: str) -> Sent:
    return replace(sending, method="GET", path=f"{ROOT}/{namespace}/{metric}".encode())


@examples(80, share=0.1)
@given(st.builds(_asking, sent, segments, segments))
def test_another_adapter_is_asked_what_the_caller_asked_and_told_nothing_else(
    forwarder: MetricsApi, other: Other, sending: Sent
) -> None:
    other.reply = _reply(200, b"application/json", NOTHING)
    other.targets.clear()
    response = answered(forwarder, sending)
    check(response)
    assert response.code != 503 or any(value.startswith(b"backlog-adapter/") for _, value in sending.headers)
    assert len(other.targets) <= 1
    for target in other.targets:
        assert target == _in_ascii(sending)
        assert other.headers.keys() <= TOLD
        assert other.headers["authorization"] == "Bearer secret"


def _in_ascii(sending: Sent) -> str:
    """The target as it was sent, but for what no target may hold."""
    text = (sending.path + b"?" + sending.query if sending.query else sending.path).decode("utf-8", "replace")
    return "".join(each if "!" <= each <= "~" else quote(each) for each in text)


_CODES = (*[200] * 6, 204, 206, 302, 304, 400, 401, 404, 429, 500, 503, 599, 600, 99)
_TYPES = (*[b"application/json"] * 4, b"Application/JSON; a=b", b"application/yaml", b"text/plain", b"text/html", b"")
_PROTOBUF = b"application/vnd.kubernetes.protobuf"
_BODIES = (*[NOTHING] * 4, b"k8s\0", b"k8s\0\n", b"null", b"[]", b"[" * 50_000, b'{"kind":1}', b'{"message":"\n"}', b"")
_whole_replies = st.builds(
    _reply,
    st.sampled_from(_CODES),
    mostly(st.sampled_from((*_TYPES, _PROTOBUF)), st.binary(max_size=20).map(sendable)),
    mostly(st.sampled_from(_BODIES), st.binary(max_size=40)),
)
_replies = mostly(_whole_replies, st.binary(max_size=60))


@examples(80, share=0.1)
@given(_replies)
def test_whatever_another_adapter_answers_is_passed_on_as_it_is_or_is_a_503(
    forwarder: MetricsApi, other: Other, reply: bytes
) -> None:
    other.reply = reply
    response = answered(forwarder, Sent("GET", f"{ROOT}/shop/lag".encode()))
    fields = sound_fields(response)
    if response.code != 503:
        assert b" %d " % response.code in reply
        assert response.body == reply.partition(b"\r\n\r\n")[2]
        assert fields["content-type"].encode("latin-1") in reply
