"""HPAs with Object metrics, and the message of an HPA without a number."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parts.adapter import Adapter
from parts.broker import Broker
from parts.controlplane import ControlPlane
from parts.process import until
from parts.scale_target import autoscaler, workload_resource
from parts.service import CUSTOM, EXTERNAL
from parts.workload import REPLICAS_FOR_300, Workload

DEPLOYMENTS = "namespaces/default/deployments.apps"


@pytest.fixture(scope="module")
def job(adapter: Adapter, broker: Broker, controlplane: ControlPlane, run: Path) -> Iterator[Workload]:
    """A workload with 300 records/s, scaled by an Object metric."""
    with Workload("invoices", broker, controlplane, run / "invoices", "object.yaml") as job:
        job.load.set_rate(300)
        until(lambda: adapter.number("required_workers", "invoices"), 300, "required_workers has a number")
        yield job


def test_the_hpa_follows_a_metric_of_its_deployment(job: Workload) -> None:
    job.watch(lambda now: now.replicas in REPLICAS_FOR_300, 300, "two to four workers for 300 records/s")
    # The HPA writes its status and its event after the change.
    until(lambda: names(job, "object") == ["required_workers"], 60, "the status of the HPA has the metric")
    until(job.rescales, 60, "the HPA has an event of the size")
    assert job.replica_owners() == {("kube-controller-manager", "scale")}


@pytest.mark.parametrize("version", CUSTOM)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param("invoices/required_workers", id="of an object"),
        pytest.param("*/backlog?labelSelector=workload%3Dinvoices", id="of selected objects"),
    ],
)
def test_kubectl_reads_a_metric_of_objects(version: str, path: str, job: Workload, controlplane: ControlPlane) -> None:
    answer = json.loads(controlplane.kubectl("get", "--raw", f"/apis/{version}/{DEPLOYMENTS}/{path}"))
    assert (answer["kind"], answer["apiVersion"]) == ("MetricValueList", version)
    assert [described(item) for item in answer["items"]] == [("Deployment", "invoices")]


def described(item: dict[str, Any]) -> tuple[str, str]:
    return item["describedObject"]["kind"], item["describedObject"]["name"]


def test_the_hpa_follows_two_ratios(job: Workload) -> None:
    job.scale_with("flink-two-ratios.yaml")
    until(lambda: set(names(job, "object")) == {"utilization", "relative_lag_change"}, 120, "the HPA reads both")
    job.load.set_rate(1000)  # four workers carry 800
    job.watch(lambda now: now.replicas > max(REPLICAS_FOR_300), 240, "more workers than 300 records/s need")
    until(lambda: any("Deployment metric" in each for each in job.rescale_events()), 60, "a ratio caused an event")


def names(job: Workload, kind: str) -> list[str]:
    """The current metrics of the HPA. LookupError if one is of another kind."""
    return [each[kind]["metric"]["name"] for each in job.current_metrics()]


@pytest.mark.parametrize(
    ("hpa", "reason", "path"),
    [
        pytest.param(
            "kafka-consumer.yaml",
            "FailedGetExternalMetric",
            f"{EXTERNAL}/namespaces/default/required_workers?labelSelector=workload%3Dparcels",
            id="external",
        ),
        pytest.param(
            "object.yaml",
            "FailedGetObjectMetric",
            f"{CUSTOM[1]}/namespaces/default/deployments.apps/parcels/required_workers",
            id="of an object",
        ),
    ],
)
def test_kubectl_describe_shows_our_message_when_an_hpa_has_no_number(
    hpa: str, reason: str, path: str, adapter: Adapter, controlplane: ControlPlane
) -> None:
    def message() -> str:
        answer = controlplane.api.raw(f"/apis/{path}")
        assert answer.status_code == 503
        return str(answer.json()["message"])

    assert message().startswith("no required_workers for default/parcels (NoDataYet): ")
    idle = {"command": ["sleep", "900"]}
    controlplane.apply(workload_resource("parcels", idle, replicas=1), autoscaler(hpa, "parcels"))
    try:
        shown = until(lambda: described_as(controlplane, "parcels", reason, message()), 120, f"{reason} is shown")
        assert "parcels (NoDataYet): " in shown
    finally:
        controlplane.kubectl("delete", "hpa,deployment", "parcels")


def described_as(plane: ControlPlane, name: str, reason: str, message: str) -> str:
    """The output of `kubectl describe`, empty until it has the reason and the message."""
    shown = plane.kubectl("describe", "hpa", name)
    return shown if reason in shown and f": {message}\n" in shown else ""
