"""Generates `serving/openapi.json`, the OpenAPI 2.0 document of the metrics API: `python -m conformance.openapi`.

kube-apiserver merges it into its own document, from which `kubectl explain` and generated clients work. It derives the
OpenAPI 3.0 documents from it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from adapter.serving import metric_api, routes
from adapter.serving.metric_api import CUSTOM, CUSTOM_LIST, EXTERNAL, EXTERNAL_LIST, EXTERNAL_VERSION

FILE = Path(routes.__file__).with_name("openapi.json")
_ERRORS = {
    400: "A parameter is malformed, or several workloads match.",
    401: "The credential is not accepted.",
    403: "The user lacks the right.",
    404: "No such metric, or nothing matches.",
    503: "The number is unknown; the message says why.",
}


@dataclass(frozen=True, slots=True)
class _Kind:
    """A list of values in one version of an API."""

    group: str
    version: str
    name: str
    item: type
    route: str


def document() -> dict[str, Any]:
    """The OpenAPI document, generated from the types that are written as JSON."""
    paths: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for kind in _kinds():
        name = _definitions(kind, definitions)
        path = kind.route.replace("<", "{").replace(">", "}")
        group_version = f"{kind.group}/{kind.version}"
        paths[f"/apis/{group_version}{path}"] = _path(kind.route, name, group_version)
    info = {"title": "backlog-adapter", "version": "v1"}
    return {"swagger": "2.0", "info": info, "paths": paths, "definitions": dict(sorted(definitions.items()))}


def _kinds() -> Iterator[_Kind]:
    """Each list in each version. The type of its items is what the program writes them with."""
    yield _Kind(EXTERNAL, EXTERNAL_VERSION, EXTERNAL_LIST, metric_api.ExternalMetricValue, metric_api.EXTERNAL_ROUTE)
    for version, write in metric_api.CUSTOM_ITEMS.items():
        item = get_type_hints(write)["return"]
        yield _Kind(CUSTOM, version, CUSTOM_LIST, item, metric_api.CUSTOM_ROUTE)


def _definitions(kind: _Kind, definitions: dict[str, Any]) -> str:
    """Add the schemas of a list and its items; returns the name of the list's."""
    prefix = f"io.backlog-adapter.{kind.group.partition('.')[0]}.{kind.version}."
    (item,), schemas = msgspec.json.schema_components([kind.item], ref_template=f"#/definitions/{prefix}{{name}}")
    for name, schema in schemas.items():
        definitions[prefix + name] = _version_2(schema)
    definitions[prefix + kind.name] = {
        "type": "object",
        "required": ["items"],
        "properties": {
            "kind": {"type": "string"},
            "apiVersion": {"type": "string"},
            "metadata": {"type": "object"},
            "items": {"type": "array", "items": item},
        },
        "x-kubernetes-group-version-kind": [{"group": kind.group, "version": kind.version, "kind": kind.name}],
    }
    return prefix + kind.name


def _version_2(schema: Any) -> Any:
    """A JSON schema in the subset of OpenAPI 2.0, which knows neither null nor constants."""
    if isinstance(schema, list):
        return [_version_2(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {key: _version_2(value) for key, value in schema.items() if key not in ("anyOf", "default", "title")}
    options = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    for option in options[:1]:
        converted |= _version_2(option)
    if "enum" in converted:
        converted["type"] = "string"
    if converted.get("additionalProperties") == {}:
        converted["additionalProperties"] = {"type": "object"}
    return converted


def _path(route: str, definition: str, operation: str) -> dict[str, Any]:
    names = [part[1:-1] for part in route.split("/") if part.startswith("<")]
    variables = [{"name": name, "in": "path", "required": True, "type": "string"} for name in names]
    selectors = ["labelSelector", "metricLabelSelector"] if "resource" in names else ["labelSelector"]
    query = [{"name": name, "in": "query", "type": "string"} for name in selectors]
    responses = {str(code): {"description": text} for code, text in _ERRORS.items()}
    ok = {"description": "OK", "schema": {"$ref": f"#/definitions/{definition}"}}
    get = {
        "operationId": "read" + "".join(part.capitalize() for part in operation.replace(".", "/").split("/")),
        "produces": ["application/json"],
        "parameters": [*variables, *query],
        "responses": {"200": ok, **responses},
    }
    return {"get": get}


def main() -> None:
    """Write the file."""
    FILE.write_bytes(msgspec.json.format(msgspec.json.encode(document()), indent=1) + b"\n")


if __name__ == "__main__":
    main()
