"""The recorded answers of a real Go metrics server, replayed: what is served here is the same, byte for byte.

The recording's fixture has two series of one metric, `foo=bar` and `foo=baz`; here there is one workload with the
labels of the first. Where the fixture answers with both, the first is compared.
"""

import json
from typing import Any

import pytest
from flask.testing import FlaskClient
from serving_builders import AT_S, entry, recorded, snapshot
from werkzeug.test import TestResponse

from adapter.serving import discovery, metrics
from adapter.serving.app import create_app
from adapter.serving.frontproxy import ANONYMOUS
from adapter.serving.probes import Readiness
from adapter.serving.quantity import parse, quantity
from adapter.serving.store import SnapshotStore
from adapter.serving.telemetry import Telemetry

ANSWERS = {answer["id"]: answer for answer in recorded("disc", "ext", "err", "verb", "neg", "auth")}
RECORDED_NAME, OUR_NAME = "my-external-metric", "required_workers"
RECORDED_TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
WATCH_TYPES = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"


def client(*, guarded: bool = False) -> FlaskClient:
    store = SnapshotStore()
    store.put(snapshot(entry("default/orders", {"foo": "bar", "ns": "default"}, required_workers=42.0)))
    app = create_app(
        store,
        authenticate=(lambda certificate, headers: ANONYMOUS) if guarded else None,
        readiness=Readiness(lambda: True),
        telemetry=Telemetry(store, workloads=False),
        clock=lambda: AT_S + 1,
    )
    return app.test_client()


def ask(answer: dict[str, Any], *, guarded: bool = False) -> TestResponse:
    headers = {"User-Agent": "Go-http-client/1.1"} | answer["request_headers"]
    path = answer["path"].replace(RECORDED_NAME, OUR_NAME).replace("my%2Dexternal-metric", "required%5Fworkers")
    return client(guarded=guarded).open(path, method=answer["method"], headers=headers)


def ours(body: str) -> str:
    """A recorded body in the words of this server: its metric, its label, its window, the types it speaks."""
    body = body.replace(RECORDED_NAME, OUR_NAME).replace(RECORDED_TYPES + WATCH_TYPES, "application/json")
    body = body.replace(RECORDED_TYPES, "application/json")
    body = body.replace('"ns":"default"}', '"ns":"default","workload":"orders"}').replace(
        '"ns": "default"\n', '"ns": "default",\n        "workload": "orders"\n'
    )
    body = body.replace(
        '"timestamp":"2026-01-02T03:04:05Z","value"', '"timestamp":"2026-01-02T03:04:05Z","window":60,"value"'
    )
    return body.replace('05Z",\n      "value"', '05Z",\n      "window": 60,\n      "value"')


def same_headers(answer: dict[str, Any], response: TestResponse) -> None:
    for name, value in answer["headers"].items():
        assert response.headers.get(name) == value, name
    assert "Retry-After" not in response.headers


# Bodies that are the same once the fixture's names are exchanged.
SAME = {
    "ext": (36, 37, 44, 46, 48, 49, 50, 52, 53, 54, 56, 57, 60, 61, 66, 68, 70, 72, 73, 80, 81, 82, 85, 92),
    "verb": (104, 105, 106, 108),
    "neg": (109, 110, 116, 117, 118, 121, 122, 124, 125),
    "disc": (30, 32, 16, 17),
}


@pytest.mark.parametrize("name", [f"{family}-{number:03}" for family, numbers in SAME.items() for number in numbers])
def test_the_answer_is_the_recorded_one(name: str) -> None:
    answer = ANSWERS[name]
    response = ask(answer)
    assert response.status_code == answer["status"]
    assert response.get_data(as_text=True) == ours(answer["body"])
    same_headers(answer, response)


# Parameters that change nothing: the fixture's two series were both given, here there is one workload.
IGNORED = ("ext-041", "ext-045", "ext-058", "ext-062", "ext-064", "ext-065", "ext-069", "ext-084")


@pytest.mark.parametrize("name", IGNORED)
def test_a_parameter_without_meaning_changes_nothing(name: str) -> None:
    response = ask(ANSWERS[name])
    first = json.loads(ours(ANSWERS[name]["body"]))["items"][0]
    assert response.status_code == 200
    assert json.loads(response.get_data())["items"] == [first]


@pytest.mark.parametrize("name", ["ext-076", "ext-077", "ext-086", "ext-088", "ext-042"])
def test_nothing_found_is_a_404_with_the_reason_instead_of_an_empty_list(name: str) -> None:
    response = ask(ANSWERS[name])
    assert ANSWERS[name]["status"] == 200
    assert response.status_code == 404
    assert response.get_json()["message"]


