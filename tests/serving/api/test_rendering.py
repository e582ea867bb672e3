"""What goes over the wire: cases 6, 35, 40-43 as far as one answer shows them."""

import gzip
import json
import re
from uuid import UUID

import pytest
from msgspec import structs

from adapter.serving.api import external
from adapter.serving.api.custom import ObjectQuestion
from adapter.serving.api.custom import listing as list_objects
from adapter.serving.api.external import ExternalValue
from adapter.serving.api.negotiation import JSON, PROTOBUF, YAML
from adapter.serving.api.rendering import Response, respond, wants_indented
from adapter.serving.api.request import MustWait, Request
from adapter.serving.api.status import Answer, bad_request, not_found, unauthorized

PATH = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/my-external-metric"
ONE = external.listing([ExternalValue("m", {"foo": "bar"}, "42")])
MANY = external.listing([ExternalValue("m", {"foo": str(number)}, "42") for number in range(6000)])
NONE = external.listing([])
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
AGGREGATED = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": []}


def asked(accept: str = "", query: str = "", **headers: str) -> Request:
    pairs = [("accept", accept)] if accept else []
    return Request.of(
        "GET", PATH + query, [*pairs, *((name.replace("_", "-"), value) for name, value in headers.items())]
    )


def headers_of(response: Response) -> dict[str, str]:
    return {name.decode(): value.decode("latin-1") for name, value in response.headers}


def test_an_answer_is_compact_json_with_the_headers_of_every_answer() -> None:
    response = respond(asked(), Answer(200, ONE))
    assert response.code == 200
    assert response.body == (
        b'{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","metadata":{},"items":'
        b'[{"metricName":"m","metricLabels":{"foo":"bar"},"timestamp":null,"value":"42"}]}\n'
    )
    headers = headers_of(response)
    assert UUID(headers.pop("audit-id"))
    assert headers == {
        "cache-control": "no-cache, private",
        "content-type": "application/json",
    }


@pytest.mark.parametrize(
    ("accept", "content_type", "begin"),
    [
        ("application/yaml", YAML, b"apiVersion: external"),
        ("application/vnd.kubernetes.protobuf, */*", PROTOBUF, b"k8s\0"),
        ("application/json;pretty=1", JSON, b'{\n  "kind"'),
    ],
)
def test_an_answer_is_in_the_form_that_is_preferred(accept: str, content_type: str, begin: bytes) -> None:
    response = respond(asked(accept), Answer(200, ONE))
    assert (response.code, headers_of(response)["content-type"]) == (200, content_type)
    assert response.body.startswith(begin)


@pytest.mark.parametrize("answer", [Answer(200, ONE), not_found("m")], ids=["an answer", "an error"])
def test_yaml_is_written_where_nobody_else_has_to_wait(answer: Answer) -> None:
    hurried = structs.replace(asked("application/yaml"), patient=False)
    with pytest.raises(MustWait):
        respond(hurried, answer)
    assert respond(structs.replace(hurried, patient=True), answer).code == answer.code


@pytest.mark.parametrize(
    ("query", "agent", "indented"),
    [
        pytest.param("?pretty=true", "", True, id="case 35, ext-070"),
        pytest.param("", "curl/8.5.0", True, id="case 35, ext-071"),
        pytest.param("", "kubectl/v1.32.4", False, id="case 35, ext-072"),
        pytest.param("", "Mozilla/5.0 x", True, id="case 35, ext-073"),
        pytest.param("", "Wget/1.2", True, id="Wget"),
        pytest.param("", "Curl/8", False, id="another program"),
        pytest.param("?pretty=1", "", True, id="one"),
        pytest.param("?pretty=T", "", True, id="short"),
        pytest.param("?pretty=yes", "", False, id="no boolean"),
        pytest.param("?pretty=tRUE", "", False, id="no boolean either"),
        pytest.param("?pretty=0", "curl/8", False, id="said so"),
        pytest.param("?pretty=x", "curl/8", False, id="said something"),
        pytest.param("?pretty=", "curl/8", True, id="said nothing"),
        pytest.param("?pretty=false&pretty=true", "", False, id="the first"),
    ],
)
def test_people_get_indented_json(query: str, agent: str, indented: bool) -> None:
    request = asked("", query, user_agent=agent)
    assert wants_indented(request) is indented
    body = respond(request, Answer(200, NONE)).body
    assert body.startswith(b'{\n  "kind": "ExternalMetricValueList",\n' if indented else b'{"kind":')
    assert body.endswith(b"}" if indented else b"}\n")


def test_errors_are_indented_for_people_too() -> None:
    assert respond(asked("", "?pretty=true"), unauthorized()).body.startswith(b'{\n  "kind": "Status"')


def test_what_is_for_people_alone_is_indented_whoever_asks() -> None:
    response = respond(asked("application/yaml"), Answer(404, {"paths": ["/apis"]}, indented=True))
    assert response.body == b'{\n  "paths": [\n    "/apis"\n  ]\n}'
    assert headers_of(response)["content-type"] == JSON


@pytest.mark.parametrize(
    ("accept", "content_type", "begin"),
    [
        ("application/yaml", YAML, b"apiVersion: v1\ncode: 400"),
        (PROTOBUF, PROTOBUF, b"k8s\0"),
        ("application/*", JSON, b'{"kind":"Status"'),
        ("text/html", JSON, b'{\n  "kind": "Status"'),
        (TABLE, JSON, b'{\n  "kind": "Status"'),
        (f"{TABLE},application/json", JSON, b'{"kind":"Status"'),
    ],
)
def test_an_error_keeps_its_code_whatever_is_accepted(accept: str, content_type: str, begin: bytes) -> None:
    response = respond(asked(accept), bad_request("no"))
    assert (response.code, headers_of(response)["content-type"]) == (400, content_type)
    assert response.body.startswith(begin)


