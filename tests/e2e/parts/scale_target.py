"""A Deployment or StatefulSet, and the HPA that scales it."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

from parts.controlplane import ControlPlane
from parts.process import Part, until

MANIFESTS = Path(__file__).parents[3] / "hpa"
# Names in the manifests; one that another begins with comes after it.
_EXAMPLES = ("orders", "clicks", "invoices", "audit-reader", "audit", "flink-taskmanager", "spark-worker")


def autoscaler(hpa: str, name: str) -> dict[str, Any]:
    """A manifest of hpa/ with the name of this workload."""
    text = (MANIFESTS / hpa).read_text()
    for example in _EXAMPLES:
        text = text.replace(f": {example}", f": {name}")
    manifest: dict[str, Any] = yaml.safe_load(text)
    return manifest


def workload_resource(
    name: str, container: dict[str, Any], *, replicas: int | None = None, kind: str = "Deployment", **pod: Any
) -> dict[str, Any]:
    """A Deployment or StatefulSet whose pods have this one container. pod: further fields of the pod."""
    labels = {"app": name}
    pod |= {"containers": [{"name": "worker", "image": "none:1", **container}], "terminationGracePeriodSeconds": 10}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec: dict[str, Any] = {"selector": {"matchLabels": labels}, "template": template}
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


class ScaleTarget(Part):
    """What an HPA scales. Subclasses are dataclasses with these fields."""

    name: str  # of the scale target and the HPA
    plane: ControlPlane
    kind: str  # Deployment or StatefulSet
    hpa: str  # a manifest of hpa/
    max_replicas: int | None  # in place of that of the manifest
    folder: Path
    observations: list[Any]  # each has the replicas
    started: ExitStack

    @property
    def path(self) -> str:
        """The API path of the scale target."""
        return f"/apis/apps/v1/namespaces/default/{self.kind.lower()}s/{self.name}"

    def apply(self) -> None:
        """Creates the objects, until `stop`."""
        self.plane.apply(*self.manifests())
        self.scale_with(self.hpa)
        self.started.callback(self.plane.kubectl, "delete", f"{self.kind},hpa", self.name, "--wait=false")

    def stop(self) -> None:
        """Deletes the scale target and the HPA, and ends the processes."""
        self.started.close()

    def manifests(self) -> list[dict[str, Any]]:
        """The objects beside the HPA."""
        raise NotImplementedError

    def observe(self) -> Any:
        """Reads the state, and appends it to the observations and to observed.log."""
        self.observations.append(self.read_state())
        with (self.folder / "observed.log").open("a") as log:
            log.write(f"{self.observations[-1]}\n")
        return self.observations[-1]

    def read_state(self) -> Any:
        """Reads the state without the adapter."""
        raise NotImplementedError

    def watch(self, condition: Callable[[Any], object], within_s: float, what: str) -> Any:
        """Observes every second until the condition is true, and returns that observation."""

        def fulfilled() -> Any:
            now = self.observe()
            return now if condition(now) else None

        return until(fulfilled, within_s, f"{self.name}: {what}", every_s=1.0)

    def replicas(self) -> int:
        """spec.replicas of the scale target."""
        replicas: int = self.plane.api.get(self.path)["spec"]["replicas"]
        return replicas

    def scale_with(self, hpa: str) -> None:
        """Replaces the HPA by this manifest of hpa/."""
        manifest = autoscaler(hpa, self.name)
        if self.max_replicas is not None:
            manifest["spec"]["maxReplicas"] = self.max_replicas
        self.plane.apply(manifest)

    def condition(self, kind: str) -> dict[str, str]:
        """A condition of the HPA; empty while the HPA has none."""
        return next((item for item in self._hpa_status().get("conditions", []) if item["type"] == kind), {})

    def current_metrics(self) -> list[dict[str, Any]]:
        """status.currentMetrics of the HPA."""
        found: list[dict[str, Any]] = self._hpa_status().get("currentMetrics", [])
        return found

    def _hpa_status(self) -> dict[str, Any]:
        path = f"/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/{self.name}"
        status: dict[str, Any] = self.plane.api.get(path)["status"]
        return status

    def rescales(self) -> list[int]:
        """The sizes in the events of the HPA."""
        return [int(message.split(";")[0].removeprefix("New size: ")) for message in self.rescale_events()]

    def rescale_events(self) -> list[str]:
        """The messages of the HPA's rescale events: the size, and the metric that caused it."""
        wanted = f"involvedObject.name={self.name},reason=SuccessfulRescale"
        events = self.plane.api.get("/api/v1/namespaces/default/events", fieldSelector=wanted)["items"]
        return [event["message"] for event in events]

    def replica_owners(self) -> set[tuple[str, str]]:
        """(manager, subresource) of each field owner of spec.replicas of the scale target."""
        fields = self.plane.api.get(self.path)["metadata"]["managedFields"]
        owned = [item for item in fields if "f:replicas" in item["fieldsV1"].get("f:spec", {})]
        return {(item["manager"], item.get("subresource", "")) for item in owned}

    def assert_that_the_hpa_set_each_size(self) -> None:
        """Fails if an observed size has no event of the HPA, or if anyone else wrote spec.replicas."""
        sizes = {each.replicas for each in self.observations}
        # An event follows the change that it reports.
        until(lambda: sizes <= {1, *self.rescales()}, 60, "the HPA has an event for each size")
        assert self.replica_owners() == {("kube-controller-manager", "scale")}

    def target_with(self, container: dict[str, Any], **pod: Any) -> dict[str, Any]:
        # No replicas: only the HPA sets them.
        return workload_resource(self.name, container, kind=self.kind, **pod)
