"""Who owns the API services, as the cluster's API tells it, and what is said of it."""

import threading
import time
from typing import Any

import pytest
import structlog

from adapter.errors import SourceError
from adapter.serving.slot import PATH, Slots

OURS, THEIRS = "monitoring/backlog-adapter", "keda/keda-operator-metrics-apiserver"
EXTERNAL = "v1beta1.external.metrics.k8s.io"
CUSTOM = ("v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io")
UP = {"type": "Available", "status": "True", "reason": "Passed"}
DOWN = {"type": "Available", "status": "False", "reason": "FailedDiscoveryCheck", "message": "no route to 10.0.0.5"}


def api_service(owner: str | None, *conditions: dict[str, str]) -> tuple[int, Any]:
    """The cluster's answer; owner None is one that kube-apiserver serves itself."""
    namespace, _, name = (owner or "").partition("/")
    service = None if owner is None else {"namespace": namespace, "name": name, "port": 443}
    return 200, {"kind": "APIService", "spec": {"service": service}, "status": {"conditions": list(conditions)}}


class Cluster:
    """Knows API services by name; what it does not know it answers with 404."""

    def __init__(self, **answers: tuple[int, Any]) -> None:
        self.answers = {EXTERNAL: api_service(OURS, UP)} | answers
        self.asked = threading.Event()

    def get(self, path: str) -> tuple[int, Any]:
        self.asked.set()
        folder, _, name = path.rpartition("/")
        assert folder == PATH
        answer = self.answers.get(name, (404, {"kind": "Status", "code": 404}))
        if isinstance(answer[1], Exception):
            raise answer[1]
        return answer


def shown(slots: Slots) -> dict[str, dict[str, str]]:
    """The labels of the info gauge by API service."""
    info, _ = slots.gauges()
    return {f"{each.labels['version']}.{each.labels['group']}": each.labels for each in info.samples}


def availability(slots: Slots) -> dict[str, float]:
    _, available = slots.gauges()
    return {f"{each.labels['version']}.{each.labels['group']}": each.value for each in available.samples}


def looked(cluster: Cluster, own: str | None = OURS) -> tuple[Slots, list[Any]]:
    slots = Slots(cluster.get, own)
    with structlog.testing.capture_logs() as logs:
        slots.refresh()
    return slots, logs


def test_owner_and_availability_of_each_group_and_version_are_shown() -> None:
    slots, _ = looked(Cluster(**{CUSTOM[0]: api_service(THEIRS, DOWN), CUSTOM[1]: api_service(None)}))
    assert {name: (labels["owner"], labels["ours"]) for name, labels in shown(slots).items()} == {
        EXTERNAL: (OURS, "true"),
        CUSTOM[0]: (THEIRS, "false"),
        CUSTOM[1]: ("kube-apiserver", "false"),
    }
    assert availability(slots) == {EXTERNAL: 1, CUSTOM[0]: 0}


@pytest.mark.parametrize(
    ("service", "level", "words"),
    [
        (api_service(OURS, UP), "info", ["this adapter owns this API"]),
        (api_service(OURS), "info", ["this adapter owns this API"]),
        (
            api_service(OURS, DOWN),
            "warning",
            ["the API server does not reach it", "FailedDiscoveryCheck: no route to 10.0.0.5", "firewall"],
        ),
        (api_service(THEIRS, UP), "warning", ["another adapter owns", THEIRS, "serving.pass_through"]),
        ((404, {}), "warning", ["nobody owns this API", "to own it, set apiService.external.create of the chart"]),
    ],
    ids=["ours", "ours, not looked at yet", "ours and down", "another's", "nobody's"],
)
def test_what_is_told_of_the_external_api_says_what_to_do(
    service: tuple[int, Any], level: str, words: list[str]
) -> None:
    _, logs = looked(Cluster(**{EXTERNAL: service}))
    (line,) = [log for log in logs if log["api"] == EXTERNAL]
    assert line["log_level"] == level
    assert all(word in str(line) for word in words), line


