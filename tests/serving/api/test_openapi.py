"""The description of the API, and that it is true. disc-022 to disc-024."""

import json
import re
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_server import DISCOVERY, asked, body_of, recorded_headers

from adapter.serving.api import custom, external
from adapter.serving.api.custom import ObjectQuestion, ObjectValue
from adapter.serving.api.external import ExternalValue
from adapter.serving.api.openapi import PATHS, OpenApi
from adapter.serving.api.openapi_documents import version_2, version_3
from adapter.serving.api.status import Answer, Document, bad_request, no_such_resource
from adapter.serving.api.version import of_release

NOW_S = 1_767_323_045.0
V2, V3 = "/openapi/v2", "/openapi/v3"
EXTERNAL = f"{V3}/apis/external.metrics.k8s.io/v1beta1"
GROUP_VERSIONS = [(external.GROUP, external.VERSION), *((custom.GROUP, version) for version in custom.VERSIONS)]
OPENAPI = OpenApi(clock=lambda: NOW_S)
TYPES = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}


def answered(path: str, **headers: str) -> Answer:
    answer = OPENAPI.answer(asked(path, **headers))
    assert answer is not None
    return answer


def operations(document: Document) -> Iterator[tuple[str, Document]]:
    for path, methods in document["paths"].items():
        assert list(methods) == ["get"]
        yield path, methods["get"]


def references(value: Any) -> set[str]:
    return set(re.findall(r'"\$ref": "#/(?:definitions|components/schemas)/([^"]+)"', json.dumps(value)))


def faults(value: Any, schema: Document, kinds: Document, where: str = "") -> list[str]:
    """Where a value is not of a schema."""
    if "$ref" in schema:
        return faults(value, kinds[schema["$ref"].rpartition("/")[2]], kinds, where)
    if value is None and schema.get("nullable"):
        return []
    if not isinstance(value, TYPES[schema["type"]]):
        return [f"{where} is no {schema['type']}"]
    if isinstance(value, list):
        return [fault for each in value for fault in faults(each, schema["items"], kinds, f"{where}[]")]
    return faults_of_fields(value, schema, kinds, where) if isinstance(value, dict) else []


def faults_of_fields(value: Document, schema: Document, kinds: Document, where: str) -> list[str]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    found = [f"{where}.{name} is missing" for name in schema.get("required", []) if name not in value]
    for name, each in value.items():
        told = properties.get(name, others)
        if told is not None:
            found += faults(each, told, kinds, f"{where}.{name}")
        elif properties:
            found.append(f"{where}.{name} is not described")
    return found


def described(name: str, document: Document) -> Document:
    """The schema of what an operation answers."""
    [operation] = [each for _, each in operations(document) if each["operationId"] == name]
    schema: Document = operation["responses"]["200"]["content"]["application/json"]["schema"]
    return schema


@pytest.mark.parametrize(("name", "path"), [("disc-022", V2), ("disc-024", EXTERNAL)])
def test_a_document_has_the_recorded_headers(name: str, path: str) -> None:
    answer = answered(path, accept="application/json")
    assert answer.code == 200
    assert answer.headers | {"Etag": ""} == recorded_headers(name) | {"Etag": ""}
    assert re.fullmatch('"[0-9A-F]{128}"', answer.headers["Etag"])


@pytest.mark.parametrize("path", [V2, V3, EXTERNAL])
def test_what_the_caller_has_is_not_sent_again(path: str) -> None:
    etag = answered(path).headers["Etag"]
    answer = answered(path, if_none_match=f'"other", {etag}')
    assert (answer.code, answer.body) == (304, b"")
    assert answer.headers["Etag"] == etag
    assert "Content-Type" not in answer.headers
    assert answered(path, if_none_match='"other"').code == 200


@pytest.mark.parametrize("path", [V2, EXTERNAL])
@pytest.mark.parametrize(
    ("accept", "code"),
    [
        ("", 200),
        ("*/*", 200),
        ("application/*;q=0.1", 200),
        ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf, application/json", 200),
        ("application/com.github.proto-openapi.spec.v2.v1.0+protobuf", 406),
        ("application/yaml", 406),
        ("text/html", 406),
        ("garbage", 406),
    ],
)
def test_the_documents_are_json(path: str, accept: str, code: int) -> None:
    answer = answered(path, accept=accept)
    assert answer.code == code
    assert answer.headers["Vary"] == "Accept"


