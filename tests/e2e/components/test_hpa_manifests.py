"""Each manifest of hpa/, applied as it is, moves its target up and down with the numbers that `serve` answers.

A namespace for each manifest, one control plane and one `serve` for all. Snapshots come from the test, and pods and the
Flink operator are stand-ins: only numbers of replicas matter here. The closed loop with real consumers is in scaling/.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from parts.certificates import Authority
from parts.controlplane import Api, ControlPlane
from parts.process import HOST, NotReadyError, Process, free_port, until
from parts.service import VERSIONS, api_service_at
from parts.snapshot_server import snapshot_server
from parts.standins import FLINK_CRD, StandIns, scale_target

from adapter.config import KubernetesSource
from adapter.sources.kubernetes import KubernetesReader
from adapter.sources.sample_table import FAULT

ROOT = Path(__file__).parents[3]
MANIFESTS = {path.stem: path for path in sorted((ROOT / "hpa").glob("*.yaml")) if path.stem != "keda-scaledobject"}
SERVE = str(Path(sys.executable).parent / "backlog-adapter")
START, UP, DOWN = 2, 4, 3
BRAKE = "kafka-consumer-brake"
LONGEST_WINDOW_S = 10  # before a scale-down; the windows themselves are the controller's, see test_hpa_path.py
PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "FlinkDeployment": "flinkdeployments"}


@dataclass
class Job:
    """One manifest, its workload, and the numbers that the test serves for it."""

    namespace: str  # the stem of the manifest's file
    hpa: dict[str, Any]
    api: Api
    needed: int = START  # replicas
    lag_changes: bool = False  # the job is short of replicas because its backlog grows, not because it is busy
    backlog_time_s: float | None = 0.0

    @property
    def workload(self) -> str:
        """The name that the adapter knows, see tests/deploy/test_hpa_manifest.py."""
        metric = next(iter(self.hpa["spec"]["metrics"]))
        identifier = metric[metric["type"].lower()]["metric"]
        selected = identifier.get("selector", {}).get("matchLabels", {}).get("workload")
        return f"{self.namespace}/{selected or self.hpa['metadata']['name']}"

    @property
    def target(self) -> str:
        """The API path of the scale target."""
        target = self.hpa["spec"]["scaleTargetRef"]
        return f"/apis/{target['apiVersion']}/namespaces/{self.namespace}/{PLURALS[target['kind']]}/{target['name']}"

    def replicas(self) -> int:
        """The replicas that the HPA requested."""
        scale = self.api.get(f"{self.target}/scale")
        return int(scale["spec"]["replicas"])

    def status(self) -> dict[str, Any]:
        """The status of the HPA; empty before its first sync."""
        path = f"/apis/autoscaling/v2/namespaces/{self.namespace}/horizontalpodautoscalers"
        found: dict[str, Any] = self.api.get(f"{path}/{self.hpa['metadata']['name']}").get("status", {})
        return found

    def numbers(self) -> dict[str, float]:
        """The decision for `needed` replicas. The ratios are those of a job that half a replica would relieve."""
        ratio = (self.needed - 0.5) / max(self.replicas(), 1)
        backlog = {} if self.backlog_time_s is None else {"backlog_time_s": self.backlog_time_s}
        return {
            "required_workers": float(self.needed),
            "partitions": float(self.needed),
            "utilization_ratio": 0.35 if self.lag_changes else 0.7 * ratio,
            "relative_lag_change_ratio": ratio if self.lag_changes else 0.0,
            **backlog,
        }


@dataclass
class Recording:
    """All jobs, and where the replicas of each were at the end of each step: (requested, desired by the HPA)."""

    jobs: dict[str, Job]
    plane: ControlPlane
    replicas_by_step: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)

    def step(self, name: str, needed: int, *, lag_changes: bool = False) -> None:
        """Serves another need to every HPA and waits for all. A job that does not follow fails in its own test."""
        for job in self.jobs.values():
            job.needed, job.lag_changes = needed, lag_changes
        with suppress(NotReadyError):
            until(lambda: all(_seen(job) == (needed, needed) for job in self.jobs.values()), 300, name, every_s=1.0)
        self.replicas_by_step[name] = {key: _seen(job) for key, job in self.jobs.items()}


def _seen(job: Job) -> tuple[int, int]:
    return job.replicas(), job.status().get("desiredReplicas", 0)


@pytest.fixture(scope="module")
def recording(run: Path) -> Iterator[Recording]:
    """Every manifest, after the need went from START up to UP and down to DOWN."""
    folder = run / "hpa-manifests"
    with ExitStack() as started:
        plane = started.enter_context(ControlPlane(folder))
        plane.kubectl("apply", "--filename", str(FLINK_CRD))
        jobs = {name: Job(name, yaml.safe_load(path.read_text()), plane.api) for name, path in MANIFESTS.items()}
        until(lambda: plane.api.raw("/apis/flink.apache.org/v1beta1").is_success, 60, "FlinkDeployments exist")
        _create_targets(plane, jobs)
        started.enter_context(StandIns(plane.api))
        url = started.enter_context(snapshot_server(lambda: {job.workload: job.numbers() for job in jobs.values()}))
        _serve(started, plane, folder, url)
        found = Recording(jobs, plane)
        for name, path in MANIFESTS.items():
            plane.kubectl("apply", "--namespace", name, "--filename", str(path))
        found.step("start", START)
        found.step("up", UP, lag_changes=True)
        for job in jobs.values():
            _shorten_window(plane, job)
        found.step("down", DOWN)
        yield found


def _create_targets(plane: ControlPlane, jobs: Mapping[str, Job]) -> None:
    for job in jobs.values():
        plane.kubectl("create", "namespace", job.namespace)
        target = job.hpa["spec"]["scaleTargetRef"]
        created = scale_target(target["kind"], target["name"], START)
        created["metadata"]["namespace"] = job.namespace
        plane.apply(created)


def _serve(started: ExitStack, plane: ControlPlane, folder: Path, snapshot_url: str) -> None:
    """One server outside the pods, as the owner of the metrics APIs."""
    port = free_port()
    certificate, key = Authority(folder, "serve-ca").issue("serve", addresses=(HOST,))
    serving = {
        "host": HOST, "port": port, "metrics_port": free_port(), "cert_file": str(certificate), "key_file": str(key),
        "kubeconfig": str(plane.admin.kubeconfig), "snapshot_url": snapshot_url,
    }  # fmt: skip
    config = {"sources": {"cluster": {"kind": "kubernetes"}}, "pipeline": {"checkpoint": "none"}, "serving": serving}
    (folder / "serve.yaml").write_text(yaml.safe_dump(config))
    started.enter_context(Process("serve", [SERVE, "serve", "--config", "serve.yaml"], folder))
    for version in VERSIONS:
        plane.apply(*api_service_at(port, version, "serve"))
    for version in VERSIONS:
        until(lambda version=version: plane.api.raw(f"/apis/{version}").is_success, 120, f"{version} is served")


def _shorten_window(plane: ControlPlane, job: Job) -> None:
    window_s = job.hpa["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"]
    if window_s > LONGEST_WINDOW_S:
        patch = {"spec": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": LONGEST_WINDOW_S}}}}
        name = job.hpa["metadata"]["name"]
        plane.kubectl("patch", "hpa", name, "--namespace", job.namespace, "--type=merge", "-p", yaml.safe_dump(patch))


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_scales_its_target_up_and_down_with_the_served_number(name: str, recording: Recording) -> None:
    steps = {step: found[name] for step, found in recording.replicas_by_step.items()}
    conditions = recording.jobs[name].status().get("conditions")
    assert steps == {"start": (START, START), "up": (UP, UP), "down": (DOWN, DOWN)}, conditions


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_adapter_reads_the_workers_and_the_limits_of_each_manifest(name: str, recording: Recording) -> None:
    job = recording.jobs[name]
    settings = KubernetesSource(kind="kubernetes", kubeconfig=str(recording.plane.admin.kubeconfig))
    reader = KubernetesReader("cluster", settings, clock=lambda: 15.0)
    rows = [row for row in reader.samples(0, 15, 15).to_pylist() if row["workload"] == job.workload]
    reader.close()
    found = {row["signal"]: row["text"] or row["value"] for row in rows}
    spec = job.hpa["spec"]
    counts = {"min_workers": spec["minReplicas"], "max_workers": spec["maxReplicas"], "spec_workers": DOWN}
    assert {signal: found.get(signal) for signal in counts} == counts
    assert found.get("workers") == job.replicas()
    assert FAULT not in found


def test_the_brake_adds_workers_while_the_job_is_late_and_then_lets_go(recording: Recording) -> None:
    job = recording.jobs[BRAKE]
    job.backlog_time_s = 1200.0  # twice its target
    try:
        until(lambda: job.replicas() > DOWN, 60, "the brake adds workers")
    finally:
        job.backlog_time_s = 0.0
    until(lambda: job.replicas() == DOWN, 120, "required_workers decides again")


def test_without_a_backlog_time_the_hpa_with_the_brake_scales_up_and_never_down(recording: Recording) -> None:
    job = recording.jobs[BRAKE]
    job.needed, job.backlog_time_s = DOWN + 1, None
    try:
        until(lambda: job.replicas() == DOWN + 1, 60, "required_workers scales up")
        job.needed = START

        def shown() -> str:
            return str(next(each for each in job.status()["conditions"] if each["type"] == "ScalingActive"))

        until(lambda: "no backlog_time_seconds for" in shown(), 60, "the HPA shows why it does not scale down")
        assert job.replicas() == DOWN + 1
    finally:
        job.needed, job.backlog_time_s = DOWN, 0.0
