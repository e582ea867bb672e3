"""Generates `serving/openapi.json`, the OpenAPI 2.0 document of the metrics API: `python -m conformance.openapi`.

kube-apiserver merges it into its own document, from which `kubectl explain` and generated clients work. It derives the
OpenAPI 3.0 documents from it.
"""

from pathlib import Path
from typing import Any

import msgspec

from adapter.serving import custom_api, external_api, routes

FILE = Path(routes.__file__).with_name("openapi.json")
_LISTS = (
    (external_api.ExternalMetricValueList, external_api.GROUP, "v1beta1", [external_api.ROUTE]),
    (custom_api.MetricValueList1, custom_api.GROUP, "v1beta1", list(custom_api.ROUTES.values())),
    (custom_api.MetricValueList2, custom_api.GROUP, "v1beta2", list(custom_api.ROUTES.values())),
)
_ERRORS = {
    400: "A parameter is malformed, or several workloads match.",
    401: "The credential is not accepted.",
    403: "The user lacks the right.",
    404: "No such metric, or nothing matches.",
    503: "The number is unknown; the message says why.",
}


def document() -> dict[str, Any]:
    """The OpenAPI document, generated from the types that are written as JSON."""
    paths: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for kind, group, version, templates in _LISTS:
        names = _definitions(kind, group, version, definitions)
        for number, route in enumerate(templates):
            path = route.replace("<", "{").replace(">", "}")
            paths[f"/apis/{group}/{version}{path}"] = _path(route, names, f"{group}/{version}/{number}")
    info = {"title": "backlog-adapter", "version": "v1"}
    return {"swagger": "2.0", "info": info, "paths": paths, "definitions": dict(sorted(definitions.items()))}


def _definitions(kind: type, group: str, version: str, definitions: dict[str, Any]) -> str:
    """Add the schemas of a list; returns the name of the list's."""
    prefix = f"io.backlog-adapter.{group.partition('.')[0]}.{version}."
    _, schemas = msgspec.json.schema_components([kind], ref_template=f"#/definitions/{prefix}{{name}}")
    for name, schema in schemas.items():
        definitions[prefix + name] = _version_2(schema)
    listed = definitions[prefix + kind.__name__]
    name = kind.__name__.rstrip("12")
    listed["x-kubernetes-group-version-kind"] = [{"group": group, "version": version, "kind": name}]
    return prefix + kind.__name__


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
    selectors = (
        ["labelSelector"] if len(names) == 2 and "resource" not in names else ["labelSelector", "metricLabelSelector"]
    )
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