def test_the_index_is_for_everybody() -> None:
    assert answered(V3, accept="text/html").headers.keys() == {"Content-Type", "Etag"}


def test_the_index_names_each_group_and_version_with_its_hash() -> None:
    """And nothing that an API server has under the same name: it would be hidden by ours."""
    listed = json.loads(body_of(answered(V3)))["paths"]
    groups = [f"apis/{group}" for group in (custom.GROUP, external.GROUP)]
    assert sorted(listed) == sorted([*groups, *(f"apis/{group}/{version}" for group, version in GROUP_VERSIONS)])
    for name, entry in listed.items():
        path, _, digest = entry["serverRelativeURL"].partition("?hash=")
        assert path == f"{V3}/{name}"
        assert answered(path).headers["Etag"] == f'"{digest}"'


def test_what_is_asked_for_with_its_hash_may_be_kept_for_a_year() -> None:
    url = json.loads(body_of(answered(V3)))["paths"]["apis/external.metrics.k8s.io/v1beta1"]["serverRelativeURL"]
    for answer in (answered(url), answered(url, if_none_match=answered(url).headers["Etag"])):
        assert answer.headers["Cache-Control"] == "public, immutable"
        assert answer.headers["Vary"] == "Accept"
        assert parsedate_to_datetime(answer.headers["Expires"]).timestamp() == NOW_S + 365 * 86_400
    assert "Cache-Control" not in answered(f"{EXTERNAL}?hash=").headers


@pytest.mark.parametrize("query", ["hash=old", "hash=old&hash=new", "hash=%22x%22"])
def test_who_has_an_old_hash_is_sent_to_the_new_one(query: str) -> None:
    answer = answered(f"{EXTERNAL}?{query}")
    etag = answer.headers["Etag"].strip('"')
    assert (answer.code, answer.body) == (301, b"")
    assert answer.headers["Location"] == f"{EXTERNAL}?hash={etag}"
    assert answered(answer.headers["Location"]).code == 200


@pytest.mark.parametrize("path", [f"{V2}?hash=x", f"{V3}?hash=x"])
def test_a_document_without_an_address_by_hash_ignores_one(path: str) -> None:
    assert answered(path).code == 200


@pytest.mark.parametrize("path", [f"{V3}/", f"{V3}/x", f"{EXTERNAL}/", f"{V3}//apis", f"{V3}/apis/nope/v1"])
def test_of_a_group_and_version_that_nobody_knows_nothing_is_said_as_go_s_servers_do(path: str) -> None:
    assert answered(path, accept="text/html") == Answer(200, body=b"")


@pytest.mark.parametrize("path", ["/openapi", "/openapi/", "/openapi/v2/", "/openapi/v33", "/"])
def test_another_path_is_not_answered(path: str) -> None:
    assert OPENAPI.answer(asked(path)) is None


@given(st.sampled_from(["GET", "HEAD", "POST", "PUT", "OPTIONS"]), st.sampled_from([*PATHS, EXTERNAL]))
def test_every_listed_path_answers_whatever_the_method(method: str, path: str) -> None:
    answer = OPENAPI.answer(asked(path, method))
    assert answer == answered(path)


def test_everything_of_the_parts_is_in_the_whole() -> None:
    parts = [pair for document in version_3().values() for pair in operations(document)]
    whole = dict(operations(version_2()))
    assert sorted(path for path, _ in parts) == sorted(whole)
    for path, operation in parts:
        assert whole[path]["operationId"] == operation["operationId"]
        assert whole[path]["responses"].keys() == operation["responses"].keys()
        assert [each["name"] for each in whole[path]["parameters"]] == [
            each["name"] for each in operation["parameters"]
        ]


def test_operations_have_names_of_their_own() -> None:
    names = [operation["operationId"] for _, operation in operations(version_2())]
    assert len(names) == len(set(names))


def test_a_path_has_the_parameters_it_names() -> None:
    for path, operation in operations(version_2()):
        given_names = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
        assert given_names == re.findall(r"\{(\w+)}", path)
        assert all(each["required"] for each in operation["parameters"] if each["in"] == "path")


