"""The fields of an HPA that Kubernetes knows, from the models of its client."""

import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

from kubernetes import client

from adapter.config.faults import Fault, Path, nearest

VERSIONS = ("autoscaling/v2", "autoscaling/v1")  # an HPA of v1 scales by CPU alone
_ONLY_V2 = ("metrics", "behavior")


def with_known_fields(item: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A manifest with each misspelt field under the name that it stands for, and a sentence for each unknown field."""
    version = item["apiVersion"]
    unknown: list[tuple[Path, str]] = []
    known = _known(item, f"{version.partition('/')[2].upper()}HorizontalPodAutoscaler", (), unknown)
    if version != VERSIONS[0]:
        unknown = [(path, f"write apiVersion: {VERSIONS[0]}" if path[-1] in _ONLY_V2 else fix) for path, fix in unknown]
    return known, [Fault(path, f"is not a field of {version}; {fix}").sentence() for path, fix in unknown]


def _known(given: Any, kind: str, path: Path, unknown: list[tuple[Path, str]]) -> Any:
    """kind: the type as the client writes it, such as V2MetricSpec or List[V2MetricSpec]. unknown: receives fixes."""
    if isinstance(given, list) and (entry := re.fullmatch(r"[Ll]ist\[(\w+)\]", kind)):
        return [_known(each, entry[1], (*path, at), unknown) for at, each in enumerate(given)]
    model = getattr(client, kind, None)
    if model is None or not isinstance(given, Mapping):
        return given
    kinds = {model.attribute_map[name]: kind for name, kind in model.openapi_types.items()}
    names = {name: name if name in kinds else _meant(name, kinds, given) for name in given}
    for name, meant in names.items():
        if name != meant:
            fix = f"did you mean {meant}?" if meant else f"expected one of {', '.join(kinds)}"
            unknown.append(((*path, name), fix))
    kept = {name: meant for name, meant in names.items() if meant}
    return {meant: _known(given[name], kinds[meant], (*path, name), unknown) for name, meant in kept.items()}


def _meant(name: str, fields: Iterable[str], given: Container[str]) -> str | None:
    """The field that a misspelt name stands for, unless that field is given too."""
    field = nearest(name, fields)
    return None if field in given else field
