from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_rows import rows_of

from adapter.core.rules import POLICIES
from adapter.sources.annotations import FAILOVER, PAUSE, PAUSE_UNTIL, POLICY, RULES, RULES_UNTIL
from adapter.sources.autoscalers import Scale, add_workers, autoscalers, scale_of
from adapter.sources.sample_table import FAULT, SampleTable

THREE = Scale(3, 2, 1)
ENDS_S = 1_893_456_000  # 2030-01-01T00:00:00Z


def external(name: str = "required_workers", **selector: Any) -> dict[str, Any]:
    return {"type": "External", "external": {"metric": {"name": name, "selector": selector}}}


def of_object(
    name: str = "required_workers", described: str = "orders", kind: str = "apps/v1 Deployment", **selector: Any
) -> dict[str, Any]:
    metric = {"name": name, "selector": selector} if selector else {"name": name}
    described_object = {**dict(zip(("apiVersion", "kind"), kind.split(), strict=True)), "name": described}
    return {"type": "Object", "object": {"metric": metric, "describedObject": described_object}}


def of_pods(name: str = "utilization", **selector: Any) -> dict[str, Any]:
    metric = {"name": name, "selector": selector} if selector else {"name": name}
    return {"type": "Pods", "pods": {"metric": metric}}


def expression(key: str, *values: str, operator: str = "In") -> list[dict[str, Any]]:
    return [{"key": key, "operator": operator, "values": list(values)}]


def hpa(name: str = "orders", metrics: Any = None, annotations: Any = None, **spec: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"namespace": "shop", "name": name}
    if annotations is not None:
        meta["annotations"] = annotations
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "orders"}
    named = [external(matchLabels={"workload": "orders"})] if metrics is None else metrics
    return {"metadata": meta, "spec": {"scaleTargetRef": target, "maxReplicas": 12, "metrics": named, **spec}}


def seen(*items: Any, scale: Scale | str = THREE, at_s: int = 15) -> dict[tuple[str, str], float | str]:
    found = autoscalers(items)
    scales = {autoscaler.target: scale for autoscaler in found}
    table = SampleTable()
    add_workers(table, at_s, found, scales)
    return {(row.workload, row.signal): row.text or row.value for row in rows_of(table.finish())}


def test_an_hpa_has_limits_pauses_and_the_replicas_of_its_target() -> None:
    assert seen(hpa(minReplicas=2)) == {
        ("shop/orders", "min_workers"): 2.0,
        ("shop/orders", "max_workers"): 12.0,
        ("shop/orders", "spec_workers"): 3.0,
        ("shop/orders", "workers"): 2.0,
        ("shop/orders", "ready_workers"): 1.0,
        ("shop/orders", "pause_up"): 0.0,
        ("shop/orders", "pause_down"): 0.0,
        ("shop/orders", "bad_annotations"): 0.0,
        ("shop/orders", "failover"): 0.0,
    }


@pytest.mark.parametrize("version", ["apps/v1", "apps/v1beta1", "extensions/v1beta1"])
def test_an_old_version_of_apps_is_read_as_the_present_one(version: str) -> None:
    old = hpa()
    old["spec"]["scaleTargetRef"]["apiVersion"] = version
    (found,) = autoscalers([old])
    assert found.target.api_version == ("apps/v1" if version.startswith("apps/") else version)


def test_the_default_minimum_of_an_hpa_is_1() -> None:
    assert seen(hpa())[("shop/orders", "min_workers")] == 1.0


@pytest.mark.parametrize(
    "metrics",
    [
        pytest.param([], id="no metrics"),
        pytest.param([{"type": "Resource", "resource": {"name": "cpu"}}], id="CPU"),
        pytest.param([external("queue_depth", matchLabels={"workload": "orders"})], id="another adapter's metric"),
        pytest.param([external(matchLabels={"app": "orders"})], id="a selector without a workload"),
        pytest.param([{"type": "External", "external": {"metric": {"name": "backlog"}}}], id="no selector"),
        pytest.param([external(matchExpressions=expression("workload", "orders", "web"))], id="one of two workloads"),
        pytest.param(
            [external(matchExpressions=expression("workload", "orders", operator="NotIn"))], id="any workload but one"
        ),
        pytest.param([of_object("requests-per-second")], id="another adapter's metric of an object"),
        pytest.param([of_object("throughput", kind="v1 Service")], id="another adapter's metric of a Service"),
        pytest.param(
            [of_object(kind="v1 Service", matchLabels={"workload": "orders"})], id="a Service and a workload's selector"
        ),
        pytest.param([of_object(kind="v1 Deployment")], id="a Deployment of another group"),
        pytest.param(
            [of_object(matchExpressions=expression("workload", "orders", "web"))], id="an object, one of two workloads"
        ),
        pytest.param([of_pods()], id="a metric of pods, which is another adapter's"),
        pytest.param([{"type": "ContainerResource", "containerResource": {"name": "cpu"}}], id="CPU of a container"),
    ],
)
def test_hpas_without_our_metrics_are_ignored(metrics: Any) -> None:
    assert seen(hpa(metrics=metrics)) == {}


