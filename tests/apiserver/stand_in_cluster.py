"""A stand-in for kube-apiserver over real HTTP on loopback: the ConfigMap, TokenReview and SubjectAccessReview.

It knows two tokens and three users, counts what it is asked, and misbehaves as told.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
HPA = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
OURS = "t0k3n"  # the token of the adapter itself
OWNERS = {"good": {"username": HPA, "uid": "hpa-uid", "groups": ["system:serviceaccounts"], "extra": {"pod": ["p"]}}}
DENIED = "no RBAC policy matched"


class StandInCluster:
    """asked: (kind, spec) of every review. accepted: the Accept of every request. connections: how many were made.
    failures: answers given before any other, one a call. silent: no answer before the end of the test."""

    def __init__(self) -> None:
        self.config_map: dict[str, str] = {}
        self.allowed = {"alice", HPA, "system:aggregator", "system:kube-aggregator"}
        self.asked: list[tuple[str, Any]] = []
        self.accepted: list[str] = []
        self.reads = 0
        self.connections = 0
        self.failures: list[tuple[int, bytes]] = []
        self.silent = False
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def count(self, kind: str) -> int:
        return sum(asked == kind for asked, _ in self.asked)

    def specs(self, kind: str = "SubjectAccessReview") -> list[Any]:
        return [spec for asked, spec in self.asked if asked == kind]

    def answer(self, path: str, bearer: str, body: Any) -> tuple[int, bytes]:
        if self.silent:
            self._released.wait(30)
        if self.failures:
            return self.failures.pop(0)
        if bearer != f"bearer {OURS}":
            return status(401, "Unauthorized")
        if path == CONFIG_MAP:
            self.reads += 1
            return _written(200, {"kind": "ConfigMap", "data": self.config_map})
        if path in (
            "/apis/authentication.k8s.io/v1/tokenreviews",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        ):
            review = self._reviewed(body["kind"], body["spec"])
            return _written(201, body | {"status": review})
        return status(404, "the server could not find the requested resource")

    def record(self, body: Any) -> None:
        self.asked.append((body["kind"], body["spec"]))

    def _reviewed(self, kind: str, spec: Any) -> dict[str, Any]:
        if kind == "TokenReview":
            owner = OWNERS.get(spec["token"])
            return {"user": {}, "error": "unknown"} if owner is None else {"authenticated": True, "user": owner}
        allowed = spec.get("user") in self.allowed
        return {"allowed": True} if allowed else {"allowed": False, "reason": DENIED}


def status(code: int, message: str) -> tuple[int, bytes]:
    return _written(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message})


def _written(code: int, document: object) -> tuple[int, bytes]:
    return code, json.dumps(document).encode()


def _handler(cluster: StandInCluster) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            cluster.connections += 1
            super().setup()

        def handle(self) -> None:
            with suppress(ConnectionError):  # whoever asked has hung up
                super().handle()

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._reply(None)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            cluster.record(body)
            self._reply(body)

        def _reply(self, body: Any) -> None:
            cluster.accepted.append(self.headers["Accept"])
            bearer = self.headers.get("Authorization", "").replace("Bearer", "bearer")
            code, content = cluster.answer(self.path, bearer, body)
            self.send_response(code)
            self.send_header("Content-Type", "application/json" if content[:1] in b"{[" else "text/plain")
            self.send_header("Content-Length", str(len(content)))
            with suppress(ConnectionError):  # whoever asked has given up
                self.end_headers()
                self.wfile.write(content)

    return Handler


@contextmanager
def stand_in() -> Iterator[StandInCluster]:
    cluster = StandInCluster()
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


def kubeconfig(folder: Path, port: int, token: str = OURS) -> str:
    file = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    file.write_text(json.dumps(document))
    return str(file)
