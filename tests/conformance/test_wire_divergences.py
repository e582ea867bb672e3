"""The listed divergences: each applies to a kind of request and checks our response."""

import json
from typing import Any

import pytest

from conformance.divergences import DIVERGENCES, find, table
from conformance.recording import Request, Response, Row

JSON = {"content-type": "application/json"}
AGGREGATED = {"content-type": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/ns/pods"


def row(target: str = "/apis", status: int = 200, recorded: dict[str, str] = JSON, **headers: str) -> Row:
    identity = headers.pop("identity", "admin")
    sent = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Row("some-001", Request("GET", target, identity, sent), Response(status, recorded))


def ours(code: int = 200, headers: dict[str, str] = JSON, **document: Any) -> Response:
    return Response(code, headers, json.dumps({"code": code, **document}).encode())


def discovery(freshness: str = "Current", resources: int = 1) -> Response:
    version = {"freshness": freshness, "resources": [{}] * resources}
    return ours(headers=AGGREGATED, items=[{"versions": [version]}])


CRASH = Row("some-001", Request("GET", "/apis"), None)
SELECTOR = row(CUSTOM + "/p/m?metricLabelSelector=%24", 500)


@pytest.mark.parametrize(
    ("name", "recorded", "response"),
    [
        ("filled-discovery", row(recorded=AGGREGATED), discovery()),
        ("json-only", row(recorded={"content-type": "application/yaml"}, Accept="application/yaml"), ours(406)),
        ("json-only", row(Accept="application/vnd.kubernetes.protobuf, */*"), ours()),
        ("bad-metric-selector", SELECTOR, ours(400)),
        ("unverified-certificate", row(status=401, identity="rogue"), None),
        ("source-crash", CRASH, ours(500)),
        ("no-retry-after", row(status=504, recorded={**JSON, "retry-after": "7"}), ours(504)),
        ("list-options", row("/apis?timeout=x", 400), ours()),
        ("no-impersonation", row(status=403, Impersonate_User="bob"), ours()),
        ("no-pods-metrics", row(f"{CUSTOM}/%2A/m"), ours(404)),
        ("no-cluster-metrics", row("/apis/custom.metrics.k8s.io/v1beta1/nodes/foo/m"), ours(404)),
        ("no-cluster-metrics", row("/apis/custom.metrics.k8s.io/v1beta1/namespaces/ns/metrics/m"), ours(404)),
        ("status-document", row(status=500, recorded={"content-type": "text/plain"}), ours(500)),
        ("every-version", row("/apis"), ours()),
        ("openapi-v2-alone", row("/openapi/v3"), ours(404)),
        ("proxied-paths-alone", row("/version"), ours(404)),
        ("proxied-paths-alone", row("/"), ours(404)),
    ],
)
def test_an_intended_difference_is_listed(name: str, recorded: Row, response: Response | None) -> None:
    """case 4, 42, 58, 72, 76"""
    assert find(recorded, response) == name


@pytest.mark.parametrize(
    ("recorded", "response"),
    [
        pytest.param(row(recorded=AGGREGATED), discovery(resources=0), id="a version without metrics"),
        pytest.param(row(recorded=AGGREGATED), discovery("Stale"), id="a stale version"),
        pytest.param(row(Accept="application/xml, */*"), ours(406), id="406 where JSON is allowed"),
        pytest.param(row(Accept="application/yaml"), ours(headers=AGGREGATED | {"content-type": "a/b"}), id="not JSON"),
        pytest.param(SELECTOR, ours(500), id="a bad selector is still 500"),
        pytest.param(row(status=401, identity="rogue"), ours(), id="an unknown client is served"),
        pytest.param(CRASH, ours(), id="a crash is hidden"),
        pytest.param(row(status=504, recorded={**JSON, "retry-after": "7"}), ours(503), id="another error"),
        pytest.param(row(status=401), ours(), id="an unauthenticated request is served"),
        pytest.param(row("/apis?timeout=1s", 403, Accept="a/b"), ours(), id="a forbidden request is served"),
        pytest.param(row(CUSTOM + "/p/m"), ours(404), id="an object of a namespace is not found"),
        pytest.param(row(), ours(404), id="a listed metric is not found"),
        pytest.param(row("/apis?labelSelector=%24", 400), ours(), id="a bad selector is accepted"),
    ],
)
def test_any_other_difference_fails(recorded: Row, response: Response | None) -> None:
    assert find(recorded, response) == ""


def test_the_table_has_a_row_for_each() -> None:
    assert [line.split("`")[1] for line in table().splitlines()[2:]] == [each.name for each in DIVERGENCES]