@pytest.mark.parametrize(
    ("metric", "workload"),
    [
        pytest.param(external(matchLabels={"workload": "clicks"}), "shop/clicks", id="External, by its selector"),
        pytest.param(of_object(), "shop/orders", id="Object, by the object's name"),
        pytest.param(
            of_object(described="web"), "shop/web", id="Object, by the name of another object than the target"
        ),
        pytest.param(
            of_object(matchLabels={"workload": "clicks"}), "shop/clicks", id="Object, by the metric's selector"
        ),
        pytest.param(
            of_object(kind="argoproj.io/v1 Rollout"), "shop/orders", id="Object, of another version than that served"
        ),
        pytest.param(of_object(matchLabels={"stage": "join"}), "shop/orders", id="Object, of a stage"),
        pytest.param(of_object(matchExpressions=expression("stage", "map")), "shop/orders", id="Object, of stages"),
        pytest.param(
            external(matchExpressions=[*expression("workload", "web", operator="NotIn"), *expression("workload", "b")]),
            "shop/b",
            id="External, by an expression of one value",
        ),
        pytest.param(
            of_object(matchExpressions=expression("workload", "clicks")),
            "shop/clicks",
            id="Object, by an expression of one value",
        ),
    ],
)
def test_external_and_object_metrics_assign_an_hpa_to_its_workload(metric: dict[str, Any], workload: str) -> None:
    assert autoscalers([hpa(metrics=[metric])])[0].workloads == (workload,)


def test_an_annotation_names_the_workload_of_an_hpa_of_keda() -> None:
    metrics = [external("s0-metric-api-items-0-value", matchLabels={"scaledobject.keda.sh/name": "orders"})]
    (found,) = autoscalers([hpa("keda-hpa-orders", metrics, {"backlog-adapter/workload": "orders"})])
    assert (found.workloads, found.fault) == (("shop/orders",), "")


def test_an_empty_name_of_a_workload_is_ignored() -> None:
    assert seen(hpa(annotations={"backlog-adapter/workload": ""})) == seen(hpa())
    assert seen(hpa(metrics=[external(matchLabels={"workload": ""})])) == {}


def test_s1_15_two_metrics_of_an_object_are_one_hpa_of_one_workload() -> None:
    both = [of_object("utilization"), of_object("relative_lag_change")]
    assert seen(hpa(metrics=both)) == seen(hpa())


def test_two_metrics_of_one_workload_are_one_hpa() -> None:
    both = [external(name, matchLabels={"workload": "orders"}) for name in ("utilization", "relative_lag_change")]
    assert len(autoscalers([hpa(metrics=both)])[0].workloads) == 1


def test_two_hpas_of_one_workload_are_a_fault_that_names_both() -> None:
    assert seen(hpa("a"), hpa("b")) == {
        (
            "shop/orders",
            FAULT,
        ): "HPAs shop/a and shop/b scale workload shop/orders: write all their metrics into one HPA"
    }


@pytest.mark.parametrize("versions", [("apps/v1", "apps/v1"), ("flink.apache.org/v1beta1", "flink.apache.org/v1beta2")])
def test_two_jobs_that_share_workers_are_a_fault_of_both_that_names_them(versions: tuple[str, str]) -> None:
    orders, clicks = hpa(), hpa("clicks", metrics=[external(matchLabels={"workload": "clicks"})])
    for item, version in zip((orders, clicks), versions, strict=True):
        item["spec"]["scaleTargetRef"]["apiVersion"] = version
    sentence = (
        "workloads shop/clicks and shop/orders share the workers of Deployment shop/orders, which HPAs shop/clicks and "
        "shop/orders scale: give each workload a scale target of its own"
    )
    assert seen(orders, clicks) == {("shop/orders", FAULT): sentence, ("shop/clicks", FAULT): sentence}


