"""Which Service answers the metrics APIs: a gauge, and a warning when it is another adapter's."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from adapter.errors import SourceError
from adapter.issuer.objects import API_SERVICES_PATH
from adapter.serving.api_services import ApiServices

NAME = "v1beta1.external.metrics.k8s.io"
OWN = "monitoring/backlog-adapter"


def api_service(owner: str | None) -> dict[str, Any]:
    namespace, _, name = (owner or "").partition("/")
    return {"spec": {"service": {"namespace": namespace, "name": name} if owner else None}}


def shown(services: ApiServices) -> list[dict[str, str]]:
    return [sample.labels for family in services.gauges() for sample in family.samples]


@pytest.mark.parametrize(
    ("answer", "own", "owner", "ours", "warns"),
    [
        ((200, api_service(OWN)), OWN, OWN, "true", False),
        ((200, api_service("keda/keda-metrics")), OWN, "keda/keda-metrics", "false", True),
        ((200, api_service("keda/keda-metrics")), None, "keda/keda-metrics", "unknown", False),
        ((200, api_service(None)), OWN, "kube-apiserver", "false", True),
        ((404, {}), OWN, "", "false", False),
    ],
    ids=["ours", "another", "own Service not known", "a local APIService", "none"],
)
def test_the_owner_is_shown_and_another_one_is_logged_once(
    answer: tuple[int, Any], own: str | None, owner: str, ours: str, warns: bool
) -> None:
    services = ApiServices(lambda path: answer, [NAME], own, [NAME])
    with capture_logs() as logs:
        services.refresh()
        services.refresh()
    assert shown(services) == [{"api_service": NAME, "owner": owner, "ours": ours}]
    assert [(line["log_level"], line["owner"]) for line in logs] == ([("warning", owner)] if warns else [])


def test_another_owner_of_an_api_that_is_left_to_it_is_shown_and_not_logged() -> None:
    services = ApiServices(lambda path: (200, api_service("keda/keda-metrics")), [NAME], OWN, [])
    with capture_logs() as logs:
        services.refresh()
    assert (shown(services)[0]["owner"], logs) == ("keda/keda-metrics", [])


@pytest.mark.parametrize(
    ("status", "document", "cause"),
    [(403, {}, "allow get of apiservices"), (500, {}, "expected 200, got 500"), (200, [], "expected an APIService")],
)
def test_an_unreadable_owner_is_logged_once_and_unknown(status: int, document: Any, cause: str) -> None:
    services = ApiServices(lambda path: (status, document), [NAME], OWN, [NAME])
    with capture_logs() as logs:
        services.refresh()
        services.refresh()
    assert shown(services) == []
    assert [cause in line["cause"] for line in logs] == [True]


def test_owners_are_shown_again_after_an_outage() -> None:
    answers: list[Any] = [SourceError("kubernetes", "refused"), (200, api_service(OWN))]

    def get(path: str) -> tuple[int, Any]:
        assert path == f"{API_SERVICES_PATH}/{NAME}"
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    services = ApiServices(get, [NAME], OWN, [NAME])
    services.refresh()
    services.refresh()
    assert shown(services)[0]["owner"] == OWN


def test_an_outage_does_not_repeat_the_warning_about_another_owner() -> None:
    other = (200, api_service("keda/keda-metrics"))
    answers = iter([other, (500, {}), other])
    services = ApiServices(lambda path: next(answers), [NAME], OWN, [NAME])
    with capture_logs() as logs:
        for _ in range(3):
            services.refresh()
    assert [line["event"] for line in logs].count(
        "another adapter owns this API: its metrics do not come from here"
    ) == 1