@pytest.mark.parametrize("name", ["disc-033", "neg-112", "disc-034", "neg-114", "neg-120"])
def test_only_json_is_written(name: str) -> None:
    response = ask(ANSWERS[name])
    assert response.status_code == 406
    assert response.get_json()["reason"] == "NotAcceptable"


def test_neg_113_the_hpa_takes_json() -> None:
    response = ask(ANSWERS["neg-113"])
    assert response.status_code == 200
    assert response.content_type == "application/json"


@pytest.mark.parametrize("name", ["disc-004", "disc-005"])
def test_the_group_is_the_recorded_one(name: str) -> None:
    response = ask(ANSWERS[name])
    assert response.get_data(as_text=True) == ANSWERS[name]["body"]
    same_headers(ANSWERS[name], response)


def test_disc_008_the_list_of_metrics_has_the_recorded_form() -> None:
    recorded_list = json.loads(ANSWERS["disc-008"]["body"])
    response = ask(ANSWERS["disc-008"])
    listed = json.loads(response.get_data())
    assert [resource["name"] for resource in listed["resources"]] == list(metrics.METRICS)
    form = recorded_list["resources"][0]
    expected = [form | {"name": name} for name in metrics.METRICS]
    body = json.dumps(recorded_list | {"resources": expected}, separators=(",", ":")) + "\n"
    assert response.get_data(as_text=True) == body


def test_disc_002_the_list_of_groups_is_the_recorded_one_without_custom_metrics() -> None:
    recorded_list = json.loads(ANSWERS["disc-002"]["body"])
    recorded_list["groups"] = [group for group in recorded_list["groups"] if group["name"].startswith("external")]
    expected = json.dumps(recorded_list, separators=(",", ":")).replace(":16444", ":80") + "\n"
    assert ask(ANSWERS["disc-002"]).get_data(as_text=True) == expected


@pytest.mark.parametrize("name", ["disc-026", "disc-028"])
def test_aggregated_discovery_is_filled_where_the_recorded_one_is_empty(name: str) -> None:
    response = ask(ANSWERS[name])
    document = json.loads(response.get_data())
    assert response.content_type == ANSWERS[name]["headers"]["Content-Type"]
    assert response.headers["Cache-Control"] == "public"
    assert response.headers["Vary"] == "Accept"
    resources = document["items"][0]["versions"][0]["resources"]
    assert [resource["resource"] for resource in resources] == list(metrics.METRICS)
    assert document | {"items": []} == json.loads(ANSWERS[name]["body"])


def test_disc_029_what_the_caller_has_is_not_sent_again() -> None:
    etag = ask(ANSWERS["disc-026"]).headers["ETag"]
    answer = ANSWERS["disc-029"]
    response = ask(answer | {"request_headers": answer["request_headers"] | {"If-None-Match": etag}})
    assert response.status_code == 304
    assert response.get_data() == b""
    assert response.headers["ETag"] == etag


@pytest.mark.parametrize("name", ["disc-012", "disc-013", "disc-025", "disc-001"])
def test_an_unknown_path_gets_the_list_of_paths(name: str) -> None:
    response = ask(ANSWERS[name])
    expected = json.dumps({"paths": list(discovery.PATHS)}, indent=2)
    assert response.status_code == ANSWERS[name]["status"]
    assert response.get_data(as_text=True) == expected
    assert set(discovery.PATHS) < set(json.loads(ANSWERS["disc-001"]["body"])["paths"])


def test_ext_090_numbers_are_written_as_recorded() -> None:
    values = [item["value"] for item in json.loads(ANSWERS["ext-090"]["body"])["items"]]
    written = [value for value in values if not {"e", "i"} & {*value}]  # 1e3 and 1Ki are read, never written
    readable = [value for value in written if 0 <= parse(value) <= 9e15 and parse(value) * 1000 % 1 == 0]
    assert len(readable) >= 8
    assert [quantity(float(parse(value))) for value in readable] == readable


@pytest.mark.parametrize("name", ["auth-164", "auth-170", "auth-166"])
def test_a_stranger_gets_the_recorded_refusal(name: str) -> None:
    """Up to the reason: the recorded one is an access review's, which is another change."""
    response = ask(ANSWERS[name], guarded=True)
    expected = ANSWERS[name]["body"].replace("no RBAC policy matched", "no certificate of the cluster's front proxy")
    assert response.status_code == ANSWERS[name]["status"]
    assert response.get_data(as_text=True) == ours(expected)
    same_headers(ANSWERS[name], response)


def test_a_stranger_may_see_what_is_served() -> None:
    assert ask(ANSWERS["disc-008"], guarded=True).status_code == 200