def test_an_hpa_whose_metrics_name_two_workloads_is_a_fault_of_both() -> None:
    both = [external(matchLabels={"workload": name}) for name in ("orders", "clicks")]
    sentence = (
        "workloads shop/clicks and shop/orders share the workers of Deployment shop/orders, which HPA shop/orders "
        "scales: give each workload a scale target of its own"
    )
    assert seen(hpa(metrics=both)) == {("shop/orders", FAULT): sentence, ("shop/clicks", FAULT): sentence}


@pytest.mark.parametrize("other", ["apps/v1 StatefulSet", "example.com/v1 Deployment"])
def test_a_target_of_another_kind_group_or_namespace_is_not_shared(other: str) -> None:
    clicks = hpa("clicks", metrics=[external(matchLabels={"workload": "clicks"})])
    version, kind = other.split()
    clicks["spec"]["scaleTargetRef"] = {"apiVersion": version, "kind": kind, "name": "orders"}
    foreign = hpa()
    foreign["metadata"]["namespace"] = "web"
    assert FAULT not in {signal for _, signal in seen(hpa(), clicks, foreign)}


def test_an_unknown_scale_target_is_a_fault_and_the_limits_stay() -> None:
    found = seen(hpa(), scale="its scale target Deployment shop/orders does not exist")
    assert found[("shop/orders", FAULT)] == "HPA shop/orders: its scale target Deployment shop/orders does not exist"
    assert found[("shop/orders", "max_workers")] == 12.0
    assert ("shop/orders", "workers") not in found


@pytest.mark.parametrize(
    ("annotations", "up", "down", "complaint"),
    [
        pytest.param({}, 0.0, 0.0, "", id="none"),
        pytest.param({PAUSE: "up"}, 1.0, 0.0, "", id="ups"),
        pytest.param({PAUSE: "down"}, 0.0, 1.0, "", id="downs"),
        pytest.param({PAUSE: "both"}, 1.0, 1.0, "", id="both"),
        pytest.param({PAUSE: "both", PAUSE_UNTIL: "2030-01-01T00:00:01Z"}, 1.0, 1.0, "", id="a second before its end"),
        pytest.param({PAUSE: "both", PAUSE_UNTIL: "2030-01-01T00:00:00Z"}, 0.0, 0.0, "", id="at its end"),
        pytest.param({PAUSE: "both", PAUSE_UNTIL: "2030-01-01T01:00:00+01:00"}, 0.0, 0.0, "", id="in another zone"),
        pytest.param({PAUSE_UNTIL: "2031-01-01T00:00:00Z"}, 0.0, 0.0, "there is no backlog", id="an end of nothing"),
        pytest.param({PAUSE: "Both"}, 1.0, 1.0, "", id="both with a capital"),
        pytest.param({PAUSE: "UP"}, 1.0, 0.0, "", id="ups in capitals"),
        pytest.param(
            {PAUSE: "sideways"},
            1.0,
            1.0,
            "is 'sideways', expected up, down or both: both directions are paused",
            id="no direction",
        ),
        pytest.param({PAUSE: ""}, 1.0, 1.0, "is '', expected up, down or both", id="an empty direction"),
        pytest.param({PAUSE: "up", PAUSE_UNTIL: "soon"}, 1.0, 0.0, "got 'soon'; the pause has no end", id="no time"),
        pytest.param({PAUSE: "up", PAUSE_UNTIL: "2031-01-01T00:00:00"}, 1.0, 0.0, "with its zone", id="no zone"),
    ],
)
def test_a_pause_by_annotation(annotations: dict[str, str], up: float, down: float, complaint: str) -> None:
    item = hpa(annotations=annotations)
    found = seen(item, at_s=ENDS_S)
    assert (found[("shop/orders", "pause_up")], found[("shop/orders", "pause_down")]) == (up, down)
    text = str(found.get(("shop/orders", FAULT), ""))
    assert complaint in text
    assert text.startswith("HPA shop/orders: annotation ") is bool(complaint)


RULED = {
    FAILOVER: "true",
    POLICY: "netflix",
    f"{RULES}min_workers": "4",
    RULES_UNTIL: "2030-01-01T00:00:00Z",
}


def test_annotations_override_rules_and_the_limits_of_the_hpa_stay() -> None:
    found = seen(hpa(minReplicas=2, annotations=RULED), at_s=ENDS_S - 1)
    assert found["shop/orders", "rule.policy"] == POLICIES.index("netflix")
    assert found["shop/orders", "rule.min_workers"] == 4.0
    assert found["shop/orders", "min_workers"] == 2.0
    assert found["shop/orders", "failover"] == 1.0


