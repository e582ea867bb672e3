"""The Go server that was recorded, in our types: what it lists, what it checks, and what it answered."""

from functools import cache
from typing import Any

from serving_builders import recorded

from adapter.serving.api import openapi, version
from adapter.serving.api.custom import ObjectMetric
from adapter.serving.api.discovery import Discovery
from adapter.serving.api.probes import Checks, Probes
from adapter.serving.api.request import Request
from adapter.serving.api.status import Answer, encode


def passing(*names: str) -> Checks:
    return {name: lambda: True for name in names}


INFORMERS, IN_FLIGHT, OBJECTS = (
    f"poststarthook/{name}"
    for name in ("generic-apiserver-start-informers", "max-in-flight-filter", "storage-object-count-tracker-hook")
)
PROBES = Probes(
    healthz=passing("ping", "log", INFORMERS, IN_FLIGHT, OBJECTS),
    livez=passing("ping", "log", INFORMERS, IN_FLIGHT, OBJECTS),
    readyz=passing("ping", "log", INFORMERS, "informer-sync", IN_FLIGHT, OBJECTS, "shutdown"),
)
DISCOVERY = Discovery(
    external=("my-external-metric", "other-external-metric", "my-external-metric"),
    custom=(
        ObjectMetric("pods", "some-metric"),
        ObjectMetric("namespaces", "some-metric", namespaced=False),
        ObjectMetric("ingresses.networking.k8s.io", "hits"),
    ),
    paths=(*PROBES.paths(), "/metrics", "/metrics/slis", *openapi.PATHS, version.PATH),
)


@cache
def _answers() -> dict[str, dict[str, Any]]:
    return {answer["id"]: answer for answer in recorded("disc", "auth")}


def recorded_answer(name: str) -> dict[str, Any]:
    """By its id."""
    return _answers()[name]


def recorded_headers(name: str) -> dict[str, str]:
    """Those of the answer itself: every answer is marked as not to be kept, unless it says otherwise."""
    everyone = ("Cache-Control", "no-cache, private")
    return {key: value for key, value in recorded_answer(name)["headers"].items() if (key, value) != everyone}


def asked(path: str, method: str = "GET", **headers: str) -> Request:
    return Request.of(method, path, [(key.replace("_", "-"), value) for key, value in headers.items()])


def body_of(answer: Answer | None) -> str:
    """As it goes over the wire, unless the caller wants another media type."""
    assert answer is not None
    return (encode(answer.document, indented=answer.indented) if answer.body is None else answer.body).decode()