def test_every_metric_route_tells_its_errors() -> None:
    codes = {"400", "401", "403", "404", "405", "406", "503"}
    for path, operation in operations(version_2()):
        assert codes <= operation["responses"].keys() or "{" not in path


def test_every_kind_that_is_referred_to_is_there() -> None:
    whole = version_2()
    assert references(whole) <= whole["definitions"].keys()
    for document in version_3().values():
        assert references(document) == document["components"]["schemas"].keys()


def test_openapi_2_has_no_word_of_openapi_3() -> None:
    whole = version_2()
    assert whole["swagger"] == "2.0"
    assert not [word for word in ("nullable", "components", '"content"', "openapi") if word in json.dumps(whole)]


def test_a_kind_is_marked_exactly_when_it_is_of_a_metrics_group() -> None:
    """A description with a mark of a kind of the cluster's own would hide the cluster's words for it."""
    for name, schema in version_2()["definitions"].items():
        if not name.startswith("io.k8s.metrics.pkg.apis."):
            assert "x-kubernetes-group-version-kind" not in schema
            continue
        [mark] = schema["x-kubernetes-group-version-kind"]
        group, version, kind = name.removeprefix("io.k8s.metrics.pkg.apis.").split(".")
        assert mark == {"group": f"{group.replace('_', '.')}.k8s.io", "version": version, "kind": kind}


@pytest.mark.parametrize(
    "value",
    [
        ExternalValue("backlog", {"workload": "orders"}, "20", at_s=NOW_S, window_s=60),
        ExternalValue("backlog", None, "1500m"),
    ],
)
def test_the_description_of_external_values_is_true(value: ExternalValue) -> None:
    document = version_3()["apis/external.metrics.k8s.io/v1beta1"]
    schema = described("listExternalMetricsV1beta1ExternalMetricValue", document)
    listed = external.listing([value])
    assert faults(listed, schema, document["components"]["schemas"]) == []
    assert faults({"items": [{"metricName": 1}]}, schema, document["components"]["schemas"])


@pytest.mark.parametrize("version", custom.VERSIONS)
@pytest.mark.parametrize(
    "value",
    [
        ObjectValue("Pod", "/v1", "shop", "orders-1", "20", at_s=NOW_S, window_s=60),
        ObjectValue("Namespace", "/v1", None, "shop", "1500m"),
    ],
)
def test_the_description_of_objects_values_is_true(version: str, value: ObjectValue) -> None:
    document = version_3()[f"apis/{custom.GROUP}/{version}"]
    schema = described(f"listCustomMetrics{version.capitalize()}MetricValue", document)
    question = ObjectQuestion(value.namespace, "pods", value.name, "backlog")
    assert faults(custom.listing(version, question, [value]), schema, document["components"]["schemas"]) == []


@pytest.mark.parametrize(
    ("document", "operation", "value"),
    [
        ("version", "getCodeVersion", of_release()),
        ("apis", "getAPIVersions", DISCOVERY.group_list(443)),
        (f"apis/{custom.GROUP}", "getCustomMetricsAPIGroup", DISCOVERY.group(custom.GROUP)),
        (f"apis/{external.GROUP}", "getExternalMetricsAPIGroup", DISCOVERY.group(external.GROUP)),
        (
            f"apis/{external.GROUP}/v1beta1",
            "getExternalMetricsV1beta1APIResources",
            DISCOVERY.resource_list(external.GROUP, "v1beta1"),
        ),
        (
            f"apis/{custom.GROUP}/v1beta2",
            "getCustomMetricsV1beta2APIResources",
            DISCOVERY.resource_list(custom.GROUP, "v1beta2"),
        ),
    ],
)
def test_the_description_of_a_document_is_true(document: str, operation: str, value: Document) -> None:
    whole = version_3()[document]
    assert faults(value, described(operation, whole), whole["components"]["schemas"]) == []


@pytest.mark.parametrize("refused", [no_such_resource(), bad_request("no")])
def test_the_description_of_an_error_is_true(refused: Answer) -> None:
    document = version_3()["apis"]
    [(_, operation)] = operations(document)
    schema = operation["responses"]["403"]["content"]["application/json"]["schema"]
    assert faults(refused.document, schema, document["components"]["schemas"]) == []
