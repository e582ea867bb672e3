"""A stand-in for kube-apiserver on loopback: one ConfigMap, TokenReview, SubjectAccessReview and a little discovery.

It knows one good token, decides access by the user's name alone, and records every review. Tests change its attributes
while it runs.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from conformance.identities import FRONT_PROXY, Identities

HPA = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
ALLOWED = frozenset({"alice", HPA, "system:aggregator", "system:kube-aggregator"})
GOOD_TOKEN = "good"  # noqa: S105  # the name that recordings use
# The review of a token or a user with one of these names fails.
FAILING = frozenset({"boom", "sarboom"})
DENIED = "no RBAC policy matched"
OWN_TOKEN = "t0k3n"  # noqa: S105  # what a client of the stand-in has to send
CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
CONFIG_MAP = f"{CONFIG_MAPS}/extension-apiserver-authentication"

_GROUPS = ["system:serviceaccounts", "system:serviceaccounts:kube-system"]
_OWNER = {"username": HPA, "uid": "hpa-uid", "groups": _GROUPS, "extra": {"pod": ["p"]}}
_NAMESPACES = {"name": "namespaces", "singularName": "", "namespaced": False, "kind": "Namespace", "verbs": ["get"]}
# What a client reads to find the resources of the cluster: namespaces alone.
_DISCOVERY: dict[str, Mapping[str, Any]] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [_NAMESPACES]},
}
_SILENT_S = 60.0
Answer = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class Review:
    """A received review. kind: TokenReview or SubjectAccessReview."""

    kind: str
    spec: Mapping[str, Any]


class Cluster:
    """A stand-in. config_map: the data of extension-apiserver-authentication."""

    def __init__(self, config_map: Mapping[str, str]) -> None:
        self.config_map = dict(config_map)
        self.kubeconfig = ""  # the file to connect with
        self.reviews: list[Review] = []  # received, in order
        self.applied: list[tuple[str, str, Any]] = []  # path with query, Content-Type and document of every PATCH
        self.accepted: list[str] = []  # the Accept header of every request
        self.connections = 0  # made so far
        self.failures: list[Answer] = []  # given before any other answer, one a request
        self.silent = False  # no answer until the end
        self.stopped = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Answer on a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Close every connection."""
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def specs(self, kind: str = "SubjectAccessReview") -> list[Mapping[str, Any]]:
        """The received reviews of a kind."""
        return [each.spec for each in list(self.reviews) if each.kind == kind]

    def count(self, kind: str) -> int:
        """The number of received reviews of a kind."""
        return len(self.specs(kind))

    def access_of(self, user: str) -> list[Mapping[str, Any]]:
        """The access reviews of a user."""
        return [spec for spec in self.specs() if spec.get("user") == user]

    def record(self, method: str, path: str, kind: str, body: Any) -> None:
        """Store a received document."""
        if method == "PATCH":
            self.applied.append((path, kind, body))
        else:
            self.reviews.append(Review(body["kind"], body["spec"]))

    def answer(self, path: str, authorization: str, body: Any) -> Answer:
        """The answer to a request. body: None for a GET."""
        if self.silent:
            self.stopped.wait(_SILENT_S)
        if self.failures:
            return self.failures.pop(0)
        if authorization.partition(" ")[2] not in (OWN_TOKEN, ""):  # clients in Go send no token over plain HTTP
            return status(401, "Unauthorized")
        if body is not None:
            return _reviewed(body) if "Review" in body["kind"] else _json(body)
        path, _, query = path.partition("?")
        if path == CONFIG_MAPS and "sendInitialEvents" in query:
            return status(422, "Invalid")  # client-go lists instead
        document = {**_DISCOVERY, CONFIG_MAP: self._config_map(), CONFIG_MAPS: self._list()}.get(path)
        return status(404, "the server could not find the requested resource") if document is None else _json(document)

    def _config_map(self) -> Mapping[str, Any]:
        namespace, name = CONFIG_MAP.split("/")[-3], CONFIG_MAP.split("/")[-1]
        metadata = {"name": name, "namespace": namespace, "resourceVersion": "10"}
        return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": self.config_map}

    def _list(self) -> Mapping[str, Any]:
        head = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "10"}}
        return {**head, "items": [self._config_map()]}


def status(code: int, message: str) -> Answer:
    """A failure as kube-apiserver writes it."""
    failure = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": message, "message": message}
    return _json({**failure, "code": code}, code)


def kubeconfig(url: str, **user: str) -> str:
    """The content of a kubeconfig. user: the credentials, such as token."""
    name = "stand-in"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": user}],
    }
    return json.dumps(document)


def write_kubeconfig(folder: Path, port: int, token: str = OWN_TOKEN) -> str:
    """Write the file to connect with, and return its path."""
    file = folder / "kubeconfig"
    file.write_text(kubeconfig(f"http://127.0.0.1:{port}", token=token), "utf-8")
    return str(file)


@contextmanager
def run_cluster(config_map: Mapping[str, str], folder: Path) -> Iterator[Cluster]:
    """Run a stand-in while the block lasts. folder: for its kubeconfig."""
    cluster = Cluster(config_map)
    cluster.kubeconfig = write_kubeconfig(folder, cluster.port)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


def authentication_config(identities: Identities) -> Mapping[str, str]:
    """The data of extension-apiserver-authentication for these identities."""
    return {
        "client-ca-file": identities.client_cas,
        "requestheader-client-ca-file": identities.proxy_cas,
        "requestheader-allowed-names": json.dumps([FRONT_PROXY]),
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }


def _reviewed(review: Any) -> Answer:
    decide = _token_status if review["kind"] == "TokenReview" else _access_status
    decided = decide(review["spec"])
    return status(500, "review failed") if decided is None else _json({**review, "status": decided}, 201)


def _token_status(spec: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """None for a review that fails."""
    if spec["token"] in FAILING:
        return None
    return {"authenticated": True, "user": _OWNER} if spec["token"] == GOOD_TOKEN else {"user": {}, "error": "unknown"}


def _access_status(spec: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """None for a review that fails."""
    user = spec.get("user", "")
    if user in FAILING:
        return None
    return {"allowed": True} if user in ALLOWED else {"allowed": False, "reason": DENIED}


def _json(document: object, code: int = 200) -> Answer:
    return code, json.dumps(document).encode()


def _handler(cluster: Cluster) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle(self) -> None:
            cluster.connections += 1
            with suppress(ConnectionError):  # the client left
                super().handle()

        def log_message(self, *_: object) -> None:
            """Do not log requests."""

        def do_GET(self) -> None:  # the name is http.server's
            if "watch=" in self.path and "sendInitialEvents" not in self.path:
                self._watch()
            else:
                self._reply(None)

        def do_POST(self) -> None:  # the name is http.server's
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            cluster.record(self.command, self.path, self.headers["Content-Type"], body)
            self._reply(body)

        do_PATCH = do_POST  # noqa: N815 - the name is http.server's

        def _watch(self) -> None:
            """Send no events until the end."""
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Connection", "close")
            self.end_headers()
            cluster.stopped.wait(_SILENT_S)
            self.close_connection = True

        def _reply(self, body: Any) -> None:
            cluster.accepted.append(self.headers.get("Accept", ""))
            code, content = cluster.answer(self.path, self.headers.get("Authorization", ""), body)
            self.send_response(code)
            self.send_header("Content-Type", "application/json" if content[:1] in b"{[" else "text/plain")
            self.send_header("Content-Length", str(len(content)))
            with suppress(ConnectionError):  # the client gave up
                self.end_headers()
                self.wfile.write(content)

    return Handler