def test_overrides_end_at_their_expiry_and_s4_30_failover_has_none() -> None:
    assert seen(hpa(annotations=RULED), at_s=ENDS_S) == seen(hpa(annotations={FAILOVER: "true"}), at_s=ENDS_S)
    assert seen(hpa(annotations=RULED), at_s=ENDS_S)["shop/orders", "failover"] == 1.0


def test_faults_of_annotations_are_one_fault_and_the_valid_ones_apply() -> None:
    wrong = {FAILOVER: "perhaps", f"{RULES}settle_s": "-1", f"{RULES}max_workers": "7"}
    found = seen(hpa(annotations=wrong))
    assert found["shop/orders", "rule.max_workers"] == 7.0
    assert ("shop/orders", "rule.settle_s") not in found
    assert found["shop/orders", "bad_annotations"] == 2.0
    assert found["shop/orders", FAULT] == (
        "HPA shop/orders: annotation backlog-adapter/rules.settle_s: expected a number at least 0 and at most 86400, "
        "got '-1'; it is ignored; annotation backlog-adapter/failover: expected true or false, got 'perhaps'; it is "
        "ignored"
    )


def targeting(kind: str, value: str, metric: str = "required_workers") -> dict[str, Any]:
    """A metric with this target, as the API server stores it."""
    item = external(metric, matchLabels={"workload": "orders"})
    item["external"]["target"] = {"type": kind, kind[0].lower() + kind[1:]: value}
    return item


@pytest.mark.parametrize("metric", ["required_workers", "required_workers_padded"])
@pytest.mark.parametrize(("kind", "value"), [("AverageValue", "800m"), ("AverageValue", "2"), ("Value", "1")])
def test_a_size_that_the_hpa_would_multiply_is_a_fault_that_names_the_setting_for_headroom(
    metric: str, kind: str, value: str
) -> None:
    found = seen(hpa(metrics=[targeting(kind, value, metric)]))[("shop/orders", FAULT)]
    assert found == (
        f'HPA shop/orders: the target of {metric} must be AverageValue "1", got {kind} "{value}": the HPA changes '
        "the replicas again at every sync; for headroom set the annotation "
        "backlog-adapter/rules.target_utilization_ratio or rules.min_spare_workers"
    )


def test_the_padded_size_with_a_tolerance_is_a_fault_that_names_the_other_metric() -> None:
    padded = targeting("AverageValue", "1", "required_workers_padded")
    found = seen(hpa(metrics=[padded], behavior={"scaleUp": {"tolerance": "0"}}))[("shop/orders", FAULT)]
    assert found == (
        'HPA shop/orders: required_workers_padded is for the default tolerance, got "0": the HPA changes the replicas '
        "again at every sync; use required_workers where the HPA sets its tolerance"
    )


@pytest.mark.parametrize(
    "metric",
    [
        pytest.param(targeting("AverageValue", "1"), id="a size as it is"),
        pytest.param(targeting("AverageValue", "1", "required_workers_padded"), id="a padded size as it is"),
        pytest.param(targeting("AverageValue", "2", "segments"), id="a count"),
        pytest.param(targeting("Value", "700m", "utilization"), id="a ratio"),
        pytest.param(targeting("AverageValue", "700m", "utilization"), id="an unusual type"),
    ],
)
def test_any_other_target_is_no_fault(metric: dict[str, Any]) -> None:
    assert ("shop/orders", FAULT) not in seen(hpa(metrics=[metric]))


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(
            {"spec": {"replicas": 3}, "status": {"observedGeneration": 1, "replicas": 2, "readyReplicas": 1}},
            Scale(3, 2, 1),
            id="all facts",
        ),
        pytest.param(
            {"spec": {"replicas": 3}, "status": {"observedGeneration": 1}}, Scale(3, 0, 0), id="0 is left out"
        ),
        pytest.param({"spec": {"replicas": 3}, "status": {}}, Scale(3), id="not yet seen by its controller"),
        pytest.param({"spec": {"replicas": 0}, "status": {"observedGeneration": 1}}, Scale(0, 0, 0), id="scaled to 0"),
    ],
)
def test_the_scale_of_a_deployment(item: Any, expected: Scale) -> None:
    assert scale_of(item) == expected


@given(st.permutations([hpa("a"), hpa("b"), hpa("c", metrics=[external(matchLabels={"workload": "c"})])]))
def test_the_order_of_hpas_does_not_matter(items: list[Any]) -> None:
    assert seen(*items) == seen(*reversed(items))
