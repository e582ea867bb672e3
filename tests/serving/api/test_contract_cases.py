"""Cases of the contract that are about paths and methods, on our own signals; bodies are compared by the replay."""

import json
from typing import Any

import pytest
from serving_builders import AT_S, entry, local_api, snapshot

from adapter.serving.api.request import Request
from adapter.serving.signals.metrics import METRICS
from adapter.serving.snapshots.store import SnapshotStore

E = "/apis/external.metrics.k8s.io/v1beta1"
N = f"{E}/namespaces"
C = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/deployments.apps"


def answer(uri: str, method: str = "GET", workloads: int = 1) -> tuple[int, Any]:
    store = SnapshotStore(lambda: AT_S + 1)
    store.put(snapshot(*(entry(f"shop/job-{number}") for number in range(workloads))))
    response = local_api(store).respond(Request.of(method, uri))
    return response.code, json.loads(response.body)


@pytest.mark.parametrize(
    ("uri", "kind"),
    [("/apis", "APIGroupList"), ("/apis/external.metrics.k8s.io", "APIGroup"), (E, "APIResourceList")],
    ids=["case 1", "case 2", "case 3"],
)
def test_discovery_is_found_with_a_slash_and_without(uri: str, kind: str) -> None:
    assert answer(uri) == answer(f"{uri}/")
    code, document = answer(uri)
    assert (code, document["kind"]) == (200, kind)


def test_case_7_the_list_does_not_grow_with_the_fleet() -> None:
    names = [resource["name"] for resource in answer(E, workloads=2_000)[1]["resources"]]
    assert names == list(METRICS)


def test_case_8_an_unknown_version_is_a_404() -> None:
    code, document = answer("/apis/external.metrics.k8s.io/v1beta9")
    assert (code, document["reason"], document["details"]) == (404, "NotFound", {})


def test_case_9_an_item_has_its_keys_in_order_and_a_window() -> None:
    (item,) = answer(f"{N}/shop/required_workers")[1]["items"]
    assert list(item) == ["metricName", "metricLabels", "timestamp", "window", "value"]


@pytest.mark.parametrize("path", ["foo", "foo/", "foo/a/b", "a%2Fb"])
def test_case_37_what_is_no_metric_s_path_is_a_404(path: str) -> None:
    assert answer(f"{N}/{path}")[0] == 404
    assert answer(f"{E}/m")[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
def test_case_39_other_methods_are_a_405(method: str) -> None:
    code, document = answer(f"{N}/shop/required_workers", method)
    assert (code, document["reason"], document["details"]) == (405, "MethodNotAllowed", {})


def test_case_68_a_selector_picks_among_objects() -> None:
    code, document = answer(f"{C}/*/required_workers?labelSelector=workload%3Djob-1", workloads=3)
    assert (code, [item["describedObject"]["name"] for item in document["items"]]) == (200, ["job-1"])


def test_case_69_a_metric_of_a_namespace_is_not_ours_and_says_so() -> None:
    assert answer("/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/metrics/required_workers")[0] == 404


def test_case_70_a_resource_with_a_group_is_described_with_its_group() -> None:
    (item,) = answer(f"{C}/job-0/required_workers")[1]["items"]
    assert item["describedObject"]["apiVersion"] == "apps/v1"
