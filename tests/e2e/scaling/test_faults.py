"""Faults do not change replicas: an unknown count is reported as unknown."""

import math
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import pytest
from parts.adapter import ERROR_AFTER_S, NAMESPACE, RULES, TICK_S, Adapter
from parts.broker import Broker
from parts.controlplane import ControlPlane
from parts.kubelet import Kubelet
from parts.process import until
from parts.prometheus import Prometheus
from parts.workload import REPLICAS_FOR_300, Observation, Workload

from adapter.core.decisions import Reason


@pytest.fixture(scope="module")
def jobs(adapter: Adapter, broker: Broker, controlplane: ControlPlane, run: Path) -> Iterator[list[Workload]]:
    """Two steady workloads, one read from Kafka, one from Prometheus."""
    with ExitStack() as started:
        found = [
            started.enter_context(Workload(name, broker, controlplane, run / name)) for name in ("returns", "refunds")
        ]
        for job in found:
            job.load.set_rate(300)
        for job in found:
            wait_for_rest(job, adapter)
        yield found


def wait_for_rest(job: Workload, adapter: Adapter) -> None:
    """Returns when there is no backlog and no change was pending for a rate window.

    Otherwise a pending change could look like an effect of the fault. The scale-down window of these jobs is a day.
    """
    since_s = math.inf

    def rests(now: Observation) -> bool:
        nonlocal since_s
        decision = adapter.snapshot()[f"default/{job.name}"]
        wanted = decision.wanted_workers or math.inf
        steady = wanted <= now.replicas == decision.required_workers
        since_s = min(since_s, now.at_s) if steady else math.inf
        return now.at_s - since_s > RULES["rate_window_s"] and job.longest_backlog_time_s(0, 15) < 10

    job.watch(lambda now: now.replicas >= min(REPLICAS_FOR_300) and rests(now), 420, "the size is steady")


def is_active(job: Workload) -> bool:
    return job.condition("ScalingActive").get("status") == "True"


def without_numbers(message: str) -> str:
    """Two requests get different ages."""
    return re.sub(r"\d+(\.\d+)?", "#", message)


def test_replicas_freeze_while_the_sources_are_down_and_the_hpa_shows_why(
    jobs: list[Workload], adapter: Adapter, broker: Broker, prometheus: Prometheus
) -> None:
    before = {job.name: job.replicas() for job in jobs}
    pods = [adapter.pipeline(), *adapter.servers()]
    restarts = [pod.restarts for pod in pods]
    broker.stop()
    prometheus.stop()
    down_s = time.time()
    try:
        for job in jobs:
            until(lambda job=job: not is_active(job), 90, f"the HPA of {job.name} is not active", every_s=1.0)
            assert job.condition("ScalingActive")["reason"] == "FailedGetExternalMetric"
            until(lambda job=job: shows_why(job, adapter), 60, f"the HPA of {job.name} gives our message")
        until(lambda: time.time() - down_s > 60, 90, "a minute has passed", every_s=1.0)
        assert {job.name: job.replicas() for job in jobs} == before
    finally:
        broker.start()
        prometheus.start()
    for job in jobs:
        until(lambda job=job: is_active(job), 240, f"the HPA of {job.name} is active again", every_s=1.0)
    assert [adapter.pipeline(), *adapter.servers()] == pods
    assert [pod.restarts for pod in pods] == restarts


def shows_why(job: Workload, adapter: Adapter) -> bool:
    """Whether the HPA has the current message; the cause may change between two of its requests."""
    ours = adapter.message("required_workers", job.name)
    return job.name in ours and without_numbers(ours) in without_numbers(job.condition("ScalingActive")["message"])


def test_a_killed_pipeline_is_bridged_until_its_snapshot_is_stale_and_resumes_from_its_checkpoint(
    jobs: list[Workload], adapter: Adapter, kubelet: Kubelet
) -> None:
    job = jobs[0]
    wait_for_rest(job, adapter)
    before = until(lambda: adapter.number("required_workers", job.name), 60, "a number is served")
    pipeline = adapter.pipeline()
    restarts = pipeline.restarts
    until(lambda: 0.1 < time.time() % TICK_S < 0.6, 4 * TICK_S, "a tick has begun", every_s=0.05)
    with kubelet.killed(pipeline):
        served_age_s, refused_age_s = ages_of_the_last_decision(adapter, job.name)
        assert served_age_s < ERROR_AFTER_S + 1  # its timestamp has whole seconds
        # The sample is older than its decision, and the other server may hold the decision of the tick before.
        assert refused_age_s > ERROR_AFTER_S - 3 * TICK_S
        message = "the pipeline published nothing for"
        until(lambda: message in adapter.message("required_workers", job.name), 30, message)

    decided = until(lambda: adapter.snapshot()[f"default/{job.name}"], 360, "the pipeline publishes again")
    assert decided.reason is not Reason.NO_DATA, decided  # as it would be without the checkpoint
    after = until(lambda: adapter.number("required_workers", job.name), 360, "a number is served again")
    assert (after, pipeline.restarts) == (before, restarts + 1)
    assert adapter.pipeline() == pipeline


def ages_of_the_last_decision(adapter: Adapter, name: str) -> tuple[float, float]:
    """Its age in the last request that got a number, and in the first that got none."""
    served_s = decided_s = math.nan

    def is_refused() -> bool:
        nonlocal served_s, decided_s
        requested_s = time.time()
        answer = adapter.read("required_workers", name)
        if answer.is_success:
            timestamp = answer.json()["items"][0]["timestamp"]
            served_s, decided_s = requested_s, datetime.fromisoformat(timestamp).timestamp()
        return answer.status_code == 503

    until(is_refused, ERROR_AFTER_S + 60, "the number is refused", every_s=0.5)
    return served_s - decided_s, time.time() - decided_s


def test_one_of_two_servers_is_killed_and_the_other_answers(
    jobs: list[Workload], adapter: Adapter, controlplane: ControlPlane, kubelet: Kubelet
) -> None:
    until(lambda: is_active(jobs[0]), 120, "the HPA has a number")  # the test before froze it
    victim, survivor = adapter.servers()
    restarts = victim.restarts
    path = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
    selector = "kubernetes.io/service-name=backlog-adapter"

    def addresses() -> list[str]:
        slices = controlplane.api.get(path, labelSelector=selector)["items"]
        points = [point for item in slices for point in item["endpoints"] if point["conditions"]["ready"]]
        return [address for point in points for address in point["addresses"]]

    def answers(count: int) -> list[int]:
        return [adapter.read("required_workers", jobs[0].name).status_code for _ in range(count)]

    with kubelet.killed(victim):
        until(lambda: addresses() == [survivor.ip], 60, "the Service has only the other server")
        until(lambda: answers(10) == [200] * 10, 60, "kube-apiserver sends requests to it alone")
        assert answers(40) == [200] * 40
        until(lambda: is_active(jobs[0]), 60, "the HPA has a number")
    until(lambda: victim.restarts == restarts + 1 and len(addresses()) == 2, 120, "both servers are ready")
