"""A stand-in for kube-apiserver on loopback: one ConfigMap, TokenReview and SubjectAccessReview.

It knows one good token, decides access by the user's name alone, and records every review.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from flask import Flask, Response, request
from werkzeug.serving import WSGIRequestHandler, make_server

from conformance.identities import FRONT_PROXY, Identities

HPA = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
ALLOWED = frozenset({"alice", HPA, "system:aggregator", "system:kube-aggregator"})
GOOD_TOKEN = "good"  # noqa: S105  # the name that recordings use
# The review of a token or a user with one of these names fails.
FAILING = frozenset({"boom", "sarboom"})

_CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
_NAME = "extension-apiserver-authentication"
_WATCH_S = 60.0
Document = dict[str, Any]
_NAMESPACES = {"name": "namespaces", "singularName": "", "namespaced": False, "kind": "Namespace", "verbs": ["get"]}
# What a client reads to find the resources of the cluster: namespaces alone.
_DISCOVERY: dict[str, Document] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [_NAMESPACES]},
}


@dataclass(frozen=True, slots=True)
class Review:
    """A received review. kind: TokenReview or SubjectAccessReview."""

    kind: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running stand-in. kubeconfig: the file to connect with. reviews: received, in order."""

    url: str
    kubeconfig: str
    reviews: list[Review] = field(default_factory=list)

    def access_of(self, user: str) -> list[Mapping[str, Any]]:
        """The access reviews of a user."""
        return [each.spec for each in list(self.reviews) if each.spec.get("user") == user]


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        """Do not log requests."""


@contextmanager
def run_cluster(identities: Identities) -> Iterator[Cluster]:
    """Run a stand-in while the block lasts."""
    reviews: list[Review] = []
    stopped = threading.Event()
    app = _app(_config_map(identities), reviews, stopped)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="stand-in", daemon=True)
    thread.start()
    url, kubeconfig = f"http://127.0.0.1:{server.server_port}", identities.folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(_kubeconfig(url)), "utf-8")
    try:
        yield Cluster(url, str(kubeconfig), reviews)
    finally:
        stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _app(config_map: Document, reviews: list[Review], stopped: threading.Event) -> Flask:
    app = Flask(__name__)

    @app.get(f"{_CONFIG_MAPS}/{_NAME}")
    def get() -> Document:
        return config_map

    @app.get(_CONFIG_MAPS)
    def list_or_watch() -> Document | Response | tuple[Document, int]:
        if "sendInitialEvents" in request.args:  # client-go lists instead
            return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}, 422
        if "watch" in request.args:  # a watch without changes
            return Response(_no_events(stopped), mimetype="application/json")
        head = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "10"}}
        return {**head, "items": [config_map]}

    for path, document in _DISCOVERY.items():
        app.add_url_rule(path, path, partial(dict, document))

    @app.post("/apis/<path:_>")
    def review(_: str) -> tuple[Document, int]:
        received = request.get_json(force=True)
        reviews.append(Review(received["kind"], received["spec"]))
        status = (_token_status if received["kind"] == "TokenReview" else _access_status)(received["spec"])
        if status is None:
            failure = {"kind": "Status", "status": "Failure", "reason": "InternalError", "message": "review failed"}
            return {"apiVersion": "v1", "code": 500, **failure}, 500
        return {**received, "status": status}, 201

    return app


def _no_events(stopped: threading.Event) -> Iterator[bytes]:
    yield b""
    stopped.wait(_WATCH_S)


def _token_status(spec: Mapping[str, Any]) -> Document | None:
    """None for a review that fails."""
    if spec["token"] in FAILING:
        return None
    if spec["token"] != GOOD_TOKEN:
        return {"user": {}}
    groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system"]
    return {"authenticated": True, "user": {"username": HPA, "uid": "hpa-uid", "groups": groups}}


def _access_status(spec: Mapping[str, Any]) -> Document | None:
    """None for a review that fails."""
    user = spec.get("user", "")
    if user in FAILING:
        return None
    return {"allowed": True} if user in ALLOWED else {"allowed": False, "reason": "no RBAC policy matched"}


def _config_map(identities: Identities) -> Document:
    data = {
        "client-ca-file": identities.client_cas,
        "requestheader-client-ca-file": identities.proxy_cas,
        "requestheader-allowed-names": json.dumps([FRONT_PROXY]),
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }
    metadata = {"name": _NAME, "namespace": "kube-system", "resourceVersion": "10"}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data}


def _kubeconfig(url: str) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "stand-in",
        "contexts": [{"name": "stand-in", "context": {"cluster": "stand-in", "user": "stand-in"}}],
        "clusters": [{"name": "stand-in", "cluster": {"server": url}}],
        "users": [{"name": "stand-in", "user": {}}],
    }
