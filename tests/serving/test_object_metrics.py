"""Metrics of the objects that run the workloads: the same numbers as the external metrics."""

from typing import Any

import pytest
from serving_builders import AT_S
from signal_builders import code, message, objects, readings

from adapter.apiserver.selectors import parse
from adapter.core.metrics import OBJECT_KINDS
from adapter.serving.metric_api import EVERY_NAME, ObjectQuery, ObjectReference, ObjectValue
from adapter.serving.providers import ObjectMetrics
from adapter.serving.snapshots.snapshot import Entry


def signals(*entries: Entry, age_s: float = 5.0) -> ObjectMetrics:
    return ObjectMetrics(readings(*entries, age_s=age_s))


def question(name: str = "orders", metric: str = "required_workers", **parts: str) -> ObjectQuery:
    """parts: resource, namespace, selector, metric_selector."""
    selectors = {part: parse(str(parts.pop(part, ""))) for part in ("selector", "metric_selector")}
    query: dict[str, Any] = {"namespace": "shop", "resource": "deployments.apps"} | parts | selectors
    return ObjectQuery(name=name, metric=metric, **query)


def test_an_object_has_the_number_of_the_workload_of_its_name() -> None:
    (value,) = signals().read(question())
    described = ObjectReference(kind="Deployment", namespace="shop", name="orders", api_version="apps/v1")
    assert value == ObjectValue(described, "4", AT_S, None)


@pytest.mark.parametrize("resource", OBJECT_KINDS)
def test_a_described_object_has_the_kind_of_its_resource(resource: str) -> None:
    (value,) = signals().read(question(resource=resource))
    described = value.described
    assert (described.kind, described.api_version) == OBJECT_KINDS[resource]
    assert resource == f"{described.kind.lower()}s.{described.api_version.partition('/')[0]}"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(question("flink-taskmanager", metric_selector="workload=orders"), "4", id="another workload"),
        pytest.param(question("orders", metric_selector="team=red"), "4", id="a label of its own workload"),
        pytest.param(question("payments", "backlog", metric_selector="stage=join"), "20", id="a stage"),
        pytest.param(
            question("x", "backlog", metric_selector="workload=payments,stage=join"),
            "20",
            id="another workload's stage",
        ),
        pytest.param(
            question("x", metric_selector="workload in (orders,unknown)"), "4", id="one of several that is there"
        ),
        pytest.param(question("orders", selector="workload=payments"), "4", id="the labels of objects do not matter"),
    ],
)
def test_the_metric_selector_picks_the_workload_and_its_stage(query: ObjectQuery, expected: str) -> None:
    (value,) = signals().read(query)
    assert (value.value, value.described.name) == (expected, query.name)


@pytest.mark.parametrize(
    ("query", "expected_code", "text"),
    [
        pytest.param(
            question("order"),
            404,
            "workload=order matches nothing in namespace shop; nearest is orders; deployments.apps order is read as "
            "the workload of its name: name another in the metric's selector, workload=NAME",
            id="no workload of that name",
        ),
        pytest.param(
            question(metric_selector="team=blue"),
            404,
            "team=blue matches nothing in namespace shop; values are red",
            id="a selector without a match",
        ),
        pytest.param(
            question("x", metric_selector="workload in (orders,payments)"),
            400,
            "matches 2 workloads",
            id="case 51: several",
        ),
        pytest.param(
            question("payments", metric_selector="stage=join"), 400, "leave stage out of the", id="workers of a stage"
        ),
        pytest.param(
            question(metric="reqired_workers"),
            404,
            "the server could not find the metric reqired_workers for deployments.apps orders: nearest is "
            "required_workers",
            id="case 36: an unknown metric",
        ),
        pytest.param(
            question(EVERY_NAME, "reqired_workers"),
            404,
            "the server could not find the metric reqired_workers for deployments.apps: nearest is required_workers",
            id="case 71: an unknown metric of all",
        ),
        pytest.param(
            question("web", resource="ingresses.networking.k8s.io"),
            404,
            "the server could not find the metric required_workers for ingresses.networking.k8s.io web: it is served "
            "as /namespaces/NAMESPACE/RESOURCE/NAME/METRIC of deployments.apps, statefulsets.apps, replicasets.apps, "
            "rollouts.argoproj.io, flinkdeployments.flink.apache.org, flinkclusters.flinkoperator.k8s.io, "
            "sparkapplications.sparkoperator.k8s.io",
            id="an unknown kind",
        ),
        pytest.param(
            question(resource="deployments"), 404, "for deployments orders: it is", id="a kind without its group"
        ),
        pytest.param(question(resource="services"), 404, "for services orders: it is served as", id="a core kind"),
        pytest.param(question(resource="pods"), 404, "for pods orders: it is served as", id="pods of no cluster"),
        pytest.param(
            question(namespace="shopp"), 404, "no workload is known in namespace shopp", id="no such namespace"
        ),
        pytest.param(
            question(metric="highest_partition_backlog"),
            503,
            "no highest_partition_backlog for shop/orders (Hold)",
            id="case 45: no number",
        ),
    ],
)
def test_an_error_has_the_code_and_the_fix(query: ObjectQuery, expected_code: int, text: str) -> None:
    given = objects(signals(), query)
    assert code(given) == expected_code
    assert text in message(given)


def test_case_50_a_number_that_is_too_old_is_not_served() -> None:
    for query in (question(), question(EVERY_NAME)):
        given = objects(signals(age_s=181.0), query)
        assert code(given) == 503
        assert message(given).startswith("the pipeline published nothing for 181 s")


@pytest.mark.parametrize(
    ("selector", "metric_selector", "expected"),
    [
        pytest.param("workload!=orders", "", {"payments": "3"}, id="a label of workloads"),
        pytest.param("team=red", "workload=orders", {"orders": "4"}, id="both selectors hold"),
    ],
)
def test_case_66_every_object_means_the_selected_workload(
    selector: str, metric_selector: str, expected: dict[str, str]
) -> None:
    values = signals().read(question(EVERY_NAME, selector=selector, metric_selector=metric_selector))
    assert {value.described.name: value.value for value in values} == expected
    assert {(value.described.kind, value.described.namespace) for value in values} == {("Deployment", "shop")}


def test_x08_several_objects_are_an_error_with_their_names() -> None:
    given = objects(signals(), question(EVERY_NAME, selector="team=red"))
    assert code(given) == 400
    assert "matches 2 workloads in namespace shop, and an HPA would add their values: orders, payments" in message(
        given
    )


def test_without_a_match_the_message_names_the_nearest_value() -> None:
    given = objects(signals(), question(EVERY_NAME, selector="team=rad"))
    assert code(given) == 404
    assert "nearest is red" in message(given)