@pytest.mark.parametrize("ours", [EXTERNAL, *CUSTOM])
def test_who_is_asked_through_one_api_may_leave_the_others_to_others(ours: str) -> None:
    others = dict.fromkeys({EXTERNAL, *CUSTOM} - {ours}, api_service(THEIRS, UP))
    _, logs = looked(Cluster(**others, **{ours: api_service(OURS, UP)}))
    assert {log["log_level"] for log in logs} == {"info"}


def test_without_its_own_name_it_tells_the_owner_and_no_more() -> None:
    slots, logs = looked(Cluster(**{EXTERNAL: api_service(THEIRS, UP)}), own=None)
    assert shown(slots)[EXTERNAL]["ours"] == "unknown"
    assert {log["log_level"] for log in logs} == {"info"}


def test_only_changes_are_told() -> None:
    cluster = Cluster()
    slots = Slots(cluster.get, OURS)
    with structlog.testing.capture_logs() as logs:
        slots.refresh()
        first = len(logs)
        slots.refresh()
        assert len(logs) == first
        cluster.answers[EXTERNAL] = api_service(THEIRS, UP)
        slots.refresh()
        cluster.answers[EXTERNAL] = api_service(OURS, DOWN)
        slots.refresh()
        cluster.answers[EXTERNAL] = api_service(OURS, DOWN | {"message": "no route to 10.0.0.6"})
        slots.refresh()
        cluster.answers[EXTERNAL] = api_service(OURS, UP)
        slots.refresh()
    assert first == 3
    assert [(log["owner"], log["log_level"]) for log in logs[first:]] == [
        (THEIRS, "warning"),
        (OURS, "warning"),
        (OURS, "info"),
    ]


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        ((403, {"kind": "Status"}), "got 403; allow get of apiservices in apiregistration.k8s.io"),
        ((401, "Unauthorized"), "got 401; allow"),
        ((500, "oops"), "expected 200, got 500"),
        ((200, {"spec": {}, "status": {"conditions": [1]}}), "expected an APIService"),
        ((200, ["no object"]), "expected an APIService"),
        ((200, {"kind": "APIService"}), "expected an APIService"),
        ((0, SourceError("kubernetes", "no answer within 5 s")), "no answer within 5 s"),
    ],
    ids=["forbidden", "unauthorized", "error", "odd conditions", "a list", "no spec", "no answer"],
)
def test_what_cannot_be_asked_is_unknown_and_told_once(answer: tuple[int, Any], cause: str) -> None:
    cluster = Cluster()
    slots, _ = looked(cluster)
    sound, cluster.answers[EXTERNAL] = cluster.answers[EXTERNAL], answer
    with structlog.testing.capture_logs() as logs:
        slots.refresh()
        slots.refresh()
        assert slots.known == ()
        assert shown(slots) == {}
        cluster.answers[EXTERNAL] = sound
        slots.refresh()
    assert [log["log_level"] for log in logs] == ["warning", "info"], "the owner did not change"
    assert cause in logs[0]["cause"]
    assert shown(slots)[EXTERNAL]["ours"] == "true"


def test_no_error_whatever_ends_its_looking() -> None:
    cluster = Cluster(**{EXTERNAL: (200, RuntimeError("nobody foresaw it"))})
    slots = Slots(cluster.get, OURS, every_s=0.01)
    with structlog.testing.capture_logs() as logs:
        slots.start()
        for _ in range(3):
            assert cluster.asked.wait(10)
            cluster.asked.clear()
        assert shown(slots) == {}
        cluster.answers[EXTERNAL] = api_service(OURS, UP)
        deadline_s = time.monotonic() + 10
        while not slots.known and time.monotonic() < deadline_s:
            time.sleep(0.001)
        slots.stop()
    assert EXTERNAL in shown(slots)
    assert [log["cause"] for log in logs if "cause" in log] == ["RuntimeError: nobody foresaw it"]


def test_it_looks_by_itself_until_it_is_stopped() -> None:
    cluster = Cluster()
    slots = Slots(cluster.get, OURS, every_s=0.01)
    slots.start()
    assert cluster.asked.wait(10)
    cluster.asked.clear()
    assert cluster.asked.wait(10)
    slots.stop()
    assert "api-slots" not in {thread.name for thread in threading.enumerate()}
