"""Our HPA arithmetic takes the same path as the real controller on the same answers at the same times."""

import json
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import yaml
from parts.certificates import Authority
from parts.controlplane import Api, ControlPlane
from parts.process import HOST, until
from parts.scale_target import workload_resource
from parts.service import EXTERNAL, api_service_at

from adapter.simulator.hpa import (
    DOWN,
    UP,
    Behavior,
    Direction,
    Hpa,
    Memory,
    RatePolicy,
    Tolerance,
    by_average_value,
    recommend,
)

START, MAX = 3, 30
GROUP = f"/apis/{EXTERNAL}"
MANIFEST = Path(__file__).parents[3] / "hpa" / "kafka-consumer.yaml"
NEAR_S = 1.0  # the controller reads its clock a little after the answer, and records a change a little later
SERVED: tuple[Sequence[str] | None, ...] = (
    *[["20"]] * 4, ["19"], ["22"], ["21"], None, ["20.0004"], ["NaN"], [], ["23"], *[["12"]] * 2, ["3", "4"],
    None, *[["2"]] * 6, ["40"], ["0"], *[["40"]] * 4, ["5"], ["4.4"], ["24"], ["1"],
    *[["18"]] * 2,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SimulatedJob:
    """The same behavior for the controller and for our arithmetic."""

    written: dict[str, Any] | None  # replaces spec.behavior of the manifest; None: the manifest's stays
    behavior: Behavior | None
    tolerance: Tolerance = field(default_factory=Tolerance)


def half(direction: Direction, **more: str) -> dict[str, Any]:
    """One direction of `spec.behavior` in the API."""
    policies = [{"type": each.kind, "value": each.value, "periodSeconds": each.period_s} for each in direction.policies]
    return {"stabilizationWindowSeconds": direction.window_s, "policies": policies, **more}


OUR_UP = Direction(window_s=0, policies=(RatePolicy(kind="Percent", value=400), RatePolicy(kind="Pods", value=12)))
SLOW_UP = Direction(
    window_s=20, policies=(RatePolicy(kind="Pods", value=6, period_s=25), RatePolicy(kind="Percent", value=30))
)
SLOW_DOWN = Direction(
    window_s=37, policies=(RatePolicy(kind="Percent", value=20, period_s=30), RatePolicy(kind="Pods", value=3))
)
AT_ONCE = Direction(window_s=0, policies=DOWN.policies)
CASES = {
    "no-behavior": SimulatedJob(written={}, behavior=None),
    "default-behavior": SimulatedJob(written={"behavior": {"scaleDown": {}}}, behavior=Behavior()),
    "our-behavior": SimulatedJob(
        written=None,
        behavior=Behavior(up=OUR_UP, down=AT_ONCE),
        tolerance=Tolerance(up_ratio=0.0, down_ratio=0.0),
    ),
    "slow-both-ways": SimulatedJob(
        written={"behavior": {"scaleUp": half(SLOW_UP), "scaleDown": half(SLOW_DOWN)}},
        behavior=Behavior(up=SLOW_UP, down=SLOW_DOWN),
    ),
    "far-up": SimulatedJob(
        written={"behavior": {"scaleUp": half(UP, tolerance="0.5")}},
        behavior=Behavior(),
        tolerance=Tolerance(up_ratio=0.5),
    ),
}


@dataclass(frozen=True)
class Sync:
    """One request of the controller."""

    at_s: float  # time of the answer
    spec: int  # spec.replicas before the answer
    status: int  # status.replicas before the answer
    items: Sequence[str] | None  # the quantities of the answer; None is a 503


class Stub(ThreadingHTTPServer):
    """An external metrics API that answers each HPA with SERVED, in turn, and records the replicas.

    It delays an answer that is close to the end of a period or window: the controller could be on either side of it.
    """

    def __init__(self, api: Api, folder: Path) -> None:
        super().__init__((HOST, 0), _Answer)
        self._api = api
        self.syncs: defaultdict[str, list[Sync]] = defaultdict(list)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*Authority(folder, "stub-ca").issue("stub", addresses=(HOST,)))
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def answer(self, name: str) -> Sequence[str] | None:
        scale = self._api.get(f"/apis/apps/v1/namespaces/default/deployments/{name}/scale")
        syncs = self.syncs[name]
        while self._is_close(name):
            time.sleep(NEAR_S / 10)
        items = SERVED[len(syncs)] if len(syncs) < len(SERVED) else None
        syncs.append(Sync(time.monotonic(), scale["spec"]["replicas"], scale["status"]["replicas"], items))
        return items

    def _is_close(self, name: str) -> bool:
        now_s, behavior = time.monotonic(), CASES[name].behavior or Behavior()
        halves = (behavior.up, behavior.down)
        ends_s = {one.window_s for one in halves} | {each.period_s for one in halves for each in one.policies}
        return any(abs(now_s - sync.at_s - end_s) < NEAR_S for sync in self.syncs[name] for end_s in ends_s)


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Stub

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if not url.path.startswith(f"{GROUP}/namespaces/"):
            return self._send(200, {"kind": "APIResourceList", "groupVersion": EXTERNAL, "resources": []})
        items = self.server.answer(parse_qs(url.query)["labelSelector"][0].removeprefix("workload="))
        if items is None:
            return self._send(503, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no number"})
        common = {"metricName": "required_workers", "metricLabels": {}, "timestamp": "2026-01-01T00:00:00Z"}
        values = [{**common, "value": item} for item in items]
        return self._send(200, {"kind": "ExternalMetricValueList", "apiVersion": EXTERNAL, "items": values})

    def _send(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def recorded(run: Path) -> dict[str, list[Sync]]:
    """Name -> its syncs, in a separate cluster because the adapter owns the API group in the other one."""
    with ControlPlane(run / "hpa-path") as plane, Stub(plane.api, run / "hpa-path") as stub:
        thread = threading.Thread(target=stub.serve_forever)
        thread.start()
        try:
            plane.apply(*api_service_at(stub.server_port, EXTERNAL, "stub"))
            until(lambda: plane.api.raw(GROUP).is_success, 180, "the aggregator reaches the stub")
            # Their pods do not run: AverageValue counts pods that exist.
            plane.apply(*(workload_resource(name, {}, replicas=START) for name in CASES))
            until(lambda: all(_has_started(plane.api, name) for name in CASES), 180, "every Deployment has its pods")
            plane.apply(*(_autoscaler(name, case) for name, case in CASES.items()))
            turns = len(SERVED) + 1  # the next request shows the effect of the last answer
            until(lambda: all(len(stub.syncs[name]) >= turns for name in CASES), 600, f"{turns} syncs of every HPA")
        finally:
            stub.shutdown()
            thread.join()
        found = {name: syncs[:turns] for name, syncs in stub.syncs.items()}
    lines = (f"{name} {sync}" for name, syncs in found.items() for sync in syncs)
    (run / "hpa-path" / "syncs.txt").write_text("\n".join(lines))
    return found


@pytest.mark.parametrize("name", CASES, ids=[name.replace("-", " ") for name in CASES])
def test_the_replica_path_equals_that_of_the_real_controller(name: str, recorded: dict[str, list[Sync]]) -> None:
    case, syncs = CASES[name], recorded[name]
    hpa = Hpa(max_workers=MAX, behavior=case.behavior)
    memory, workers, path = Memory(), np.array([float(START)]), [START]
    for sync in syncs[:-1]:
        proposal = by_average_value(_usage(sync.items), 1.0, np.array([float(sync.status)]), case.tolerance)
        workers, memory = recommend(hpa, memory, workers, proposal, sync.at_s)
        path.append(int(workers[0]))

    assert path == [sync.spec for sync in syncs], "\n".join(str(sync) for sync in syncs)
    assert len(set(path)) >= 4  # else the comparison proves little


def _usage(items: Sequence[str] | None) -> float:
    """The sum of the items; NaN without an item, or if one is no quantity."""
    return sum(float(item) for item in items) if items else np.nan


def _has_started(api: Api, name: str) -> bool:
    found = api.get(f"/apis/apps/v1/namespaces/default/deployments/{name}")
    return bool(found["status"].get("replicas") == START)


def _autoscaler(name: str, case: SimulatedJob) -> dict[str, Any]:
    """The manifest of hpa/ with the name, maximum and behavior of the case."""
    hpa: dict[str, Any] = yaml.safe_load(MANIFEST.read_text())
    hpa["metadata"]["name"] = hpa["spec"]["scaleTargetRef"]["name"] = name
    hpa["spec"]["metrics"][0]["external"]["metric"]["selector"] = {"matchLabels": {"workload": name}}
    hpa["spec"]["maxReplicas"] = MAX
    if case.written is not None:
        del hpa["spec"]["behavior"]
        hpa["spec"].update(case.written)
    return hpa
