"""A path -> the metric it names. Paths of documents are looked up elsewhere, whole."""

from dataclasses import dataclass

from adapter.serving.api import custom, external
from adapter.serving.api.custom import EVERY_NAME
from adapter.serving.api.remembering import remembered


@dataclass(frozen=True, slots=True)
class ExternalRoute:
    """`namespaces/{namespace}/{metric}`; every part may be anything, also empty."""

    namespace: str
    metric: str


@dataclass(frozen=True, slots=True)
class ObjectRoute:
    """A metric of one object, or with name `*` of several.

    namespace: None where the path has none. metric: "" where the path names none that can be asked for.
    """

    version: str
    namespace: str | None
    resource: str
    name: str
    metric: str


Route = ExternalRoute | ObjectRoute


@remembered(most=4096, longest=256)
def route(path: str) -> Route | None:
    """The metric that a percent-decoded path names; None for every other path. Slashes at the end do not matter."""
    match path.rstrip("/").split("/"):
        case ["", "apis", external.GROUP, external.VERSION, *parts]:
            return _external(parts)
        case ["", "apis", custom.GROUP, version, *parts] if version in custom.VERSIONS:
            return _object(version, parts)
    return None


def _external(parts: list[str]) -> ExternalRoute | None:
    match parts:
        case ["namespaces", namespace, metric]:
            return ExternalRoute(namespace, metric)
    return None


def _object(version: str, parts: list[str]) -> ObjectRoute | None:
    match parts:
        case ["namespaces", namespace, "metrics", metric] | ["namespaces", namespace, "metrics", metric, _]:
            return ObjectRoute(version, None, "namespaces", namespace, metric)
        case ["namespaces", namespace, resource, name, metric]:
            return ObjectRoute(version, namespace or None, resource, name or EVERY_NAME, metric)
        case ["namespaces", name, "status" | "finalize" as metric]:
            # These two are parts of a namespace to all of Kubernetes, any other word would be a resource in it.
            return ObjectRoute(version, name, "namespaces", name, metric)
        case ["namespaces" | "proxy" | "watch" as resource, name, _]:
            return ObjectRoute(version, None, resource, name, "")
        case [resource, name, metric]:
            return ObjectRoute(version, None, resource, name or EVERY_NAME, metric)
    return None
