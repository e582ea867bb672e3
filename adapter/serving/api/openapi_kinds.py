"""The kinds of this API as schemas of OpenAPI 3.0.

Kinds of the metrics groups have the names they have in Kubernetes. What an API server has of its own (a Status, a list
of resources) is named after us and marked with no kind: a cluster's description has those in its own words, and when
ours is merged into it nothing is renamed and no kind is there twice.
"""

from collections.abc import Sequence
from typing import Any

from adapter.serving.api import custom, external
from adapter.serving.api.status import Document

REFERENCE = "#/components/schemas/"

STATUS = "backlog-adapter.Status"
GROUPS = "backlog-adapter.APIGroupList"
GROUP = "backlog-adapter.APIGroup"
RESOURCES = "backlog-adapter.APIResourceList"
RELEASE = "backlog-adapter.Info"


def name_of(group: str, version: str, kind: str) -> str:
    """The name of a kind of a metrics group."""
    return f"io.k8s.metrics.pkg.apis.{group.removesuffix('.metrics.k8s.io')}_metrics.{version}.{kind}"


def reference(name: str) -> Document:
    """A schema that is another one."""
    return {"$ref": f"{REFERENCE}{name}"}


def schemas() -> dict[str, Document]:
    """Every kind by its name."""
    return {
        **_with_list(external.GROUP, external.VERSION, "ExternalMetricValue", _external_value()),
        **_with_list(custom.GROUP, "v1beta1", "MetricValue", _value_of_v1beta1()),
        **_with_list(custom.GROUP, "v1beta2", "MetricValue", _value_of_v1beta2()),
        STATUS: _status(),
        GROUPS: _groups(),
        GROUP: _object("A group of the API.", ["name", "versions"], **_KIND, **_GROUP),
        RESOURCES: _resources(),
        RELEASE: _release(),
    }


def _text(summary: str, **more: Any) -> Document:
    return {"type": "string", "description": summary, **more}


def _object(summary: str, required: Sequence[str] = (), **properties: Document) -> Document:
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "description": summary, **needed, "properties": properties}


def _array(summary: str, items: Document) -> Document:
    return {"type": "array", "description": summary, "items": items}


def _map(summary: str) -> Document:
    return {"type": "object", "description": summary, "additionalProperties": {"type": "string"}}


_NULLABLE = {"nullable": True}
_KIND = {"kind": _text("What this is."), "apiVersion": _text("Its group and version, or the version alone.")}
_METADATA = {"metadata": {"type": "object", "description": "Always empty."}}
_TIMESTAMP = _text("When the number was true.", format="date-time") | _NULLABLE
_WINDOW = {"type": "integer", "format": "int64", "description": "Seconds that the number was taken over."}
_VALUE = _text("The number, as a Kubernetes quantity.")
_TERM = _object(
    "A term.",
    ["key", "operator"],
    key=_text("A label."),
    operator=_text("In, NotIn, Exists or DoesNotExist."),
    values=_array("What the label is compared with.", {"type": "string"}),
)
_SELECTOR = _NULLABLE | _object(
    "The selector that was asked with.",
    matchLabels=_map("Labels, with the value each must have."),
    matchExpressions=_array("Further terms.", _TERM),
)
_DESCRIBED = _object(
    "What the number is of.",
    kind=_text("Its kind."),
    namespace=_text("Its namespace, if it has one."),
    name=_text("Its name."),
    apiVersion=_text("Its group and version."),
)
_VERSION = _object(
    "A version of a group.", ["groupVersion", "version"], groupVersion=_text("With the group."), version=_text("Alone.")
)
_GROUP = {
    "name": _text("The group."),
    "versions": _array("Its versions.", _VERSION),
    "preferredVersion": _VERSION,
}


def _with_list(group: str, version: str, kind: str, value: Document) -> dict[str, Document]:
    items = _array("The numbers; an HPA adds them up.", reference(name_of(group, version, kind)))
    listed = _object("The values of a metric.", ["items"], **_METADATA, items=items)
    return _marked(group, version, kind, value) | _marked(group, version, f"{kind}List", listed)


def _marked(group: str, version: str, kind: str, schema: Document) -> dict[str, Document]:
    mark = {"group": group, "version": version, "kind": kind}
    whole = {"properties": _KIND | schema["properties"], "x-kubernetes-group-version-kind": [mark]}
    return {name_of(group, version, kind): schema | whole}


def _external_value() -> Document:
    return _object(
        "A number of one series of a metric.",
        ["metricName", "metricLabels", "timestamp", "value"],
        metricName=_text("The metric."),
        metricLabels=_NULLABLE | _map("The labels of the series."),
        timestamp=_TIMESTAMP,
        window=_WINDOW,
        value=_VALUE,
    )


def _value_of_v1beta1() -> Document:
    return _object(
        "A number of an object.",
        ["describedObject", "metricName", "timestamp", "value", "selector"],
        describedObject=_DESCRIBED,
        metricName=_text("The metric."),
        timestamp=_TIMESTAMP,
        window=_WINDOW,
        value=_VALUE,
        selector=_SELECTOR,
    )


def _value_of_v1beta2() -> Document:
    return _object(
        "A number of an object.",
        ["describedObject", "metric", "timestamp", "value"],
        describedObject=_DESCRIBED,
        metric=_object("The metric.", ["name", "selector"], name=_text("Its name."), selector=_SELECTOR),
        timestamp=_TIMESTAMP,
        windowSeconds=_WINDOW,
        value=_VALUE,
    )


def _status() -> Document:
    return _object(
        "Why there is no answer.",
        ["status", "code"],
        **_KIND,
        **_METADATA,
        status=_text("Always Failure."),
        message=_text("The reason in words; an HPA shows it."),
        reason=_text("The reason in one word."),
        details={"type": "object", "description": "What it is about."},
        code={"type": "integer", "format": "int32", "description": "The code of the HTTP answer."},
    )


def _groups() -> Document:
    address = _object("An address.", clientCIDR=_text("For whom."), serverAddress=_text("Where."))
    addresses = _array("Where clients reach it.", address)
    group = _object("A group of the API.", ["name", "versions"], **_GROUP, serverAddressByClientCIDRs=addresses)
    return _object("The groups of this API.", ["groups"], **_KIND, groups=_array("Each group.", group))


def _resources() -> Document:
    resource = _object(
        "A metric.",
        ["name", "singularName", "namespaced", "kind", "verbs"],
        name=_text("Its name; in front of it the resource it is of, if it is of one."),
        singularName=_text("Always empty."),
        namespaced={"type": "boolean", "description": "Whether it is asked for in a namespace."},
        kind=_text("The kind of the answer."),
        verbs=_array("What may be done with it.", {"type": "string"}),
    )
    return _object(
        "The metrics of a version.",
        ["groupVersion", "resources"],
        **_KIND,
        groupVersion=_text("The group and the version."),
        resources=_array("Each metric.", resource),
    )


def _release() -> Document:
    names = (
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    )
    return _object("A release.", names, **{name: {"type": "string"} for name in names})
