"""KEDA owns external.metrics.k8s.io and scales a Deployment by our number (hpa/keda-scaledobject.yaml)."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from parts.adapter import NAME, Adapter, Systems, values
from parts.controlplane import HPA_SYNC_S, ControlPlane
from parts.direct import PORT
from parts.keda import TOOL, Keda
from parts.kubelet import Kubelet
from parts.pravega import Pravega
from parts.process import until
from parts.scale_target import MANIFESTS, autoscaler, workload_resource
from parts.service import CUSTOM
from tool_cache import need

from adapter.core.decisions import Decision

pytestmark = pytest.mark.full
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/clicks"
HPA = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/keda-hpa-clicks"
FALLBACK = 6
# More than the other tests need: an HPA of KEDA waits five minutes before it scales down.
KEDA_REPLICAS = 8
# All year but for its last minute.
ALWAYS = {"timezone": "UTC", "start": "0 0 1 1 *", "end": "59 23 31 12 *", "desiredReplicas": str(KEDA_REPLICAS)}
# A ScaledObject that knows nothing of the adapter.
KEDA_ALONE: dict[str, Any] = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": "clicks"},
    "spec": {
        "scaleTargetRef": {"name": "clicks"},
        "minReplicaCount": 1,
        "maxReplicaCount": 12,
        "triggers": [{"type": "cron", "metadata": ALWAYS}],
    },
}


@pytest.fixture(scope="module")
def adapter(run: Path, controlplane: ControlPlane, kubelet: Kubelet, pravega: Pravega) -> Adapter:
    """The chart beside KEDA, without the APIService of external.metrics.k8s.io."""
    need(TOOL, "make tools-all")
    adapter = Adapter(controlplane, kubelet, run / "adapter")
    switches = {"external": {"create": False}, "custom": {"create": True}}
    adapter.install(values(Systems(pravega=pravega)) | {"apiService": switches}, CUSTOM)
    return adapter


@pytest.fixture(scope="module")
def keda(run: Path, controlplane: ControlPlane, adapter: Adapter) -> Iterator[Keda]:
    ca = adapter.secret(f"{NAME}-tls")["ca.crt"]
    with Keda(controlplane, run / "keda", adapter.pipeline().hosts, ca) as keda:
        yield keda


@pytest.fixture(scope="module")
def scaled(controlplane: ControlPlane, keda: Keda, pravega: Pravega) -> Iterator[None]:
    """KEDA scales a Deployment to the segments of a stream."""
    pravega.create_stream("shop", "clicks", 2)
    controlplane.apply(workload_resource("clicks", {"command": ["sleep", "1800"]}), *_manifest())
    yield
    controlplane.kubectl("delete", "scaledobject,hpa,deployment", "clicks", "--ignore-not-found", "--timeout=60s")


def _manifest() -> Iterator[dict[str, Any]]:
    """The manifest for this workload, with the port of the pods because Services do not translate ports here."""
    text = (
        (MANIFESTS / "keda-scaledobject.yaml").read_text().replace("orders", "clicks").replace(".svc/", f".svc:{PORT}/")
    )
    yield from yaml.safe_load_all(text)


def _replicas(plane: ControlPlane) -> int:
    replicas: int = plane.api.get(DEPLOYMENT)["spec"]["replicas"]
    return replicas


def _scaling_active(plane: ControlPlane) -> str:
    conditions = plane.api.get(HPA)["status"].get("conditions", [])
    return next((each["status"] for each in conditions if each["type"] == "ScalingActive"), "")


def test_keda_scales_the_deployment_to_required_workers(
    scaled: None, pravega: Pravega, controlplane: ControlPlane
) -> None:
    for segments in (2, 4):
        pravega.scale("shop", "clicks", segments)
        until(lambda wanted=segments: _replicas(controlplane) == wanted, 240, f"{segments} replicas")
    assert _scaling_active(controlplane) == "True"


def test_a_503_freezes_the_replicas_or_triggers_the_fallback(
    scaled: None, adapter: Adapter, kubelet: Kubelet, controlplane: ControlPlane
) -> None:
    before = _replicas(controlplane)
    seen = [before]

    def replicas() -> int:
        seen.append(_replicas(controlplane))
        return seen[-1]

    with kubelet.killed(adapter.pipeline()):
        until(lambda: _scaling_active(controlplane) == "False", 120, "KEDA has no number")
        end_s = time.monotonic() + 4 * HPA_SYNC_S
        while time.monotonic() < end_s:
            assert replicas() == before
            time.sleep(1)

        fallback = {"failureThreshold": 2, "replicas": FALLBACK}
        patch = yaml.safe_dump({"spec": {"fallback": fallback}})
        controlplane.kubectl("patch", "scaledobject", "clicks", "--type=merge", f"--patch={patch}")
        until(lambda: replicas() == FALLBACK, 120, "the fallback sets the replicas")
    until(lambda: replicas() == before, 360, "KEDA has a number again")
    assert 0 not in seen


# The steps of docs/coexistence.md, "From KEDA's scaler or Flink's autoscaler".
def test_an_hpa_replaces_the_scaled_object_and_keda_takes_the_job_back(
    scaled: None, pravega: Pravega, controlplane: ControlPlane
) -> None:
    before = _replicas(controlplane)
    controlplane.kubectl("delete", "scaledobject", "clicks", "--timeout=60s")
    until(lambda: not _keda_has_an_hpa(controlplane), 60, "KEDA deletes its HPA")
    assert _replicas(controlplane) == before

    controlplane.apply(autoscaler("object.yaml", "clicks"))
    pravega.scale("shop", "clicks", before + 1)
    until(lambda: _replicas(controlplane) == before + 1, 240, "the HPA follows the segments")

    controlplane.kubectl("delete", "hpa", "clicks", "--timeout=60s")
    controlplane.apply(KEDA_ALONE)
    until(lambda: _replicas(controlplane) == KEDA_REPLICAS, 240, "KEDA sets the replicas")


def test_an_annotation_lets_the_adapter_watch_what_keda_scales(
    scaled: None, adapter: Adapter, controlplane: ControlPlane
) -> None:
    controlplane.apply(KEDA_ALONE)
    until(lambda: _keda_has_an_hpa(controlplane), 60, "KEDA has an HPA")
    for watched in ("scaledobject/clicks", "hpa/keda-hpa-clicks"):
        controlplane.kubectl("annotate", "--overwrite", watched, "backlog-adapter/workload=clicks")

    def decision() -> Decision:
        return adapter.snapshot()["default/clicks"]

    until(lambda: decision().spec_workers == KEDA_REPLICAS, 240, "the adapter reads the workers from KEDA's HPA")
    assert decision().max_by_default == 0, "the adapter reads the limits, too"
    assert _replicas(controlplane) == KEDA_REPLICAS


def _keda_has_an_hpa(plane: ControlPlane) -> bool:
    return "keda-hpa-clicks" in plane.kubectl("get", "hpa", "--output=name")
