"""HPAs in files are checked with the rules by which the pipeline reads them in a cluster."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from adapter import config as configuration
from adapter.config import ChartValues, Config
from adapter.errors import ConfigError
from adapter.operations.manifest_check import check

CONFIG = """
sources:
  kafka: {kind: kafka, bootstrap_servers: "a:9092"}
workloads:
  - {namespace: shop, name: orders, labels: {team: a}, read: [{source: kafka, group: orders, topics: [orders]}]}
  - {namespace: shop, name: carts, read: [{source: kafka, group: carts, topics: [carts]}]}
  - {namespace: eu, name: carts, read: [{source: kafka, group: eu-carts, topics: [carts]}], rules: {max_workers: 3}}
pipeline: {checkpoint: /c}
"""
KNOWN = configuration.parse(CONFIG, "c.yaml")
MANIFESTS = Path(__file__).parents[2] / "hpa"


def hpa(name: str = "orders", workload: str = "orders", **changes: Any) -> dict[str, Any]:
    metric = {"name": "required_workers", "selector": {"matchLabels": {"workload": workload}}}
    metric |= changes.pop("metric", {})
    target = changes.pop("target", {"type": "AverageValue", "averageValue": changes.pop("value", "1")})
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": changes.pop("deployment", name)},
        "minReplicas": changes.pop("minimum", 1),
        "maxReplicas": 12,
        "metrics": [{"type": "External", "external": {"metric": metric, "target": target}}],
    }
    metadata = {"name": name, "namespace": "shop"} | changes.pop("metadata", {})
    whole = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}
    return whole | changes


SPARK = {"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": "orders"}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
QUEUE = {"type": "External", "external": {"metric": {"name": "workers"}, "target": {"type": "Value", "value": 5}}}
STEP = {"type": "Pods", "value": 1, "periodSeconds": 60}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "orders"}}
SPEC = hpa()["spec"]
OF_CPU = hpa("cpu", apiVersion="autoscaling/v1")
OF_CPU["spec"] = {"scaleTargetRef": SPEC["scaleTargetRef"], "maxReplicas": 9, "targetCPUUtilizationPercentage": 70}
WITHOUT_TARGET = hpa()
del WITHOUT_TARGET["spec"]["scaleTargetRef"]


RATE = {"type": "AverageValue", "averageValue": "300"}
INGRESS = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "orders"}
OF_INGRESS = {
    "type": "Object",
    "object": {"metric": {"name": "throughput"}, "target": RATE, "describedObject": INGRESS},
}
LAG = hpa(metric={"name": "kafka_lag"})["spec"]["metrics"][0]


def with_metrics(*others: dict[str, Any]) -> dict[str, Any]:
    item = hpa()
    item["spec"]["metrics"] += others
    return item


def with_spec(**fields: Any) -> dict[str, Any]:
    return hpa(spec=SPEC | fields)


def with_behavior(**behavior: Any) -> dict[str, Any]:
    return with_spec(behavior=behavior)


def rules(**parameters: int) -> dict[str, Any]:
    return {"annotations": {f"backlog-adapter/rules.{name}": str(value) for name, value in parameters.items()}}


def among(*workloads: str, **labels: list[str]) -> dict[str, Any]:
    """A selector of expressions, for the metric of an HPA."""
    values = {"workload": list(workloads)} | labels
    terms = [{"key": key, "operator": "In", "values": each} for key, each in values.items()]
    return {"selector": {"matchExpressions": terms}}


def file_of(folder: Path, *documents: object) -> Path:
    file = folder / "hpas.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    return file


def test_valid_hpas_are_counted_and_workloads_without_one_are_named(tmp_path: Path) -> None:
    assert check([file_of(tmp_path, hpa(), DEPLOYMENT, None)], KNOWN) == (
        "1 HPA without a fault for 1 workload; without an HPA: shop/carts, eu/carts"
    )


@pytest.mark.parametrize("value", ["1", 1, 1.0, "1.000", "1000m", "1000000u", ".001k", "1e0"])
def test_the_target_is_compared_as_the_api_server_writes_it(tmp_path: Path, value: object) -> None:
    assert check([file_of(tmp_path, hpa(value=value))], KNOWN).startswith("1 HPA without a fault")


@pytest.mark.parametrize("tolerance", ["0", 0, "-0", "0.05", 0.05, "50m", "5e-2", ".05", "+1", "1Ki"])
def test_a_tolerance_may_be_any_quantity_of_kubernetes(tmp_path: Path, tolerance: object) -> None:
    item = with_behavior(scaleUp={"tolerance": tolerance})
    assert check([file_of(tmp_path, item)], KNOWN).startswith("1 HPA without a fault")


def test_a_list_of_kubectl_is_read(tmp_path: Path) -> None:
    items = [hpa(), hpa("carts", "carts")]
    found = check([file_of(tmp_path, {"apiVersion": "v1", "kind": "List", "items": items})], KNOWN)
    assert found == "2 HPAs without a fault for 2 workloads; without an HPA: eu/carts"


def test_the_manifests_of_a_folder_are_read(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("[: no YAML")
    (tmp_path / "a.yml").write_text(yaml.safe_dump(hpa()))
    (tmp_path / "b.json").write_text(json.dumps(hpa("carts", "carts")))
    assert check([tmp_path], KNOWN).startswith("2 HPAs without a fault")
    (tmp_path / "a.yml").write_text(yaml.safe_dump(hpa(metadata=rules(min_worker=2))))
    with pytest.raises(ConfigError, match=f"^{tmp_path}/a.yml: HPA shop/orders: "):
        check([tmp_path], KNOWN)


@pytest.mark.parametrize("metric", [{}, among("orders")], ids=["in a label", "in an expression"])
def test_an_hpa_without_a_namespace_has_that_of_the_only_workload_of_its_name(
    tmp_path: Path, metric: dict[str, Any]
) -> None:
    bare = hpa(metric=metric)
    del bare["metadata"]["namespace"]
    assert check([file_of(tmp_path, bare)], KNOWN).startswith("1 HPA without a fault for 1 workload")


@pytest.mark.parametrize(
    ("documents", "faults"),
    [
        pytest.param(
            [hpa(value="800m")],
            ['FILE: HPA shop/orders: the target of required_workers must be AverageValue "1", got AverageValue "800m"'],
            id="a target that is no size",
        ),
        pytest.param(
            [hpa(workload="order")],
            ["FILE: HPA shop/orders: shop/order is not configured; did you mean shop/orders?"],
            id="a workload that is not configured",
        ),
        pytest.param(
            [hpa(metadata={"namespace": "us"})],
            ["FILE: HPA us/orders: us/orders is not configured, but shop/orders is; an HPA reads workloads of its own"],
            id="another namespace",
        ),
        pytest.param(
            [hpa(metric={"name": "required_worker"})],
            ["FILE: HPA shop/orders: the adapter has no metric required_worker; did you mean required_workers?"],
            id="a misspelt metric",
        ),
        pytest.param(
            [hpa(metric=among("orders", "carts"))],
            ["FILE: HPA shop/orders: required_workers may select several workloads; write selector: {matchLabels:"],
            id="one of two workloads",
        ),
        pytest.param(
            [hpa(metric=among("order"))],
            ["FILE: HPA shop/orders: shop/order is not configured; did you mean shop/orders?"],
            id="a workload in an expression that is not configured",
        ),
        pytest.param(
            [hpa(metric={"name": "required_worker"} | among("orders"))],
            ["FILE: HPA shop/orders: the adapter has no metric required_worker; did you mean required_workers?"],
            id="a misspelt metric, the workload in an expression",
        ),
        pytest.param(
            [hpa(metric=among("orders", team=["b", "c"]))],
            [
                "FILE: HPA shop/orders: required_workers selects team=b or team=c, a label that shop/orders does "
                "not have"
            ],
            id="a label in an expression that the workload does not have",
        ),
        pytest.param(
            [hpa(metric={"selector": None})],
            [
                "FILE: HPA shop/orders: required_workers names no single workload; add selector: "
                "{matchLabels: {workload:"
            ],
            id="no selector",
        ),
        pytest.param(
            [hpa(metadata={"annotations": {"backlog-adapter/paus": "up"}})],
            [
                "FILE: HPA shop/orders: annotation 'backlog-adapter/paus' is unknown; did you "
                "mean backlog-adapter/pause?"
            ],
            id="a misspelt annotation",
        ),
        pytest.param(
            [hpa(metadata={"annotations": {"backlog-adapter/rules.min_workers": 2}})],
            [
                'FILE: HPA shop/orders: metadata.annotations["backlog-adapter/rules.min_workers"]: expected text, got '
                "2; write it in quotes"
            ],
            id="an annotation that is no text",
        ),
        pytest.param(
            [hpa(), hpa("second", deployment="orders")],
            ["FILE: HPAs shop/orders and shop/second scale workload shop/orders: write all their metrics into one HPA"],
            id="two HPAs of one workload",
        ),
        pytest.param(
            [hpa(), {**hpa("cpu", deployment="orders"), "spec": {**hpa()["spec"], "metrics": [CPU]}}],
            ["FILE: HPAs shop/orders and shop/cpu scale Deployment shop/orders, so Kubernetes stops them; write all"],
            id="another HPA of the target",
        ),
        pytest.param(
            [hpa(), OF_CPU],
            ["FILE: HPAs shop/orders and shop/cpu scale Deployment shop/orders, so Kubernetes stops them; write all"],
            id="an HPA of autoscaling/v1 on the target",
        ),
        pytest.param(
            [hpa(apiVersion="autoscaling/v1")],
            ["FILE: HPA shop/orders: spec.metrics: is not a field of autoscaling/v1; write apiVersion: autoscaling/v2"],
            id="metrics in autoscaling/v1",
        ),
        pytest.param(
            [OF_CPU | {"spec": OF_CPU["spec"] | {"behavior": {}}}],
            ["FILE: HPA shop/cpu: spec.behavior: is not a field of autoscaling/v1; write apiVersion: autoscaling/v2"],
            id="behavior in autoscaling/v1",
        ),
        pytest.param(
            [hpa(minimum=-1)],
            ["FILE: HPA shop/orders: spec.minReplicas: expected at least 0, got -1"],
            id="a minimum below 0",
        ),
        pytest.param(
            [hpa(minimum=20)],
            ["FILE: HPA shop/orders: expected minReplicas <= maxReplicas = 12, got 20"],
            id="bounds in the wrong order",
        ),
        pytest.param(
            [hpa(minimum=7, metadata=rules(min_workers=20, max_workers=30)), hpa("carts", "carts", minimum=7)],
            ["FILE: HPA shop/orders: expected the annotation rules.min_workers <= maxReplicas = 12, got 20"],
            id="a minimum in an annotation above the maximum of the HPA",
        ),
        pytest.param(
            [hpa(minimum=7, metadata=rules(max_workers=6))],
            ["FILE: HPA shop/orders: expected minReplicas <= the annotation rules.max_workers = 6, got 7"],
            id="a maximum in an annotation below the minimum of the HPA",
        ),
        pytest.param(
            [hpa(metadata=rules(min_workers=9, max_workers=5))],
            [
                "FILE: HPA shop/orders: all rules in its HPA's annotations are ignored: expected min_workers <= "
                "max_workers, got min_workers = 9 (annotation) and max_workers = 5 (annotation)"
            ],
            id="annotations that contradict each other",
        ),
        pytest.param(
            [hpa("eu", "carts", metadata={"namespace": "eu"} | rules(min_workers=4))],
            [
                "FILE: HPA eu/eu: all rules in its HPA's annotations are ignored: expected min_workers <= max_workers, "
                "got min_workers = 4 (annotation) and max_workers = 3"
            ],
            id="an annotation that contradicts the configuration",
        ),
        pytest.param(
            [hpa(metric={"selector": {"matchLabels": {"workload": "orders", "team": "b", "x": "1"}}})],
            [
                "FILE: HPA shop/orders: required_workers selects team=b, a label that shop/orders does not have, so "
                "the API answers 404; remove it, or add it to the labels of the workload",
                "FILE: HPA shop/orders: required_workers selects x=1, a label that shop/orders does not have",
            ],
            id="labels that the workload does not have",
        ),
        *(
            pytest.param(
                [hpa(metric=metric)],
                [
                    "FILE: HPA shop/orders: required_workers is a number of the whole workload, so the API answers "
                    "400; leave stage out of the selector"
                ],
                id=f"a stage of a metric that stages do not have, in {place}",
            )
            for place, metric in {
                "a label": {"selector": {"matchLabels": {"workload": "orders", "stage": "map"}}},
                "an expression": among("orders", stage=["map"]),
            }.items()
        ),
        pytest.param(
            [with_metrics({"type": "External", "external": {"metric": {"name": "throughput"}, "target": RATE}})],
            [
                "FILE: HPA shop/orders: throughput names no single workload; add selector: {matchLabels: "
                "{workload: NAME}}"
            ],
            id="a second metric without a selector",
        ),
        pytest.param(
            [hpa(metric={"selector": None}, value="800m", metadata={"annotations": {"backlog-adapter/paus": "up"}})],
            [
                "FILE: HPA shop/orders: required_workers names no single workload; add selector:",
                'FILE: HPA shop/orders: the target of required_workers must be AverageValue "1", got '
                'AverageValue "800m"',
                "FILE: HPA shop/orders: annotation 'backlog-adapter/paus' is unknown; did you "
                "mean backlog-adapter/pause?",
            ],
            id="a metric without a workload hides no other fault",
        ),
        pytest.param(
            [hpa(), hpa()],
            ["FILE: HPA shop/orders: is also in FILE; name each file once, or remove a copy"],
            id="one HPA twice",
        ),
        pytest.param(
            [hpa(), hpa("carts", "carts", deployment="orders")],
            ["FILE: workloads shop/carts and shop/orders share the workers of Deployment shop/orders, which HPAs"],
            id="one target of two workloads",
        ),
        pytest.param(
            [hpa(apiVersion="autoscaling/v2beta2"), hpa("carts", "cart")],
            [
                "FILE: HPA shop/orders: expected apiVersion autoscaling/v2, got autoscaling/v2beta2",
                "FILE: HPA shop/carts: shop/cart is not configured; did you mean shop/carts?",
            ],
            id="an old version hides no other fault",
        ),
        *(
            pytest.param(
                [with_spec(scaleTargetRef={"name": "orders"} | target)],
                [
                    f"FILE: HPA shop/orders: no HPA can scale {target['kind']} shop/orders: {version} has no scalable "
                    f"kind {target['kind']}; correct apiVersion or kind, or scale what runs its workers, "
                    "such as a Deployment"
                ],
                id=f"{target['kind']} of {version}",
            )
            for target, version in [
                ({"kind": "Deployment"}, "v1, the default apiVersion,"),
                ({"kind": "Rollout"}, "v1, the default apiVersion,"),
                ({"kind": "Pod", "apiVersion": "v1"}, "v1, the default apiVersion,"),
                ({"kind": "deployment", "apiVersion": "apps/v1"}, "apps/v1"),
                ({"kind": "DaemonSet", "apiVersion": "apps/v1"}, "apps/v1"),
                ({"kind": "CronJob", "apiVersion": "batch/v1"}, "batch/v1"),
                (SPARK, "sparkoperator.k8s.io/v1beta2"),
                (SPARK | {"apiVersion": "spark.apache.org/v1"}, "spark.apache.org/v1"),
                (SPARK | {"apiVersion": "spark.apache.org/v1", "kind": "SparkCluster"}, "spark.apache.org/v1"),
                ({"kind": "Deployment", "apiVersion": "extensions/v1beta1"}, "extensions/v1beta1"),
            ]
        ),
        pytest.param(
            [WITHOUT_TARGET],
            ["FILE: HPA shop/orders: spec.scaleTargetRef: is required"],
            id="no target",
        ),
        pytest.param(
            [with_spec(behaviour={"scaleDown": {"selectPolicy": "Disable"}})],
            [
                "FILE: HPA shop/orders: spec.behaviour: is not a field of autoscaling/v2; did you mean behavior?",
                "FILE: HPA shop/orders: spec.behavior.scaleDown.selectPolicy: expected one of Max, Min, Disabled, got "
                "'Disable'; did you mean Disabled?",
            ],
            id="a misspelt field hides no fault below it",
        ),
        pytest.param(
            [with_behavior(scaleDown={"stabilizationWindow": 300, "policies": [{**STEP, "every": 60}]})],
            [
                "FILE: HPA shop/orders: spec.behavior.scaleDown.stabilizationWindow: is not a field of autoscaling/v2; "
                "did you mean stabilizationWindowSeconds?",
                "FILE: HPA shop/orders: spec.behavior.scaleDown.policies[0].every: is not a field of autoscaling/v2; "
                "expected one of periodSeconds, type, value",
            ],
            id="fields that Kubernetes drops",
        ),
        pytest.param(
            [with_behavior(scaleUp={"stabilizationWindowSeconds": 7200, "policies": [{**STEP, "type": "pods"}]})],
            [
                "FILE: HPA shop/orders: spec.behavior.scaleUp.stabilizationWindowSeconds: expected at most 3600, "
                "got 7200",
                "FILE: HPA shop/orders: spec.behavior.scaleUp.policies[0].type: expected one of Pods, Percent, got "
                "'pods'; did you mean Pods?",
            ],
            id="values that Kubernetes refuses",
        ),
        pytest.param(
            [with_behavior(scaleDown={"policies": []})],
            ["FILE: HPA shop/orders: spec.behavior.scaleDown.policies: expected at least one entry, got an empty list"],
            id="no policies",
        ),
        *(
            pytest.param(
                [with_behavior(scaleUp={"tolerance": tolerance})],
                [f"FILE: HPA shop/orders: spec.behavior.scaleUp.tolerance: {fault}"],
                id=f"a tolerance of {tolerance}",
            )
            for tolerance, fault in [
                ("10%", "expected a quantity such as 1, 500m or 0.1, got '10%'; write 0.1 for 10%"),
                ("0,1", "expected a quantity such as 1, 500m or 0.1, got '0,1'; write 0.1, with a point"),
                ("1K", "expected a quantity such as 1, 500m or 0.1, got '1K'"),
                (-0.1, "expected at least 0, got '-0.1'"),
            ]
        ),
        *(
            pytest.param(
                [hpa(value=value)],
                [f"FILE: HPA shop/orders: spec.metrics[0].external.target.averageValue: {fault}"],
                id=f"a target of {value}",
            )
            for value, fault in [
                ("0", "expected more than 0, got '0'"),
                ("0.0m", "expected more than 0, got '0.0m'"),
                ("-1", "expected more than 0, got '-1'"),
                ("many", "expected a quantity such as 1, 500m or 0.1, got 'many'"),
                ("1 ", "expected a quantity such as 1, 500m or 0.1, got '1 '"),
                ("1_000m", "expected a quantity such as 1, 500m or 0.1, got '1_000m'"),
                ("\u0661", "expected a quantity such as 1, 500m or 0.1, got '\u0661'"),
            ]
        ),
        pytest.param(
            [with_spec(metrics=[{**SPEC["metrics"][0], "type": "Object"}])],
            ["FILE: HPA shop/orders: spec.metrics[0].object: is required with type Object"],
            id="a metric of another type",
        ),
        pytest.param(
            [hpa(metric={"selector": {"matchExpressions": [{"key": "workload", "operator": "Equals"}]}})],
            [
                "FILE: HPA shop/orders: spec.metrics[0].external.metric.selector.matchExpressions[0].operator: "
                "expected one of In, NotIn, Exists, DoesNotExist, got 'Equals'"
            ],
            id="an operator that does not exist",
        ),
        *(
            pytest.param(
                [hpa(metric={"selector": {"matchExpressions": [{"key": "workload"} | term]}})],
                [
                    "FILE: HPA shop/orders: spec.metrics[0].external.metric.selector.matchExpressions[0].values: "
                    f"expected {expected} with operator {term['operator']}"
                ],
                id=f"{expected} expected in a selector, with {term}",
            )
            for expected, terms in {
                "at least one entry": ({"operator": "In", "values": None}, {"operator": "NotIn", "values": []}),
                "none": ({"operator": "Exists", "values": ["orders"]},),
            }.items()
            for term in terms
        ),
        pytest.param(
            [hpa(spec={("maxReplica" if name == "maxReplicas" else name): value for name, value in SPEC.items()})],
            ["FILE: HPA shop/orders: spec.maxReplica: is not a field of autoscaling/v2; did you mean maxReplicas?"],
            id="a required field with a misspelt name is one fault",
        ),
        pytest.param(
            [hpa(spec={name: value for name, value in SPEC.items() if name != "minReplicas"} | {"maxReplica": 50})],
            [
                "FILE: HPA shop/orders: spec.maxReplica: is not a field of autoscaling/v2; expected one of behavior, "
                "maxReplicas, metrics, minReplicas, scaleTargetRef"
            ],
            id="a misspelt field beside the right one stands for no other",
        ),
        pytest.param(
            [with_spec(replicas=3, minReplicas=1)],
            [
                "FILE: HPA shop/orders: spec.replicas: is not a field of autoscaling/v2; expected one of behavior, "
                "maxReplicas, metrics, minReplicas, scaleTargetRef"
            ],
            id="an unknown field is none that is set",
        ),
        pytest.param(
            [hpa(spec=[])], ["FILE: HPA shop/orders: spec: expected a mapping, got an empty list"], id="a list"
        ),
        pytest.param(
            [hpa(spec=hpa()["spec"] | {"maxReplicas": "12", "metrics": {"type": "External"}})],
            [
                "FILE: HPA shop/orders: spec.maxReplicas: expected a whole number, got '12'; write 12, without quotes",
                "FILE: HPA shop/orders: spec.metrics: expected a list, got a mapping",
            ],
            id="two fields of the wrong type",
        ),
        *(
            pytest.param(
                [hpa(target=target)],
                [f'FILE: HPA shop/orders: the target of required_workers must be AverageValue "1", got {given}: '],
                id=given,
            )
            for target, given in [
                ({"type": "AverageValue", "value": "1"}, "type AverageValue with value"),
                ({"type": "Value"}, "type Value with no value"),
                (
                    {"type": "AverageValue", "value": 1, "averageValue": 1},
                    "type AverageValue with averageValue and value",
                ),
            ]
        ),
        pytest.param(
            [hpa(value=[1])],
            ["FILE: HPA shop/orders: spec.metrics[0].external.target.averageValue: expected text, got a list"],
            id="a target that is a list",
        ),
        pytest.param(
            [hpa(value="800m", metadata={"namespace": None})],
            ["FILE: HPA orders: the target of required_workers must be"],
            id="no namespace",
        ),
        pytest.param(
            [hpa(), {**hpa("carts", "carts"), "metadata": 3}],
            ["FILE: HPA without a name: metadata: expected a mapping, got 3"],
            id="no metadata",
        ),
    ],
)
def test_a_fault_is_one_sentence(tmp_path: Path, documents: list[object], faults: list[str]) -> None:
    file = file_of(tmp_path, *documents)
    with pytest.raises(ConfigError) as refused:
        check([file], KNOWN)
    assert len(refused.value.faults) == len(faults)
    for fault, expected in zip(refused.value.faults, faults, strict=True):
        assert fault.startswith(expected.replace("FILE", str(file)))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(with_spec(metrics=[CPU]), id="CPU"),
        pytest.param(with_spec(metrics=[QUEUE]), id="a metric of another adapter"),
        pytest.param(OF_CPU, id="autoscaling/v1"),
    ],
)
def test_an_hpa_without_a_metric_of_the_adapter_is_named(tmp_path: Path, other: dict[str, Any]) -> None:
    found = check([file_of(tmp_path, other)], KNOWN)
    assert found.startswith("0 HPAs without a fault for 0 workloads")
    assert found.endswith(f"; HPAs without a metric of the adapter: shop/{other['metadata']['name']}")


@pytest.mark.parametrize(
    ("documents", "is_warned"),
    [
        pytest.param([], True, id="an empty file"),
        pytest.param([DEPLOYMENT], True, id="a Deployment"),
        pytest.param([yaml.safe_load(CONFIG)], True, id="a configuration"),
        pytest.param([OF_CPU], True, id="an HPA of CPU"),
        pytest.param([DEPLOYMENT, hpa()], False, id="a Deployment and an HPA of the adapter"),
    ],
)
def test_files_without_an_hpa_of_the_adapter_are_named(
    tmp_path: Path, documents: list[object], is_warned: bool
) -> None:
    with capture_logs() as logged:
        check([file := file_of(tmp_path, *documents)], KNOWN)
    text = f"no HPA in {file} scales by a metric of the adapter; name the files of those that do"
    assert [line["event"] for line in logged] == [text] * is_warned


@pytest.mark.parametrize(
    "target",
    [
        pytest.param({"kind": "ReplicationController"}, id="the only kind of the default version"),
        pytest.param({"kind": "Deployment", "apiVersion": "apps/v1beta1"}, id="an old version, which no HPA reads"),
    ],
)
def test_a_scale_target_is_found_by_its_group_and_kind(tmp_path: Path, target: dict[str, str]) -> None:
    item = with_spec(scaleTargetRef={"name": "orders"} | target)
    assert check([file_of(tmp_path, item)], KNOWN).startswith("1 HPA without a fault for 1 workload")


def test_a_scaled_object_is_named_as_not_checked() -> None:
    with capture_logs() as logged:
        found = check([MANIFESTS / "keda-scaledobject.yaml"], KNOWN)
    assert not logged
    assert found == (
        "0 HPAs without a fault for 0 workloads; without an HPA: shop/orders, shop/carts, eu/carts; "
        "ScaledObjects of KEDA, which are not checked: orders"
    )


def test_a_scaled_object_that_scales_the_target_of_an_hpa_of_the_adapter_is_named(tmp_path: Path) -> None:
    target = hpa()["spec"]["scaleTargetRef"]
    keda = {"kind": "ScaledObject", "metadata": {"name": "o", "namespace": "shop"}, "spec": {"scaleTargetRef": target}}
    with capture_logs() as logged:
        check([file := file_of(tmp_path, hpa(), keda)], KNOWN)
    assert [line["event"] for line in logged] == [
        f"{file}: HPA shop/orders: ScaledObject o scales {target['kind']} {target['name']} too: "
        "KEDA makes an HPA for it, and Kubernetes stops both HPAs; keep one of them"
    ]


def test_an_hpa_without_a_metric_of_the_adapter_is_not_warned_of_a_scaled_object(tmp_path: Path) -> None:
    target = OF_CPU["spec"]["scaleTargetRef"]
    keda = {"kind": "ScaledObject", "metadata": {"name": "o", "namespace": "shop"}, "spec": {"scaleTargetRef": target}}
    with capture_logs() as logged:
        check([file_of(tmp_path, OF_CPU, keda)], KNOWN)
    assert logged == []


@pytest.mark.parametrize("name", ["utilization", "required_workers"])
def test_a_metric_of_type_pods_with_the_name_of_an_own_metric_is_named(tmp_path: Path, name: str) -> None:
    pods = {"type": "Pods", "pods": {"metric": {"name": name}, "target": RATE}}
    with capture_logs() as logged:
        check([file := file_of(tmp_path, with_spec(metrics=[pods]))], KNOWN)
    text = f"{name} is of type Pods, which the adapter does not serve"
    assert [line["event"] for line in logged] == [
        f"{file}: HPA shop/orders: {text}; make it External or Object, unless another adapter serves it"
    ]


@pytest.mark.parametrize(
    ("name", "kind", "hint"),
    [
        (
            "utilization",
            "AverageValue",
            'the target of utilization is usually Value, got AverageValue "700m": with AverageValue the HPA sets '
            "utilization / target replicas, however many run now",
        ),
        (
            "input_rate",
            "Value",
            'the target of input_rate is usually AverageValue, got Value "700m": with Value the HPA multiplies the '
            "replicas by input_rate / target at every sync",
        ),
        (
            "backlog_growth_signed",
            "Value",
            "backlog_growth_signed is for dashboards and alerts; scale on required_workers",
        ),
    ],
)
def test_an_unusual_target_is_named_with_its_effect(tmp_path: Path, name: str, kind: str, hint: str) -> None:
    target = {"type": kind, kind[0].lower() + kind[1:]: "700m"}
    with capture_logs() as logged:
        check([file := file_of(tmp_path, hpa(metric={"name": name}, target=target))], KNOWN)
    assert [line["event"] for line in logged] == [f"{file}: HPA shop/orders: {hint}"]


@pytest.mark.parametrize(
    ("name", "kind", "value", "hint"),
    [
        (
            "utilization",
            "Value",
            "70",
            'utilization is at most 1, so with Value "70" the HPA only removes replicas; write 700m for 70 %',
        ),
        (
            "utilization",
            "Value",
            "1500m",
            'utilization is at most 1, so with Value "1500m" the HPA only removes replicas',
        ),
        ("utilization", "Value", "1e2", 'utilization is at most 1, so with Value "1e2" the HPA only removes replicas'),
        ("utilization", "Value", "1", None),
        (
            "backlog",
            "AverageValue",
            "1",
            'with AverageValue "1" the HPA wants a replica for each record of backlog; write what a replica may have',
        ),
        ("backlog", "AverageValue", "10k", None),
        ("segments", "AverageValue", "1", None),
    ],
)
def test_an_unusual_value_of_a_target_is_named(
    tmp_path: Path, name: str, kind: str, value: str, hint: str | None
) -> None:
    target = {"type": kind, kind[0].lower() + kind[1:]: value}
    with capture_logs() as logged:
        check([file := file_of(tmp_path, hpa(metric={"name": name}, target=target))], KNOWN)
    assert [line["event"] for line in logged] == ([f"{file}: HPA shop/orders: {hint}"] if hint else [])


CONTAINER = {"name": "memory", "container": "app", "target": {"type": "Utilization", "averageUtilization": 70}}
OF_CONTAINER = {"type": "ContainerResource", "containerResource": CONTAINER}


@pytest.mark.parametrize(("metric", "resource"), [(CPU, "cpu"), (OF_CONTAINER, "memory"), (OF_INGRESS, None)])
def test_a_resource_beside_the_required_workers_is_named(
    tmp_path: Path, metric: dict[str, Any], resource: str | None
) -> None:
    text = f"an HPA takes the largest size of its metrics, so {resource} may keep more replicas than are required"
    with capture_logs() as logged:
        check([file := file_of(tmp_path, with_metrics(metric))], KNOWN)
    sentence = f"{file}: HPA shop/orders: {text}; remove it, unless that is intended"
    assert [line["event"] for line in logged] == ([sentence] if resource else [])


def test_a_metric_of_another_object_is_of_another_adapter(tmp_path: Path) -> None:
    assert check([file_of(tmp_path, with_metrics(OF_INGRESS))], KNOWN).startswith(
        "1 HPA without a fault for 1 workload"
    )


def test_labels_of_the_workload_and_a_stage_may_be_selected(tmp_path: Path) -> None:
    labels = {"workload": "orders", "team": "a", "stage": "map"}
    metric = {"name": "throughput", "selector": {"matchLabels": labels}}
    found = check([file_of(tmp_path, hpa(metric=metric))], KNOWN)
    assert found.startswith("1 HPA without a fault for 1 workload")


def test_the_annotations_of_a_discovered_workload_are_compared_with_the_rules_of_its_fleet(tmp_path: Path) -> None:
    fleet = "fleets: [{name: f, source: kafka, groups: '.*', namespace: shop, rules: {max_workers: 3}}]\n"
    with pytest.raises(ConfigError, match=r"got min_workers = 4 \(annotation\) and max_workers = 3: no size"):
        check(
            [file_of(tmp_path, hpa("r", "r", metadata=rules(min_workers=4)))], configuration.parse(CONFIG + fleet, "c")
        )


def test_a_conflict_names_the_files_of_its_hpas(tmp_path: Path) -> None:
    files = [tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "c.yaml"]
    items = [
        hpa(),
        {**hpa("cpu", deployment="orders"), "spec": {**hpa()["spec"], "metrics": [CPU]}},
        hpa("carts", "carts"),
    ]
    for file, item in zip(files, items, strict=True):
        file.write_text(yaml.safe_dump(item))
    with pytest.raises(ConfigError) as refused:
        check(files, KNOWN)
    assert refused.value.faults == (
        f"{files[0]} and {files[1]}: HPAs shop/orders and shop/cpu scale Deployment shop/orders, so Kubernetes stops "
        "them; write all their metrics into one HPA",
    )


@pytest.mark.parametrize(
    ("annotation", "until", "effect"),
    [
        ("pause: up", "pause-until", "scaling is not paused; remove the pause"),
        ("policy: varga", "rules-until", "the policy and rules in annotations have no effect; remove them"),
    ],
)
def test_annotations_that_have_ended_are_named(tmp_path: Path, annotation: str, until: str, effect: str) -> None:
    ended, open_ = (
        yaml.safe_load(f"backlog-adapter/{annotation}\nbacklog-adapter/{until}: '{year}-01-01T00:00:00Z'")
        for year in (2020, 2999)
    )
    items = [hpa(metadata={"annotations": ended}), hpa("carts", "carts", metadata={"annotations": open_})]
    file = file_of(tmp_path, *items)
    with capture_logs() as logged:
        assert check([file], KNOWN).startswith("2 HPAs without a fault for 2 workloads")
    text = f"annotation backlog-adapter/{until} is in the past, so {effect}, or set a later end"
    assert [line["event"] for line in logged] == [f"{file}: HPA shop/orders: {text}"]


GATE = "so an idle job keeps 1 worker; set minReplicas to 0, which needs the feature gate HPAScaleToZero"
BY_KEDA = {"annotations": {"backlog-adapter/workload": "orders"} | rules(min_workers=0)["annotations"]}


@pytest.mark.parametrize(
    ("item", "hints"),
    [
        pytest.param(
            hpa(minimum=0),
            ["minReplicas is 0 but min_workers is 1, so an idle job keeps 1 worker; set min_workers to 0"],
            id="minReplicas alone",
        ),
        pytest.param(
            hpa(minimum=0, metadata=rules(min_workers=2)),
            [
                "minReplicas is 0 but the annotation rules.min_workers is 2, so an idle job keeps 2 workers; "
                "set the annotation rules.min_workers to 0"
            ],
            id="minReplicas beside an annotation",
        ),
        pytest.param(
            hpa(minimum=1, metadata=rules(min_workers=0)),
            [f"the annotation rules.min_workers is 0 but minReplicas is 1, {GATE}"],
            id="min_workers alone",
        ),
        pytest.param(
            hpa("carts", "carts", minimum=None),
            [f"min_workers is 0 but minReplicas is 1 by default, {GATE}"],
            id="min_workers without minReplicas",
        ),
        pytest.param(hpa("carts", "carts", minimum=0), [], id="both"),
        pytest.param(hpa("carts", "carts", minimum=2), [], id="a larger minReplicas is meant"),
        pytest.param(hpa(metric={"name": "s0"}, metadata=BY_KEDA), [], id="KEDA scales to zero itself"),
    ],
)
def test_a_minimum_of_zero_that_has_no_effect_is_named(tmp_path: Path, item: dict[str, Any], hints: list[str]) -> None:
    idle = configuration.parse(
        CONFIG.replace("topics: [carts]}]}", "topics: [carts]}], rules: {min_workers: 0}}", 1), "c"
    )
    with capture_logs() as logged:
        check([file := file_of(tmp_path, item)], idle)
    assert [line["event"] for line in logged] == [
        f"{file}: HPA shop/{item['metadata']['name']}: {hint}" for hint in hints
    ]


@pytest.mark.parametrize(
    ("item", "metrics"),
    [
        pytest.param(hpa(metric={"name": "kafka_lag"}), ["kafka_lag"], id="a metric that the adapter does not have"),
        pytest.param(hpa(workload="other", metric={"name": "kafka_lag"}), [], id="another workload"),
        pytest.param(
            hpa(metric={"name": "kafka_lag"} | among("orders")), ["kafka_lag"], id="the workload in an expression"
        ),
        pytest.param(with_metrics(LAG), [], id="beside a metric of the adapter"),
        pytest.param(with_spec(metrics=[OF_INGRESS, LAG]), ["kafka_lag"], id="beside a metric of another object"),
    ],
)
def test_an_unknown_metric_of_a_configured_workload_is_named(
    tmp_path: Path, item: dict[str, Any], metrics: list[str]
) -> None:
    with capture_logs() as logged:
        check([file := file_of(tmp_path, item)], KNOWN)
    assert [line["event"] for line in logged if line["event"].startswith(f"{file}: ")] == [
        f"{file}: HPA shop/orders: the adapter has no metric {name}, whose selector names the workload shop/orders; "
        "correct the name, unless another adapter serves it"
        for name in metrics
    ]


UP = {"max_step_up_workers": 1}
EXACT_UP = {"scaleUp": {"tolerance": "0"}}


@pytest.mark.parametrize(
    ("spec", "limits", "direction"),
    [
        pytest.param({"maxReplicas": 12}, UP, "up", id="scale-ups"),
        pytest.param({"maxReplicas": 12}, {"max_step_down_workers": 1}, "down", id="scale-downs"),
        pytest.param({"maxReplicas": 11}, UP, None, id="the HPA ignores a change from 10 to 11 without the limit too"),
        pytest.param({"maxReplicas": 99, "behavior": EXACT_UP}, UP, None, id="no tolerance"),
        pytest.param(
            {"maxReplicas": 99, "behavior": {"scaleDown": {"tolerance": "0"}}}, UP, "up", id="that of the other"
        ),
        pytest.param({"maxReplicas": 99}, UP | {"max_workers": 11}, None, id="a smaller maximum in an annotation"),
        pytest.param({"maxReplicas": 99}, {"max_step_up_workers": 9}, None, id="a larger step"),
        pytest.param({"maxReplicas": 99}, {}, None, id="no limit"),
        pytest.param(
            {"maxReplicas": 99, "metrics": hpa(metric={"name": "required_workers_padded"})["spec"]["metrics"]},
            UP,
            None,
            id="a metric that exceeds the tolerance",
        ),
    ],
)
def test_a_limit_of_steps_below_the_tolerance_of_the_hpa_is_named(
    tmp_path: Path, spec: dict[str, Any], limits: dict[str, int], direction: str | None
) -> None:
    with capture_logs() as logged:
        check([file := file_of(tmp_path, hpa(spec=SPEC | spec, metadata=rules(**limits)))], KNOWN)
    text = "is 1, a step that an HPA with the default tolerance ignores from 10 workers on; set behavior.scale"
    assert [line["event"].partition(text)[0] for line in logged] == [
        f"{file}: HPA shop/orders: the annotation rules.max_step_{each}_workers " for each in [direction] if each
    ]


ORDERS = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "orders"}
OF_ORDERS = {**OF_INGRESS, "object": {**OF_INGRESS["object"], "describedObject": ORDERS}}
FLINK = {"apiVersion": "flink.apache.org/v1beta1", "kind": "FlinkDeployment", "name": "orders"}
RIGHT = "the pipeline may not read the replicas of {}; add {} to rbac.extraScaleTargets of the values"


@pytest.mark.parametrize(
    ("item", "values", "hints"),
    [
        pytest.param(hpa(), "{}", [], id="an external metric and the defaults"),
        pytest.param(
            hpa(),
            "apiService: {external: {create: false}, custom: {create: true}}",
            [
                "a metric of type External needs apiService.external.create: true in the values of the chart; set it, "
                "or make the metric Object"
            ],
            id="an external metric, and KEDA owns its API",
        ),
        pytest.param(
            with_spec(metrics=[OF_ORDERS]),
            "{}",
            [
                "a metric of type Object needs apiService.custom.create: true in the values of the chart; set it, or "
                "make the metric External"
            ],
            id="a metric of an object and the defaults",
        ),
        pytest.param(
            hpa(),
            "apiService: {external: {create: false}}",
            ["a metric of type External needs apiService.external.create: true in the values of the chart; set it"],
            id="no API",
        ),
        pytest.param(
            with_spec(scaleTargetRef=FLINK),
            "rbac: {extraScaleTargets: [argoproj.io]}",
            [RIGHT.format("FlinkDeployment shop/orders", "flink.apache.org/flinkdeployments")],
            id="another kind of scale target",
        ),
        pytest.param(
            with_spec(scaleTargetRef=FLINK),
            "rbac: {extraScaleTargets: [flink.apache.org/flinksessionjobs]}",
            [RIGHT.format("FlinkDeployment shop/orders", "flink.apache.org/flinkdeployments")],
            id="another resource of its API group",
        ),
        pytest.param(
            with_spec(scaleTargetRef=FLINK | {"apiVersion": "numaflow.numaproj.io/v1alpha1", "kind": "Vertex"}),
            "rbac: {extraScaleTargets: [numaflow.numaproj.io/vertices]}",
            [],
            id="an irregular plural",
        ),
        pytest.param(
            with_spec(scaleTargetRef=FLINK),
            "rbac: {extraRules: [{apiGroups: 5}]}",
            [RIGHT.format("FlinkDeployment shop/orders", "flink.apache.org/flinkdeployments")],
            id="a rule that helm refuses",
        ),
        pytest.param(
            with_spec(scaleTargetRef=FLINK | {"apiVersion": "example.com/v1", "kind": "Job"}),
            "{}",
            [RIGHT.format("Job shop/orders", "example.com/jobs")],
            id="an unknown kind of scale target",
        ),
        *(
            pytest.param(with_spec(scaleTargetRef=FLINK), f"rbac: {rbac}", [], id=f"rights on it: {rbac}")
            for rbac in (
                "{extraScaleTargets: [flink.apache.org]}",
                "{extraScaleTargets: [flink.apache.org/flinkdeployments]}",
                "{extraRules: [{apiGroups: ['*'], resources: ['*/scale'], verbs: [get]}]}",
                "{create: false}",
            )
        ),
        pytest.param(
            hpa(metric={"name": "s0"}, metadata=BY_KEDA),
            "apiService: {external: {create: false}}",
            [],
            id="an HPA of KEDA",
        ),
        pytest.param(
            with_spec(metrics=[QUEUE], scaleTargetRef=FLINK), "{}", [], id="an HPA without a metric of the adapter"
        ),
    ],
)
def test_what_a_release_with_these_values_cannot_serve_is_named(
    tmp_path: Path, item: dict[str, Any], values: str, hints: list[str]
) -> None:
    with capture_logs() as logged:
        check([file := file_of(tmp_path, item)], KNOWN, ChartValues(KNOWN, yaml.safe_load(values)))
    assert [line["event"] for line in logged if line["event"].startswith(f"{file}: ")] == [
        f"{file}: HPA shop/orders: {hint}" for hint in hints
    ]


def test_a_field_without_a_value_is_absent(tmp_path: Path) -> None:
    empty = hpa(metadata={"annotations": None, "labels": None})
    empty["spec"] |= {"behavior": None, "minReplicas": None}
    assert check([file_of(tmp_path, empty)], KNOWN).startswith("1 HPA without a fault for 1 workload")


def test_an_hpa_as_the_api_server_returns_it_is_valid(tmp_path: Path) -> None:
    entry = {"manager": "kubectl", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}
    metadata = {"uid": "5d1e", "resourceVersion": "7", "generation": 1, "managedFields": [entry]}
    condition = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale"}
    whole = hpa(metadata=metadata, status={"currentReplicas": 1, "desiredReplicas": 1, "conditions": [condition]})
    assert check([file_of(tmp_path, whole)], KNOWN).startswith("1 HPA without a fault for 1 workload")


def test_aliases_in_a_field_that_does_not_exist_cost_nothing(tmp_path: Path) -> None:
    file = file_of(tmp_path, hpa())
    levels = [f"  x{level}: &x{level} [{', '.join([f'*x{level - 1}'] * 9)}]" for level in range(1, 30)]
    file.write_text("\n".join([file.read_text(), "extra:", "  x0: &x0 [1]", *levels, ""]))
    with pytest.raises(ConfigError, match=r"extra: is not a field of autoscaling/v2; expected one of apiVersion, kind"):
        check([file], KNOWN)


SERIES = "source: prometheus, preset: flink"


def with_fleet(settings: str) -> Config:
    """The configuration with a fleet of these settings."""
    source = "  prometheus: {kind: prometheus, url: 'http://p:9090'}\nworkloads:"
    text = CONFIG.replace("workloads:", source) + f"fleets: [{{name: f, {settings}}}]\n"
    return configuration.parse(text, "c.yaml")


@pytest.mark.parametrize(
    "fleet",
    [
        pytest.param("source: kafka, groups: '.*', namespace: us", id="groups of another namespace"),
        pytest.param(f"{SERIES}, namespace: flink", id="series of another namespace"),
        pytest.param(SERIES, id="series of the namespace default"),
    ],
)
def test_a_workload_that_no_fleet_can_find_is_a_fault(tmp_path: Path, fleet: str) -> None:
    with pytest.raises(ConfigError, match="shop/order is not configured; did you mean shop/orders"):
        check([file_of(tmp_path, hpa(workload="order"))], with_fleet(fleet))


@pytest.mark.parametrize(
    "fleet",
    [
        pytest.param("source: kafka, groups: '.*', namespace: shop", id="groups of its namespace"),
        pytest.param(f"{SERIES}, namespace: shop", id="series of its namespace"),
        pytest.param(f"{SERIES}, namespace_label: namespace", id="series with a label for the namespace"),
        pytest.param("source: prometheus, preset: cadvisor", id="a preset with a label for the namespace"),
    ],
)
def test_a_workload_that_a_fleet_may_find_is_named(tmp_path: Path, fleet: str) -> None:
    found = check([file_of(tmp_path, hpa(workload="reports"))], with_fleet(fleet))
    assert found.endswith("; not configured, so only a fleet can find it: shop/reports")


def test_an_hpa_without_a_namespace_has_that_of_the_only_fleet(tmp_path: Path) -> None:
    bare = hpa(workload="reports")
    del bare["metadata"]["namespace"]
    found = check([file_of(tmp_path, bare)], with_fleet(f"{SERIES}, namespace: flink"))
    assert found.endswith("; not configured, so only a fleet can find it: flink/reports")


@pytest.mark.parametrize(
    ("scaled", "similar"),
    [
        pytest.param(["cart"], "shop/cart (did you mean shop/carts?)", id="a misspelt name, before another namespace"),
        pytest.param(["carts", "cart"], "shop/cart (did you mean eu/carts?)", id="a name without an HPA"),
        pytest.param(["orders", "order"], "shop/order", id="a name that has its HPA is not meant"),
    ],
)
def test_a_workload_that_a_fleet_may_find_has_the_similar_workload_without_an_hpa_beside_it(
    tmp_path: Path, scaled: list[str], similar: str
) -> None:
    file = file_of(tmp_path, *(hpa(name, name) for name in scaled))
    found = check([file], with_fleet(f"{SERIES}, namespace: shop"))
    assert found.endswith(f"; not configured, so only a fleet can find it: {similar}")


@pytest.mark.parametrize(
    "file", sorted(MANIFESTS.glob("[!k]*.yaml")) + sorted(MANIFESTS.glob("kafka*")), ids=lambda file: file.stem
)
def test_each_manifest_of_the_repository_is_valid(file: Path) -> None:
    assert check([file], with_fleet(SERIES)).startswith("1 HPA without a fault for 1 workload")


HELM = ": looks like a Helm template; render it with `helm template`, and check the result"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("a: [", "is not YAML: ", id="no YAML"),
        pytest.param("metadata: {name: {{ .Release.Name }}}", HELM, id="a value of Helm"),
        pytest.param("{{- if .Values.hpa }}\nkind: HorizontalPodAutoscaler\n{{- end }}", HELM, id="a block of Helm"),
        pytest.param(
            "{{ if .Values.hpa }}\n# an HPA\n\nkind: HorizontalPodAutoscaler",
            HELM,
            id="a block of Helm that keeps its line breaks",
        ),
        pytest.param(
            'summary: "{{ $labels.instance }}"\nspec:\n\tmaxReplicas: 4',
            " line 3 column 1: is not YAML: found character '\\t' that cannot start any token",
            id="a tab below a template of Prometheus",
        ),
        pytest.param(None, "cannot be read: No such file or directory", id="no file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, text: str | None, fault: str) -> None:
    file = tmp_path / "hpas.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        check([file], KNOWN)
    assert str(file) in refused.value.faults[0]
    assert fault in refused.value.faults[0]


HPA_TEXT = yaml.safe_dump(hpa())
OF_ALIAS = str(hpa()).replace("'metadata': {", "'metadata': {'labels': *d, ")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{HPA_TEXT}---\nkind: ConfigMap\nbinaryData: {{k: !!binary aGk=}}", id="binary data"),
        pytest.param(f"{HPA_TEXT}---\nkind: ConfigMap\ndata: {{k: v, <<: {{a: b}}}}", id="a late merge beside the HPA"),
        pytest.param(HPA_TEXT.replace("metadata:", "metadata:\n  annotations: {k: v, <<: {a: b}}"), id="a late merge"),
        pytest.param(
            f"{HPA_TEXT}---\nkind: Service\nspec: {{type: NodePort, type: ClusterIP}}", id="another key twice"
        ),
        pytest.param(f"items:\n- data: &d {{<<: {{a: b}}, a: c}}\n- {OF_ALIAS}", id="a merge of two items of a list"),
    ],
)
def test_yaml_that_kubernetes_accepts_is_no_fault(tmp_path: Path, text: str) -> None:
    (file := tmp_path / "hpas.yaml").write_text(text)
    assert check([file], KNOWN).startswith("1 HPA without a fault")


TWICE = str(hpa(workload="order")).replace("'maxReplicas'", "'maxReplicas': 4, 'maxReplicas'")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param(TWICE, "1 and 1", id="in a document"),
        pytest.param(f"{TWICE}\n---\nsummary: '{{{{ $labels.instance }}}}'", "1 and 1", id="beside one of Prometheus"),
        pytest.param(f"kind: List\nitems:\n- {TWICE}", "3 and 3", id="in a list"),
    ],
)
def test_a_key_that_an_hpa_sets_twice_hides_no_other_fault(tmp_path: Path, text: str, lines: str) -> None:
    (file := tmp_path / "hpas.yaml").write_text(text)
    with pytest.raises(ConfigError) as refused:
        check([file], KNOWN)
    assert refused.value.faults == (
        f"{file}: HPA shop/orders: spec.maxReplicas: is set twice, in lines {lines}; remove one",
        f"{file}: HPA shop/orders: shop/order is not configured; did you mean shop/orders?",
    )
