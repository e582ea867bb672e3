"""Write values.schema.json from values.schema.yaml, the model of the configuration and the names of alerts."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from adapter.config import json_schema
from dashboards.queries import rules

SOURCE = Path(__file__).with_name("values.schema.yaml")
RESULT = Path(__file__).with_name("backlog-adapter") / "values.schema.json"
_NO_CONSTRAINT = ("title", "default", "$schema")  # a renderer of values has no use for them


def values_schema() -> dict[str, Any]:
    """The schema of the values: the chart's own, and at `config` that of the configuration."""
    schema: dict[str, Any] = yaml.safe_load(SOURCE.read_text())
    config = json_schema()
    models = {f"config{name}": _translated(model) for name, model in config.pop("$defs").items()}
    alerts = [rule.name for rule in rules() if rule.is_alert]
    schema["properties"]["prometheusRule"]["properties"]["disabled"]["items"] = {"enum": alerts}
    schema["properties"]["config"] = _without_the_charts_part(_translated(config))
    for name in ("configPipeline", "configIssuer"):
        models[name].pop("required")  # the chart sets the checkpoint, and the Lease
    schema["definitions"] |= models
    return schema


def text() -> str:
    """The content of values.schema.json."""
    return json.dumps(values_schema(), indent=1) + "\n"


def _without_the_charts_part(config: dict[str, Any]) -> dict[str, Any]:
    return config | {"required": [name for name in config["required"] if name != "pipeline"]}


def _translated(node: Any) -> Any:
    """A part of the model's schema in draft 7, which every release of helm reads."""
    if isinstance(node, list):
        return [_translated(each) for each in node]
    if not isinstance(node, Mapping):
        return node
    if "discriminator" in node:
        return _by_kind(node["discriminator"])
    if {"type": "null"} in node.get("anyOf", ()):  # null in values removes a key
        (other,) = [each for each in node["anyOf"] if each != {"type": "null"}]
        return _translated({key: value for key, value in node.items() if key != "anyOf"} | other)
    if "anyOf" in node and all("$ref" in each for each in node["anyOf"]):
        return _any_entry([each["$ref"] for each in node["anyOf"]])
    translated = {key: _translated_entry(key, value) for key, value in node.items() if not _is_annotation(key, value)}
    return _with_key_patterns(translated) if "propertyNames" in translated else translated


def _translated_entry(key: str, value: Any) -> Any:
    if key == "$ref":
        return _reference(value)
    # In `properties` the keys are names of settings, one of which may be "title".
    if key == "properties":
        return {name: _translated(each) for name, each in value.items()}
    return _translated(value)


def _is_annotation(key: str, value: Any) -> bool:
    return key in _NO_CONSTRAINT and not (key == "title" and isinstance(value, Mapping))


def _with_key_patterns(node: dict[str, Any]) -> dict[str, Any]:
    """A refused key as a refused value: helm shows a wrong path for a fault of `propertyNames`."""
    names = node.pop("propertyNames")
    refused = names.get("not", {}).get("pattern")
    return node if refused is None else node | {"patternProperties": {refused: False}}


def _reference(reference: str) -> str:
    return re.sub(r"^#/\$defs/", "#/definitions/config", reference)


def _by_kind(discriminator: Mapping[str, Any]) -> dict[str, Any]:
    """One of several models by its `kind`: helm then shows the faults of that model, not those of all models."""
    name, models = discriminator["propertyName"], discriminator["mapping"]
    choices = [
        {"if": {"required": [name], "properties": {name: {"const": kind}}}, "then": {"$ref": _reference(reference)}}
        for kind, reference in models.items()
    ]
    return {"type": "object", "required": [name], "properties": {name: {"enum": [*models]}}, "allOf": choices}


def _any_entry(references: list[str]) -> dict[str, Any]:
    """An entry whose model depends on another part of the file: the settings of any of the models."""
    models = [json_schema()["$defs"][reference.rpartition("/")[2]] for reference in references]
    properties = {name: _translated(each) for model in models for name, each in model["properties"].items()}
    required = set.intersection(*(set(model["required"]) for model in models))
    return {
        "type": "object",
        "additionalProperties": False,
        "required": sorted(required),
        "properties": properties,
    }


if __name__ == "__main__":
    RESULT.write_text(text())
