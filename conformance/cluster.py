"""A stand-in for kube-apiserver, on loopback: it tells whom to trust, reviews tokens and access, and notes each review.

It is no Kubernetes: it knows one ConfigMap, one good token and four users, and judges by the user's name alone.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from adapter.serving.api.status import Document, failure
from conformance.identities import FRONT_PROXY, Identities

HPA = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
ALLOWED = frozenset({"alice", HPA, "system:aggregator", "system:kube-aggregator"})
GOOD_TOKEN = "good"  # noqa: S105  # no secret: a name that recordings use
# A token or a user of one of these names breaks the review.
BREAKING = frozenset({"boom", "sarboom"})

# What a review says that breaks.
BROKEN = json.dumps(failure(500, "InternalError", "the stand-in breaks off this review").document)

_CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
_NAME = "extension-apiserver-authentication"
_WATCH_S = 60.0
_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: stand-in
contexts: [{{name: stand-in, context: {{cluster: stand-in, user: stand-in}}}}]
clusters: [{{name: stand-in, cluster: {{server: "{url}"}}}}]
users: [{{name: stand-in, user: {{}}}}]
"""


@dataclass(frozen=True, slots=True)
class Review:
    """What was asked for. kind: TokenReview or SubjectAccessReview."""

    kind: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running stand-in. kubeconfig: how to reach it. reviews: what it was asked, in order."""

    url: str
    kubeconfig: str
    reviews: list[Review] = field(default_factory=list)

    def access_of(self, user: str) -> list[Mapping[str, Any]]:
        """What was asked about the access of a user."""
        return [each.spec for each in list(self.reviews) if each.spec.get("user") == user]


@contextmanager
def standing_in(identities: Identities, broken: str = BROKEN) -> Iterator[Cluster]:
    """Answer while the block lasts. broken: the body of a review that breaks."""
    server = _StandIn(_config_map(identities), broken)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="stand-in", daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    kubeconfig = identities.folder / "kubeconfig"
    kubeconfig.write_text(_KUBECONFIG.format(url=url), "utf-8")
    try:
        yield Cluster(url, str(kubeconfig), server.reviews)
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _config_map(identities: Identities) -> Document:
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": _NAME, "namespace": "kube-system", "resourceVersion": "10"},
        "data": {
            "client-ca-file": identities.client_cas,
            "requestheader-client-ca-file": identities.proxy_cas,
            "requestheader-allowed-names": json.dumps([FRONT_PROXY]),
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-uid-headers": '["X-Remote-Uid"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        },
    }


class _StandIn(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, config_map: Document, broken: str) -> None:
        self.config_map = config_map
        self.broken = broken
        self.reviews: list[Review] = []
        self.stopped = threading.Event()
        super().__init__(("127.0.0.1", 0), _Answers)


class _Answers(BaseHTTPRequestHandler):
    server: _StandIn

    def do_GET(self) -> None:
        """The ConfigMap, alone or in a list; a watch sees no change."""
        where, config_map = urlsplit(self.path), self.server.config_map
        query = parse_qs(where.query)
        if where.path == f"{_CONFIG_MAPS}/{_NAME}":
            self._send(200, config_map)
        elif where.path != _CONFIG_MAPS:
            self._send(404, failure(404, "NotFound", "the stand-in has nothing there").document)
        elif "sendInitialEvents" in query:
            self._send(422, failure(422, "Invalid", "the stand-in lists and watches, it streams no list").document)
        elif "watch" in query:
            self._watched()
        else:
            listed = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "10"}}
            self._send(200, listed | {"items": [config_map]})

    def do_POST(self) -> None:
        """A review."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.reviews.append(Review(asked["kind"], asked["spec"]))
        verdict = (_verdict_on_token if asked["kind"] == "TokenReview" else _verdict_on_access)(asked["spec"])
        if verdict is None:
            self._write(500, self.server.broken.encode())
        else:
            self._send(201, asked | {"status": verdict})

    def log_message(self, *_: object) -> None:
        """Nothing: who starts it has an output already."""

    def _watched(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        with suppress(OSError):  # who watches may go first
            self.end_headers()
            self.wfile.flush()
            self.server.stopped.wait(_WATCH_S)

    def _send(self, code: int, document: Document) -> None:
        self._write(code, json.dumps(document).encode())

    def _write(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        with suppress(OSError):
            self.end_headers()
            self.wfile.write(body)


def _verdict_on_token(spec: Mapping[str, Any]) -> Document | None:
    """None where the review breaks."""
    token = spec.get("token")
    if token in BREAKING:
        return None
    if token != GOOD_TOKEN:
        return {"user": {}}
    groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system"]
    return {"authenticated": True, "user": {"username": HPA, "uid": "hpa-uid", "groups": groups}}


def _verdict_on_access(spec: Mapping[str, Any]) -> Document | None:
    """None where the review breaks."""
    user = spec.get("user", "")
    if user in BREAKING:
        return None
    return {"allowed": True} if user in ALLOWED else {"allowed": False, "reason": "no RBAC policy matched"}
