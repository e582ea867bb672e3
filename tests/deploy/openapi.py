"""OpenAPI documents of an API server and CustomResourceDefinitions -> a JSON schema for each kind, for kubeconform."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

Schema = dict[str, Any]
# How kubeconform finds the schema of an object. It writes the kind in lower case; the group of `v1` is `v1`.
LOCATION = "{{ .ResourceKind }}_{{ .Group }}_{{ .ResourceAPIVersion }}.json"


def write_schemas(documents: Path, crds: Path, folder: Path) -> None:
    """Write a schema for each kind of these documents; a field that the API server does not know is refused."""
    for document in sorted(documents.glob("*.json")):
        schemas: dict[str, Schema] = json.loads(document.read_text()).get("components", {}).get("schemas", {})
        for name, schema in schemas.items():
            for kind in schema.get("x-kubernetes-group-version-kind", ()):
                _write(folder, kind, _closed({"$ref": f"#/components/schemas/{name}", **_reachable(name, schemas)}))
    for file in sorted(crds.glob("*.yaml")):
        for kind, schema in _versions(yaml.safe_load(file.read_text())):
            _write(folder, kind, _closed(_with_metadata(schema)))


def _write(folder: Path, kind: Mapping[str, str], schema: Schema) -> None:
    name = f"{kind['kind'].lower()}_{kind['group'] or kind['version']}_{kind['version']}.json"
    (folder / name).write_text(json.dumps(schema))


def _reachable(name: str, schemas: Mapping[str, Schema]) -> Schema:
    """The schema of this name and those that it refers to, where its references expect them."""
    found: dict[str, Schema] = {}
    waiting = [name]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found[each] = schemas[each]
            waiting += re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(schemas[each]))
    return {"components": {"schemas": found}}


def _versions(crd: Mapping[str, Any]) -> Iterator[tuple[dict[str, str], Schema]]:
    spec = crd["spec"]
    for version in spec["versions"]:
        kind = {"kind": spec["names"]["kind"], "group": spec["group"], "version": version["name"]}
        yield kind, version["schema"]["openAPIV3Schema"]


def _with_metadata(schema: Schema) -> Schema:
    """A CustomResourceDefinition leaves the metadata to the API server."""
    anything = {"type": "object", "additionalProperties": True}
    return schema | {"properties": schema["properties"] | {"metadata": anything}}


def _closed(node: Any) -> Any:
    """The schema with no fields but those that it names."""
    if isinstance(node, list):
        return [_closed(each) for each in node]
    if not isinstance(node, dict):
        return node
    closed = {key: _closed(value) for key, value in node.items()}
    names_fields = isinstance(node.get("properties"), dict) and node.get("type") == "object"
    is_open = "additionalProperties" in node or node.get("x-kubernetes-preserve-unknown-fields")
    return closed | {"additionalProperties": False} if names_fields and not is_open else closed
