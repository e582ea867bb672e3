"""A ScaledObject and an HPA of one scale target stop each other, so `check --hpa` names them."""

from typing import Any

import pytest

from adapter.operations.scaled_object_hints import scaled_object_hints

TARGET = ("Deployment", "shop", "orders-consumer")
WARNING = (
    "ScaledObject orders scales Deployment orders-consumer too: "
    "KEDA makes an HPA for it, and Kubernetes stops both HPAs; keep one of them"
)


def scaled_object(metadata: dict[str, Any], **spec: Any) -> dict[str, Any]:
    target = {"scaleTargetRef": {"name": "orders-consumer"}}
    return {"kind": "ScaledObject", "metadata": {"name": "orders"} | metadata, "spec": target | spec}


CASES = {
    "the same namespace": (scaled_object({"namespace": "shop"}), [WARNING]),
    "no namespace": (scaled_object({}), [WARNING]),
    "another namespace": (scaled_object({"namespace": "eu"}), []),
    "another target": (scaled_object({}, scaleTargetRef={"name": "carts"}), []),
    "another kind": (scaled_object({}, scaleTargetRef={"kind": "StatefulSet", "name": "orders-consumer"}), []),
    "paused": (scaled_object({"annotations": {"autoscaling.keda.sh/paused": "true"}}), []),
    "no longer paused": (scaled_object({"annotations": {"autoscaling.keda.sh/paused": "false"}}), [WARNING]),
    "no longer paused, in short": (scaled_object({"annotations": {"autoscaling.keda.sh/paused": "f"}}), [WARNING]),
    "paused by another text": (scaled_object({"annotations": {"autoscaling.keda.sh/paused": "no"}}), []),
    "paused in one direction": (
        scaled_object({"annotations": {"autoscaling.keda.sh/paused-scale-in": "true"}}),
        [WARNING],
    ),
    "empty fields": (
        scaled_object({"namespace": ""}, scaleTargetRef={"kind": "", "name": "orders-consumer"}),
        [WARNING],
    ),
    "paused at a size": (scaled_object({"annotations": {"autoscaling.keda.sh/paused-replicas": "3"}}), []),
    "takes the HPA over": (scaled_object({}, advanced={"horizontalPodAutoscalerConfig": {"name": "orders"}}), []),
    "unreadable": ({"metadata": [], "spec": {"scaleTargetRef": "orders-consumer"}}, []),
}


@pytest.mark.parametrize(("item", "sentences"), CASES.values(), ids=CASES)
def test_a_scaled_object_of_the_same_target_is_named(item: dict[str, Any], sentences: list[str]) -> None:
    assert list(scaled_object_hints("shop/orders", TARGET, [item])) == sentences


def test_the_hpa_that_keda_makes_is_no_second_one() -> None:
    assert list(scaled_object_hints("shop/keda-hpa-orders", TARGET, [scaled_object({})])) == []
