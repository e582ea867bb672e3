"""Which form an answer has: cases 40-43, and 6 as far as the header alone decides it."""

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.serving.api.negotiation import (
    AGGREGATED,
    CUSTOM,
    DISCOVERY,
    EXTERNAL,
    JSON,
    PROTOBUF,
    YAML,
    MediaType,
    Offer,
    check_acceptable,
    negotiate,
    of_error,
    takes_aggregated,
)
from adapter.serving.api.status import Answer, Refusal

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = V2.replace("v=v2;", "v=v2beta1;")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
ALL = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"


def refused(accept: str, offer: Offer) -> Answer:
    with pytest.raises(Refusal) as raised:
        negotiate(accept, offer)
    return raised.value.answer


@pytest.mark.parametrize(
    ("accept", "name"),
    [
        pytest.param("", JSON, id="case 40, neg-110, neg-111: none"),
        pytest.param("*/*", JSON, id="case 40, neg-109"),
        pytest.param("application/json; charset=utf-8", JSON, id="case 40, neg-122"),
        pytest.param(
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", JSON, id="case 40, neg-117: browser"
        ),
        pytest.param("application/vnd.kubernetes.protobuf, */*", PROTOBUF, id="case 41, neg-113: the HPA"),
        pytest.param("application/vnd.kubernetes.protobuf", PROTOBUF, id="case 42, neg-112"),
        pytest.param("application/yaml", YAML, id="neg-114"),
        pytest.param(f"{TABLE},application/json", JSON, id="case 43, neg-119"),
        pytest.param("application/json;stream=watch", JSON, id="neg-121"),
        pytest.param("application/json;q=0", JSON, id="neg-123"),
        pytest.param("application/json,application/yaml", JSON, id="the first"),
        pytest.param("application/yaml,application/json", YAML, id="the first, the other way round"),
        pytest.param("application/json;q=0.1,application/yaml;q=0.9", YAML, id="the preferred"),
        pytest.param("application/json;q=x,application/yaml;q=0.1", YAML, id="a quality that is none"),
        pytest.param("*/*;q=0.5,application/yaml;q=0.4", YAML, id="what is named, before what is not"),
        pytest.param("application/cbor,application/*,application/yaml;q=0.1", YAML, id="a route knows no halves"),
        pytest.param("garbage;;=,application/json;;a;b=c=d", JSON, id="what cannot be read is passed over"),
        pytest.param("application/json;as=", JSON, id="nothing is asked for"),
        pytest.param("application/json;sv=v1", JSON, id="the version of lists"),
    ],
)
def test_a_metric_is_written_as_its_caller_prefers(accept: str, name: str) -> None:
    assert negotiate(accept, EXTERNAL) == MediaType(name)


@pytest.mark.parametrize(
    "accept",
    [
        pytest.param("application/xml", id="case 43, neg-115"),
        pytest.param("text/html", id="neg-116"),
        pytest.param("APPLICATION/JSON", id="neg-124"),
        pytest.param("garbage", id="case 43, neg-125"),
        "application/cbor",
        "application/*",
        "*",
        ",",
        "application/json/x",
    ],
)
def test_a_route_refuses_what_it_does_not_name(accept: str) -> None:
    answer = refused(accept, EXTERNAL)
    assert answer.document["message"] == f"406: Not Acceptable\n\nAvailable representations: {ALL}, {STREAMS}"
    assert (answer.code, answer.document["reason"], answer.document["details"]) == (406, "NotAcceptable", {})
    assert refused(accept, CUSTOM).document == answer.document


def test_case_6_disc_032_discovery_has_no_streams_to_offer() -> None:
    answer = refused("text/html", DISCOVERY)
    assert answer.document["message"] == f"406: Not Acceptable\n\nAvailable representations: {ALL}"


def test_a_route_of_one_representation_offers_that() -> None:
    check_acceptable("application/json;q=0", [JSON])
    with pytest.raises(Refusal, match=r"representations: application/json$"):
        check_acceptable("application/yaml", [JSON])