@pytest.mark.parametrize(
    ("accept", "begin"),
    [
        pytest.param("text/html", "406: Not Acceptable\n\nAvailable representations:", id="neg-116"),
        pytest.param(TABLE, "only the following media types are accepted:", id="case 43, neg-118"),
    ],
)
def test_an_answer_that_cannot_be_written_is_a_406_for_people(accept: str, begin: str) -> None:
    response = respond(asked(accept), Answer(200, ONE))
    assert response.code == 406
    assert json.loads(response.body)["message"].startswith(begin)
    assert response.body.startswith(b'{\n  "kind": "Status"')


def test_the_406_of_a_route_is_told_in_the_form_that_was_almost_asked_for() -> None:
    response = respond(asked("application/*"), Answer(200, ONE))
    assert response.code == 406
    assert response.body.startswith(b'{"kind":"Status"')


@pytest.mark.parametrize(
    ("accept", "document", "code", "message"),
    [
        pytest.param(PARTIAL, ONE, 500, "object does not implement the Object interfaces", id="neg-120"),
        pytest.param(
            PARTIAL.replace("List", ""),
            ONE,
            406,
            "you requested PartialObjectMetadata, but the requested object is a list "
            "(*external_metrics.ExternalMetricValueList)",
            id="of one object",
        ),
    ],
)
def test_a_metric_has_no_metadata_of_objects(accept: str, document: dict[str, object], code: int, message: str) -> None:
    response = respond(asked(accept), Answer(200, document))
    told = json.loads(response.body)
    assert (response.code, told["code"], told["message"]) == (code, code, message)
    assert ("reason" in told) == (code == 406)


def test_no_metrics_have_it_all_the_same() -> None:
    response = respond(asked(PARTIAL), Answer(200, NONE))
    assert json.loads(response.body) == {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "items": None,
    }
    assert headers_of(response)["content-type"] == JSON


def test_metrics_of_objects_have_no_other_form() -> None:
    document = list_objects("v1beta2", ObjectQuestion("ns", "pods", "*", "m"), [])
    assert respond(asked(PARTIAL), Answer(200, document)).code == 406


def test_disc_026_aggregated_discovery_says_what_it_is() -> None:
    answer = Answer(200, AGGREGATED, headers={"Cache-Control": "public", "Vary": "Accept", "Etag": '"X"'})
    headers = headers_of(respond(asked(V2), answer))
    del headers["audit-id"]
    assert headers == {"cache-control": "public", "content-type": V2, "vary": "Accept", "etag": '"X"'}


def test_a_kind_that_protobuf_does_not_know_is_a_406_in_protobuf() -> None:
    response = respond(asked(PROTOBUF), Answer(200, {"kind": "Pod", "apiVersion": "v1"}))
    assert response.code == 406
    assert b"a Pod has no form in protobuf, accept application/json or application/yaml" in response.body


def test_a_body_is_sent_as_it_is() -> None:
    answer = Answer(200, body=b"ok", headers={"Content-Type": "text/plain", "X-Content-Type-Options": "nosniff"})
    response = respond(asked("application/yaml", "?pretty=true"), answer)
    assert response.body == b"ok"
    assert headers_of(response)["content-type"] == "text/plain"
    assert headers_of(response)["x-content-type-options"] == "nosniff"


def test_case_5_nothing_is_sent_of_what_did_not_change() -> None:
    response = respond(asked(), Answer(304, body=b"", headers={"Etag": '"X"'}))
    assert response.body == b""
    assert not {"content-length", "content-type"} & headers_of(response).keys()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("my-id", "my-id"),
        ("a b,<x>", "a b,<x>"),
        ("é", "é"),
        ("x" * 65, "x" * 64),
    ],
)
def test_the_audit_id_of_a_request_is_that_of_its_answer(given: str, told: str) -> None:
    assert headers_of(respond(asked(audit_id=given), not_found("x")))["audit-id"] == told


@pytest.mark.parametrize("given", ["", "a\rSet-Cookie: x", "a\x00", "日"])
def test_what_is_no_header_is_no_audit_id(given: str) -> None:
    one, other = (headers_of(respond(asked(audit_id=given), unauthorized()))["audit-id"] for _ in range(2))
    assert re.fullmatch(r"[\da-f-]{36}", one)
    assert one != other


@pytest.mark.parametrize("form", [JSON, YAML, PROTOBUF])
def test_a_large_answer_is_compressed_for_those_who_take_it(form: str) -> None:
    plain = respond(asked(form), Answer(200, MANY))
    small = respond(asked(form, accept_encoding="br, gzip"), Answer(200, MANY))
    assert len(plain.body) > 128 * 1024
    headers = headers_of(small)
    assert (headers["content-encoding"], headers["vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(small.body) == plain.body
    assert len(small.body) < len(plain.body) / 5


@pytest.mark.parametrize("encodings", ["", "br", "gzip;q=1", "xgzip"])
def test_a_large_answer_is_sent_as_it_is_to_all_others(encodings: str) -> None:
    response = respond(asked(accept_encoding=encodings), Answer(200, MANY))
    assert "content-encoding" not in headers_of(response)
    assert json.loads(response.body) == MANY


def test_a_small_answer_is_not_worth_compressing() -> None:
    assert "content-encoding" not in headers_of(respond(asked(accept_encoding="gzip"), Answer(200, ONE)))


def test_what_a_browser_could_take_for_html_is_escaped() -> None:
    body = respond(asked(), bad_request("<b>&\u2028\u2029")).body
    assert b'"message":"\\u003cb\\u003e\\u0026\\u2028\\u2029"' in body
