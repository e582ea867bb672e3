"""What is listed, as API servers and clients read it. Cases 1 to 5, 7 and 8; disc-001 to disc-029."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_server import DISCOVERY, body_of, recorded_answer, recorded_headers

from adapter.serving.api import custom, external
from adapter.serving.api.custom import ObjectMetric
from adapter.serving.api.discovery import Discovery
from adapter.serving.api.status import Document, encode

PORT = 16444
SERVED = [(external.GROUP, external.VERSION), *((custom.GROUP, version) for version in custom.VERSIONS)]

names = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=8)
objects = st.lists(st.tuples(st.sampled_from(["pods", "deployments.apps"]), names), max_size=5, unique=True)
discoveries = st.builds(
    Discovery,
    external=st.lists(names, max_size=5, unique=True).map(tuple),
    custom=objects.map(lambda pairs: tuple(ObjectMetric(*pair) for pair in pairs)),
    paths=st.just(("/healthz", "/version")),
)


def aggregated_names(discovery: Discovery, group: str, version: str) -> Iterator[str]:
    """Every resource of a version in the aggregated document, named as in the plain list."""
    groups = {item["metadata"]["name"]: item["versions"] for item in discovery.aggregated()["items"]}
    [resources] = [each["resources"] for each in groups[group] if each["version"] == version]
    for resource in resources:
        yield from (f"{resource['resource']}/{each['subresource']}" for each in resource.get("subresources", ()))
        if resource["responseKind"]["kind"]:
            yield resource["resource"]


@pytest.mark.parametrize("name", ["disc-001", "disc-012", "disc-013", "disc-025"])
def test_the_list_of_paths_is_the_recorded_one(name: str) -> None:
    answer = DISCOVERY.path_list_answer(recorded_answer(name)["status"])
    assert body_of(answer) == recorded_answer(name)["body"]
    assert answer.headers == recorded_headers(name)


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("disc-002", DISCOVERY.group_list(PORT)),
        ("disc-004", DISCOVERY.group(external.GROUP)),
        ("disc-005", DISCOVERY.group(external.GROUP)),
        ("disc-006", DISCOVERY.group(custom.GROUP)),
        ("disc-008", DISCOVERY.resource_list(external.GROUP, "v1beta1")),
        ("disc-009", DISCOVERY.resource_list(custom.GROUP, "v1beta1")),
        ("disc-010", DISCOVERY.resource_list(custom.GROUP, "v1beta2")),
    ],
)
def test_the_document_is_the_recorded_one(name: str, document: Document) -> None:
    """Cases 1 to 3."""
    assert encode(document).decode() == recorded_answer(name)["body"]


@pytest.mark.parametrize("name", ["disc-026", "disc-028"])
def test_aggregated_discovery_has_the_recorded_form_and_is_filled(name: str) -> None:
    """Case 4."""
    answer = DISCOVERY.aggregated_answer("")
    assert answer.code == 200
    assert answer.headers | {"Etag": ""} == recorded_headers(name) | {"Etag": ""}
    document = json.loads(body_of(answer))
    assert document | {"items": []} == json.loads(recorded_answer(name)["body"])
    assert [item["metadata"]["name"] for item in document["items"]] == [custom.GROUP, external.GROUP]


def test_an_external_metric_is_a_resource_of_the_aggregated_document() -> None:
    [version] = Discovery(("backlog",), (), ()).aggregated()["items"][1]["versions"]
    resource = {
        "resource": "backlog",
        "responseKind": {"group": "", "version": "", "kind": "ExternalMetricValueList"},
        "scope": "Namespaced",
        "singularResource": "",
        "verbs": ["get"],
    }
    assert version == {"version": "v1beta1", "resources": [resource], "freshness": "Current"}


def test_metrics_of_objects_are_subresources_of_a_resource_without_a_kind() -> None:
    custom_group = DISCOVERY.aggregated()["items"][0]
    assert [version["version"] for version in custom_group["versions"]] == ["v1beta2", "v1beta1"]
    pods, namespaces, _ = custom_group["versions"][0]["resources"]
    kind = {"group": "", "version": "", "kind": "MetricValueList"}
    assert pods == {
        "resource": "pods",
        "responseKind": {"group": "", "version": "", "kind": ""},
        "scope": "Namespaced",
        "singularResource": "",
        "verbs": [],
        "subresources": [{"subresource": "some-metric", "responseKind": kind, "verbs": ["get"]}],
    }
    assert namespaces["scope"] == "Cluster"


def test_what_the_caller_has_is_not_sent_again() -> None:
    """Case 5, disc-029."""
    etag = DISCOVERY.aggregated_answer("").headers["Etag"]
    answer = DISCOVERY.aggregated_answer(etag)
    assert (answer.code, body_of(answer)) == (304, "")
    assert answer.headers == recorded_headers("disc-029") | {"Etag": etag}


@pytest.mark.parametrize(
    ("if_none_match", "code"), [('"x"', 200), ("{}", 304), ('"x", {}', 200), ("W/{}", 200), ("*", 200)]
)
def test_a_validator_is_compared_as_a_whole_as_go_s_servers_do(if_none_match: str, code: int) -> None:
    etag = DISCOVERY.aggregated_answer("").headers["Etag"]
    assert DISCOVERY.aggregated_answer(if_none_match.format(etag)).code == code


def test_what_is_asked_for_every_minute_is_written_once() -> None:
    """Case 7, and with 40 000 workloads: a list has signals, and an answer is there before it is asked for."""
    discovery = Discovery(tuple(f"metric_{number}" for number in range(5_000)), (), ())
    assert discovery.aggregated_answer("").body is discovery.aggregated_answer("").body
    first, second = (discovery.resource_list(external.GROUP, external.VERSION) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first["resources"] is second["resources"]


@pytest.mark.parametrize(
    ("group", "version"), [(external.GROUP, "v1beta9"), (external.GROUP, "v1beta2"), ("nope.k8s.io", "v1"), ("", "")]
)
def test_what_is_not_served_has_no_document(group: str, version: str) -> None:
    """Case 8."""
    assert DISCOVERY.resource_list(group, version) is None


def test_an_unknown_group_has_no_document() -> None:
    assert DISCOVERY.group("nope.k8s.io") is None


@pytest.mark.parametrize(("group", "version"), SERVED)
def test_a_list_is_never_empty(group: str, version: str) -> None:
    nothing = Discovery((), (), ())
    document = nothing.resource_list(group, version)
    assert document is not None
    assert len(document["resources"]) == 1
    assert len(list(aggregated_names(nothing, group, version))) == 1


@given(discoveries)
def test_both_forms_list_the_same(discovery: Discovery) -> None:
    for group, version in SERVED:
        document = discovery.resource_list(group, version)
        assert document is not None
        plain = {resource["name"] for resource in document["resources"]}
        assert set(aggregated_names(discovery, group, version)) == plain


def test_a_name_given_twice_stands_once_in_the_aggregated_document() -> None:
    listed = list(aggregated_names(DISCOVERY, external.GROUP, external.VERSION))
    assert listed == ["my-external-metric", "other-external-metric"]


@given(discoveries, discoveries)
def test_the_validator_changes_if_and_only_if_the_body_does(one: Discovery, other: Discovery) -> None:
    first, second = one.aggregated_answer(""), other.aggregated_answer("")
    assert (first.headers["Etag"] == second.headers["Etag"]) == (first.body == second.body)
    assert (second.headers["Etag"] == one.aggregated_answer("").headers["Etag"]) == (
        one.aggregated() == other.aggregated()
    )


@given(discoveries)
def test_every_listed_path_of_the_api_has_a_document(discovery: Discovery) -> None:
    paths = discovery.path_list()["paths"]
    assert paths == sorted(set(paths))
    for path in paths:
        match path.split("/")[2:]:
            case [group, version]:
                assert discovery.resource_list(group, version) is not None
            case [group] if path.startswith("/apis/"):
                assert discovery.group(group) is not None


@given(discoveries, st.integers(1, 65535))
def test_documents_are_plain_json(discovery: Discovery, port: int) -> None:
    documents = [discovery.group_list(port), discovery.aggregated(), discovery.path_list()]
    documents += [discovery.resource_list(*served) or {} for served in SERVED]
    assert [json.loads(encode(document)) for document in documents] == documents