@pytest.mark.parametrize(
    ("accept", "offer"),
    [
        pytest.param(TABLE, EXTERNAL, id="case 43, neg-118"),
        pytest.param(TABLE, CUSTOM, id="case 43, of objects"),
        pytest.param(PARTIAL, CUSTOM, id="objects have no other form"),
        pytest.param(V2, DISCOVERY, id="case 6, disc-031"),
        pytest.param(V2BETA1, DISCOVERY, id="case 6, disc-030"),
        pytest.param("application/json;as=Table", EXTERNAL, id="of no group"),
        pytest.param("application/json;v=v1", EXTERNAL, id="a version of nothing"),
        pytest.param("application/json;stream=x", EXTERNAL, id="another stream"),
        pytest.param("application/yaml;stream=watch", EXTERNAL, id="a stream of YAML"),
        pytest.param("application/json;sv=v2", EXTERNAL, id="another version of lists"),
        pytest.param("application/json;sv=v1", CUSTOM, id="a version of lists where there is none"),
    ],
)
def test_a_form_that_is_not_served_is_a_406_of_another_text(accept: str, offer: Offer) -> None:
    answer = refused(accept, offer)
    assert answer.document["message"] == f"only the following media types are accepted: {ALL}"
    assert answer.code == 406
    assert "details" not in answer.document


def test_neg_120_of_external_metrics_another_form_may_be_asked_for() -> None:
    transform = negotiate(PARTIAL, EXTERNAL).transform
    assert transform is not None
    assert transform.kind == "PartialObjectMetadataList"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("application/json;pretty=1", MediaType(JSON, indented=True)),
        ("application/json;pretty=true", MediaType(JSON)),
        ("application/yaml;pretty=1", MediaType(YAML, indented=True)),
    ],
)
def test_json_for_people_may_be_asked_for(accept: str, expected: MediaType) -> None:
    assert negotiate(accept) == expected


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", MediaType(JSON)),
        ("application/yaml", MediaType(YAML)),
        ("application/vnd.kubernetes.protobuf", MediaType(PROTOBUF)),
        ("application/*", MediaType(JSON)),
        (f"{TABLE},application/yaml", MediaType(YAML)),
        ("text/html", MediaType(JSON, indented=True)),
        (TABLE, MediaType(JSON, indented=True)),
        (",", MediaType(JSON, indented=True)),
    ],
)
def test_an_error_is_told_whatever_is_accepted(accept: str, expected: MediaType) -> None:
    assert of_error(accept) == expected


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        pytest.param(V2, V2, id="case 4, disc-026"),
        pytest.param(f"{V2},{V2BETA1},application/json", V2, id="case 4, disc-027: client-go"),
        pytest.param(f"{V2};profile=nopeer,{V2},application/json", V2, id="case 4, disc-028"),
        pytest.param(f"{V2BETA1},{V2}", V2, id="the other version first"),
        pytest.param(f"application/json,{V2}", V2, id="plain JSON first"),
        pytest.param(V2.replace("json", "yaml"), V2.replace("json", "yaml"), id="YAML"),
        pytest.param(V2.replace("json", "vnd.kubernetes.protobuf"), f"{PROTOBUF}{V2[len(JSON) :]}", id="protobuf"),
        pytest.param(V2.replace("application/json", "*/*"), V2, id="anything"),
        pytest.param("application/json", None, id="plain JSON"),
        pytest.param("", None, id="nothing"),
        pytest.param(V2BETA1, None, id="case 6, disc-030"),
        pytest.param(V2.replace("v=v2;", ""), None, id="of no version"),
    ],
)
def test_aggregated_discovery_is_for_those_who_take_it(accept: str, content_type: str | None) -> None:
    found = takes_aggregated(accept)
    assert (found and found.content_type) == content_type


@given(st.text("application/jsonyml*;=q0.5,vgd -", max_size=60))
def test_any_header_is_read(accept: str) -> None:
    for offer in (EXTERNAL, DISCOVERY, AGGREGATED):
        with suppress(Refusal):
            assert negotiate(accept, offer).name in (JSON, YAML, PROTOBUF)


def test_a_header_of_any_length_is_read() -> None:
    assert negotiate(f"application/json,{'a/b;q=0.5,' * 20_000}").name == JSON


@pytest.mark.parametrize(("before", "is_read"), [(99, True), (100, False)])
def test_a_hundred_clauses_are_read_and_no_more(before: int, is_read: bool) -> None:
    assert (takes_aggregated(f"{'text/html,' * before}{V2}") is not None) == is_read


@pytest.mark.parametrize("quality", ["1" * 20_000 + "x", "1." + "1" * 20_000 + "x", "1e" + "1" * 20_000 + "x"])
def test_a_quality_takes_no_longer_than_its_length_says(quality: str) -> None:
    began_s = time.perf_counter()
    assert of_error(f"application/json;q={quality}") == MediaType(JSON)
    assert time.perf_counter() - began_s < 0.5  # quadratic takes ten seconds
