"""Sentences about ScaledObjects of KEDA that scale what an HPA scales."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Item = Mapping[str, Any]

_PAUSED, _PAUSED_REPLICAS = "autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas"
_FALSE = ("false", "False", "FALSE", "f", "F", "0")  # of Go's ParseBool; KEDA pauses at any other text


def scaled_object_hints(hpa: str, target: tuple[str, ...], scaled_objects: Iterable[Item]) -> Iterator[str]:
    """A sentence for each ScaledObject for which KEDA makes another HPA of the same scale target.

    hpa: "namespace/name". target: kind, namespace and name of its scale target.
    """
    namespace, _, name = hpa.partition("/")
    for item in scaled_objects:
        metadata, of_keda = _inner(item, "metadata"), _hpa_name(item)
        if _target(item, namespace) == target and name != of_keda and not _is_paused(metadata):
            text = f"ScaledObject {metadata.get('name')} scales {target[0]} {target[2]} too"
            yield f"{text}: KEDA makes an HPA for it, and Kubernetes stops both HPAs; keep one of them"


def _is_paused(metadata: Item) -> bool:
    """Whether KEDA deletes its HPA."""
    annotations = _inner(metadata, "annotations")
    return _PAUSED_REPLICAS in annotations or str(annotations.get(_PAUSED, False)) not in _FALSE


def _target(item: Item, namespace: str) -> tuple[str, ...]:
    """As target. namespace: that of a ScaledObject that names none."""
    target, own = _inner(item, "spec", "scaleTargetRef"), _inner(item, "metadata").get("namespace")
    found = (target.get("kind") or "Deployment", own or namespace, target.get("name"))
    return tuple(str(part) for part in found)


def _hpa_name(item: Item) -> str:
    """The name of the HPA that KEDA makes, or takes over."""
    given = _inner(item, "spec", "advanced", "horizontalPodAutoscalerConfig").get("name")
    return str(given or f"keda-hpa-{_inner(item, 'metadata').get('name')}")


def _inner(item: Item, *keys: str) -> Item:
    """The mapping below the keys; an empty one where there is none."""
    for key in keys:
        below = item.get(key)
        item = below if isinstance(below, Mapping) else {}
    return item
