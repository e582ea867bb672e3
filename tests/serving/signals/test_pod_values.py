"""Ratios as metrics of pods: what an HPA's average over pods needs."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from serving_builders import AT_S, entry
from signal_builders import Cluster, code, message, objects, pod, readings, with_pods

from adapter.errors import SourceError
from adapter.serving.api.custom import EVERY_NAME, ObjectQuestion, ObjectValue
from adapter.serving.api.request import MustWait
from adapter.serving.api.selectors import parse
from adapter.serving.signals.metrics import METRICS
from adapter.serving.signals.pods import KEPT_S, MOST_KEPT, MOST_KEPT_PODS, Pod, pods_of

THREE = (pod("orders-5d8f-a"), pod("orders-5d8f-b"), pod("orders-77c2-c", "ReplicaSet/orders-77c2", "77c2"))


def question(
    metric: str = "utilization",
    name: str = EVERY_NAME,
    selector: str = "app=orders",
    metric_selector: str = "",
    *,
    patient: bool = True,
) -> ObjectQuestion:
    return ObjectQuestion("shop", "pods", name, metric, parse(selector), parse(metric_selector), patient)


def test_s1_15_case_66_every_pod_has_the_ratio_of_its_workload() -> None:
    """An HPA takes a pod without an item for one it knows nothing of; so each has one, also during a roll-out."""
    values = with_pods(readings(), Cluster(*THREE).read).read(question())
    assert values == [
        ObjectValue("Pod", "/v1", "shop", name, "900m", AT_S, 60)
        for name in ("orders-5d8f-a", "orders-5d8f-b", "orders-77c2-c")
    ]


def test_pods_are_looked_up_as_the_hpa_selects_them_without_those_it_leaves_out() -> None:
    cluster = Cluster(*THREE)
    with_pods(readings(), cluster.read).read(question(selector="tier in (a,b),app=orders,!canary"))
    assert cluster.asked == [
        "/api/v1/namespaces/shop/pods?resourceVersion=0"
        "&fieldSelector=status.phase%21%3DFailed%2Cstatus.phase%21%3DSucceeded"
        "&labelSelector=app%3Dorders%2C%21canary%2Ctier+in+%28a%2Cb%29"
    ]


def test_case_67_one_pod_is_looked_up_by_its_name() -> None:
    cluster = Cluster(pod("orders-5d8f-a"))
    (value,) = with_pods(readings(), cluster.read).read(question(name="orders-5d8f-a", selector=""))
    assert (value.name, value.value) == ("orders-5d8f-a", "900m")
    assert "metadata.name%3Dorders-5d8f-a" in cluster.asked[0]
    assert "labelSelector" not in cluster.asked[0]


def test_a_name_is_a_value_of_the_field_selector_and_nothing_more() -> None:
    cluster = Cluster()
    objects(with_pods(readings(), cluster.read), question(name="a,metadata.name!=b", selector=""))
    assert "metadata.name%3Da%5C%2Cmetadata.name%21%5C%3Db" in cluster.asked[0]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(pod("a", "ReplicaSet/orders-5d8f", "5d8f"), [Pod("a", "orders")], id="of a Deployment"),
        pytest.param(pod("a", "ReplicaSet/orders", ""), [Pod("a", "orders")], id="of a ReplicaSet alone"),
        pytest.param(pod("a", "ReplicaSet/orders-5d8f", "ffff"), [Pod("a", "orders-5d8f")], id="of another hash"),
        pytest.param(pod("a", "StatefulSet/orders", ""), [Pod("a", "orders")], id="of a StatefulSet"),
        pytest.param(pod("a", "Deployment/orders", ""), [Pod("a", "orders")], id="of a Flink cluster"),
        pytest.param(pod("a", "", ""), [Pod("a", "")], id="of nobody"),
        pytest.param(pod("a", deletionTimestamp="2026-01-02T03:04:05Z"), [], id="being deleted"),
        pytest.param({"metadata": {"name": "a"}}, [Pod("a", "")], id="with nothing but a name"),
        pytest.param(
            {"metadata": {"name": "a", "ownerReferences": [{"kind": "Job", "name": "x"}]}},
            [Pod("a", "")],
            id="whose owner does not control it",
        ),
    ],
)
def test_a_pod_is_of_what_makes_its_like(item: dict[str, object], expected: list[Pod]) -> None:
    assert pods_of(json.dumps({"items": [item]}).encode()) == expected


def test_no_list_is_an_empty_one() -> None:
    assert list(pods_of(b'{"items":null}')) == []


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'{"items":[{}]}', b'{"items":[{"metadata":{"name":"\xff"}}]}', b"[" * 100_000],
    ids=["nothing", "HTML", "a list", "no metadata", "no UTF-8", "deep"],
)
def test_what_is_no_list_of_pods_is_a_503(body: bytes) -> None:
    given = objects(with_pods(readings(), lambda *_: (200, body)), question())
    assert code(given) == 503
    assert message(given).startswith("the pods cannot be listed: expected a list of pods in JSON: ")


def test_metadata_alone_is_asked_for_and_what_cannot_give_it_may_send_all() -> None:
    cluster = Cluster(*THREE)
    with_pods(readings(), cluster.read).read(question())
    assert cluster.accepted == ["application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"]


@pytest.mark.parametrize(
    ("owners", "asked", "expected"),
    [
        pytest.param(["StatefulSet/payments"], question(), "250m", id="by what runs the pods"),
        pytest.param(["ReplicaSet/other"], question(metric_selector="workload=payments"), "250m", id="by the metric"),
        pytest.param(["ReplicaSet/other"], question(selector="workload=payments"), "250m", id="by the pods' selector"),
        pytest.param(
            ["StatefulSet/orders"], question(selector="workload=payments"), "900m", id="what runs them comes first"
        ),
        pytest.param(
            ["StatefulSet/orders"],
            question(metric_selector="workload=payments"),
            "250m",
            id="the metric comes before it",
        ),
        pytest.param(["StatefulSet/orders", "StatefulSet/other"], question(), "900m", id="one of them is a workload"),
        pytest.param([""], question(selector="workload=orders"), "900m", id="pods that nothing runs"),
    ],
)
def test_whose_pods_they_are(owners: list[str], asked: ObjectQuestion, expected: str) -> None:
    pods = [pod(f"pod-{n}", owner, "") for n, owner in enumerate(owners)]
    values = with_pods(readings(), Cluster(*pods).read).read(asked)
    assert [value.value for value in values] == [expected] * len(owners)


@pytest.mark.parametrize(
    ("pods", "asked", "expected_code", "said"),
    [
        pytest.param(
            [],
            question(),
            404,
            "the server could not find the metric utilization for pods: no pod with app=orders runs in namespace shop; "
            "an HPA asks for the pods of its scale target",
            id="no pods",
        ),
        pytest.param([], question(selector=""), 404, "no pod at all runs in", id="no pods at all"),
        pytest.param([], question(name="x"), 404, "no pod of the name x runs in namespace shop", id="no such pod"),
        pytest.param(
            [pod("a", "StatefulSet/orders", ""), pod("b", "StatefulSet/payments", "")],
            question(),
            400,
            "the pods are of 2 workloads, orders, payments: name one in the metric's selector, for example "
            "workload=orders",
            id="case 51: of two workloads",
        ),
        pytest.param(
            [pod("a", "StatefulSet/order", "")],
            question(),
            404,
            "workload=order matches nothing in namespace shop; nearest is orders; pods stand for the workload of the "
            "name of what runs them: name another in the metric's selector",
            id="of no workload",
        ),
        pytest.param(
            [pod("a")],
            question("backlog"),
            400,
            "backlog is a number of the whole workload, and an HPA would average it over pods: ask for it as an "
            "External or Object metric; of pods there are relative_lag_change and utilization",
            id="a sum",
        ),
        pytest.param(
            [pod("a")], question("utilisation"), 404, "nearest is utilization", id="case 36: an unknown metric"
        ),
        pytest.param(
            [pod("a")], question("relative_lag_change"), 503, "no relative_lag_change for shop/orders", id="no number"
        ),
    ],
)
def test_what_is_not_there_is_said_with_its_fix(
    pods: list[dict[str, object]], asked: ObjectQuestion, expected_code: int, said: str
) -> None:
    given = objects(with_pods(readings(), Cluster(*pods).read), asked)
    assert code(given) == expected_code
    assert said in message(given)


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_only_what_an_average_leaves_as_it_is_is_served(metric: str) -> None:
    given = objects(with_pods(readings(), Cluster(*THREE).read), question(metric))
    assert (code(given) == 400) is (metric not in ("utilization", "relative_lag_change"))


def test_a_cluster_that_cannot_be_reached_is_a_503_that_says_so() -> None:
    cluster = Cluster()
    cluster.fault = SourceError("kubernetes", "timed out")
    given = objects(with_pods(readings(), cluster.read), question())
    assert code(given) == 503
    assert message(given) == "the pods cannot be listed: kubernetes: timed out"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (500, "the cluster answers 500"),
        (
            403,
            "the cluster answers 403; this server's account needs the right to list pods, which the chart gives with "
            "apiService.custom.pods",
        ),
    ],
)
def test_a_cluster_that_does_not_tell_its_pods_is_a_503_with_the_fix(status: int, said: str) -> None:
    cluster = Cluster(*THREE)
    cluster.status = status
    given = objects(with_pods(readings(), cluster.read), question())
    assert code(given) == 503
    assert message(given) == f"the pods cannot be listed: {said}"


def test_pods_of_a_namespace_without_workloads_are_nobodys_business() -> None:
    cluster = Cluster(*THREE)
    asked = ObjectQuestion("kube-system", "pods", EVERY_NAME, "utilization")
    assert code(objects(with_pods(readings(), cluster.read), asked)) == 404
    assert cluster.asked == []


def test_case_50_pods_are_not_looked_up_for_numbers_that_are_too_old() -> None:
    cluster = Cluster(*THREE)
    assert code(objects(with_pods(readings(age_s=181.0), cluster.read), question())) == 503
    assert cluster.asked == []


def test_the_two_metrics_of_an_hpa_cost_one_look_at_the_pods() -> None:
    cluster, now_s = Cluster(*THREE), [AT_S]
    signals = with_pods(readings(entry(utilization_ratio=0.5, relative_lag_change_ratio=1.5)), cluster.read, now_s)
    signals.read(question())
    now_s[0] += KEPT_S - 0.1
    assert {value.value for value in signals.read(question("relative_lag_change"))} == {"1500m"}
    assert len(cluster.asked) == 1


@pytest.mark.parametrize("later_s", [KEPT_S, -1.0], ids=["after a few seconds", "by a clock that was set back"])
def test_pods_are_not_remembered_for_long(later_s: float) -> None:
    cluster, now_s = Cluster(*THREE), [AT_S]
    signals = with_pods(readings(), cluster.read, now_s)
    signals.read(question())
    now_s[0] += later_s
    cluster.pods = cluster.pods[:1]
    assert len(signals.read(question())) == 1


def test_who_may_not_wait_gets_what_is_remembered_and_else_has_to_wait() -> None:
    cluster, now_s = Cluster(*THREE), [AT_S]
    signals = with_pods(readings(), cluster.read, now_s)
    with pytest.raises(MustWait):
        signals.read(question(patient=False))
    assert cluster.asked == []
    signals.read(question())
    assert len(signals.read(question(patient=False))) == 3


def test_a_failure_is_not_remembered() -> None:
    cluster = Cluster(*THREE)
    signals = with_pods(readings(), cluster.read)
    cluster.fault = SourceError("kubernetes", "timed out")
    assert code(objects(signals, question())) == 503
    cluster.fault = None
    assert code(objects(signals, question())) == 200


def test_only_so_many_lists_are_remembered() -> None:
    cluster = Cluster(pod("a"))
    signals = with_pods(readings(), cluster.read)
    for number in range(MOST_KEPT):
        signals.read(question(selector=f"app=n{number}"))
    signals.read(question(selector="app=n0"))
    assert len(cluster.asked) == MOST_KEPT
    signals.read(question(selector="app=one-more"))
    signals.read(question(selector="app=n0"))
    assert len(cluster.asked) == MOST_KEPT + 2


def test_only_so_many_pods_are_remembered() -> None:
    cluster = Cluster(*(pod(f"pod-{n}") for n in range(MOST_KEPT_PODS // 4)))
    signals = with_pods(readings(), cluster.read)
    for label in "abcde":
        signals.read(question(selector=f"app={label}"))
    signals.read(question(selector="app=e"))
    assert len(cluster.asked) == 5
    signals.read(question(selector="app=a"))
    assert len(cluster.asked) == 6


def test_lists_are_kept_by_many_threads_at_once() -> None:
    cluster = Cluster(pod("orders-a"))
    signals = with_pods(readings(), cluster.read)

    def ask(thread: int) -> list[int]:
        return [code(objects(signals, question(selector=f"app=t{thread}n{n}"))) for n in range(150)]

    with ThreadPoolExecutor(8) as threads:
        codes = {found for answers in threads.map(ask, range(8)) for found in answers}
    assert codes == {200}
