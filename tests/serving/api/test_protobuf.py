"""The protobuf form: cases 41 and 42. The bytes are of a Go server, recorded."""

from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.serving.api import custom, external
from adapter.serving.api.custom import ObjectQuestion, ObjectValue
from adapter.serving.api.discovery import Discovery
from adapter.serving.api.external import ExternalValue
from adapter.serving.api.protobuf import written
from adapter.serving.api.selectors import parse
from adapter.serving.api.status import Document, failure, not_found

AT_S = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
PODS = [ObjectValue("Pod", "/v1", "ns", name, "300m", AT_S) for name in ("pod-a", "pod-b")]
QUESTION = ObjectQuestion("ns", "pods", "*", "some-metric", metric_selector=parse("a=b,c"))
DISCOVERY = Discovery(["my-external-metric", "other-external-metric", "my-external-metric"], [], [])

RECORDED = {
    "disc-033": (
        "azhzAAoVCgJ2MRIPQVBJUmVzb3VyY2VMaXN0EuQBCh9leHRlcm5hbC5tZXRyaWNzLms4cy5pby92MWJldGExEj4KEm15LWV4dGVy"
        "bmFsLW1ldHJpYxABGhdFeHRlcm5hbE1ldHJpY1ZhbHVlTGlzdCIFCgNnZXQyAEIASgBSABJBChVvdGhlci1leHRlcm5hbC1tZXRy"
        "aWMQARoXRXh0ZXJuYWxNZXRyaWNWYWx1ZUxpc3QiBQoDZ2V0MgBCAEoAUgASPgoSbXktZXh0ZXJuYWwtbWV0cmljEAEaF0V4dGVy"
        "bmFsTWV0cmljVmFsdWVMaXN0IgUKA2dldDIAQgBKAFIAGgAiAA=="
    ),
    "neg-112": (
        "azhzAAo6Ch9leHRlcm5hbC5tZXRyaWNzLms4cy5pby92MWJldGExEhdFeHRlcm5hbE1ldHJpY1ZhbHVlTGlzdBJJCgYKABIAGgAS"
        "PwoSbXktZXh0ZXJuYWwtbWV0cmljEgoKA2ZvbxIDYmFyEg0KAm5zEgdkZWZhdWx0GggIpevcygYQACoECgI0MhoAIgA="
    ),
    "without labels": (
        "azhzAAo6Ch9leHRlcm5hbC5tZXRyaWNzLms4cy5pby92MWJldGExEhdFeHRlcm5hbE1ldHJpY1ZhbHVlTGlzdBIhCgYKABIAGgAS"
        "FwoKbmlsLWxhYmVscxoAKgcKBTE1MDBtGgAiAA=="
    ),
    "of objects, v1beta1": (
        "azhzAAowCh1jdXN0b20ubWV0cmljcy5rOHMuaW8vdjFiZXRhMRIPTWV0cmljVmFsdWVMaXN0ErIBCgYKABIAGgASUwobCgNQb2QS"
        "Am5zGgVwb2QtYSIAKgMvdjEyADoAEgtzb21lLW1ldHJpYxoICKXr3MoGEAAqBgoEMzAwbTIVCgYKAWESAWISCwoBYxIGRXhpc3Rz"
        "ElMKGwoDUG9kEgJucxoFcG9kLWIiACoDL3YxMgA6ABILc29tZS1tZXRyaWMaCAil69zKBhAAKgYKBDMwMG0yFQoGCgFhEgFiEgsK"
        "AWMSBkV4aXN0cxoAIgA="
    ),
    "of objects, v1beta2": (
        "azhzAAowCh1jdXN0b20ubWV0cmljcy5rOHMuaW8vdjFiZXRhMhIPTWV0cmljVmFsdWVMaXN0ErYBCgYKABIAGgASVQobCgNQb2QS"
        "Am5zGgVwb2QtYSIAKgMvdjEyADoAEiQKC3NvbWUtbWV0cmljEhUKBgoBYRIBYhILCgFjEgZFeGlzdHMaCAil69zKBhAAKgYKBDMw"
        "MG0SVQobCgNQb2QSAm5zGgVwb2QtYiIAKgMvdjEyADoAEiQKC3NvbWUtbWV0cmljEhUKBgoBYRIBYhILCgFjEgZFeGlzdHMaCAil"
        "69zKBhAAKgYKBDMwMG0aACIA"
    ),
    "Status": (
        "azhzAAoMCgJ2MRIGU3RhdHVzElwKBgoAEgAaABIHRmFpbHVyZRo8dGhlIHNlcnZlciBjb3VsZCBub3QgZmluZCB0aGUgbWV0cmlj"
        "IGUtbm90Zm91bmQgZm9yIGV4dGVybmFsIghOb3RGb3VuZDCUAxoAIgA="
    ),
    "APIGroupList": (
        "azhzAAoQCgASDEFQSUdyb3VwTGlzdBKMAgqAAQoVY3VzdG9tLm1ldHJpY3MuazhzLmlvEigKHWN1c3RvbS5tZXRyaWNzLms4cy5p"
        "by92MWJldGExEgd2MWJldGExGigKHWN1c3RvbS5tZXRyaWNzLms4cy5pby92MWJldGExEgd2MWJldGExIhMKCTAuMC4wLjAvMBIG"
        "OjE2NDQ0CoYBChdleHRlcm5hbC5tZXRyaWNzLms4cy5pbxIqCh9leHRlcm5hbC5tZXRyaWNzLms4cy5pby92MWJldGExEgd2MWJl"
        "dGExGioKH2V4dGVybmFsLm1ldHJpY3MuazhzLmlvL3YxYmV0YTESB3YxYmV0YTEiEwoJMC4wLjAuMC8wEgY6MTY0NDQaACIA"
    ),
    "APIGroup": (
        "azhzAAoOCgJ2MRIIQVBJR3JvdXAScQoXZXh0ZXJuYWwubWV0cmljcy5rOHMuaW8SKgofZXh0ZXJuYWwubWV0cmljcy5rOHMuaW8v"
        "djFiZXRhMRIHdjFiZXRhMRoqCh9leHRlcm5hbC5tZXRyaWNzLms4cy5pby92MWJldGExEgd2MWJldGExGgAiAA=="
    ),
}


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("disc-033", DISCOVERY.resource_list("external.metrics.k8s.io", "v1beta1")),
        (
            "neg-112",
            external.listing([ExternalValue("my-external-metric", {"ns": "default", "foo": "bar"}, "42", AT_S)]),
        ),
        ("without labels", external.listing([ExternalValue("nil-labels", None, "1500m")])),
        ("of objects, v1beta1", custom.listing("v1beta1", QUESTION, PODS)),
        ("of objects, v1beta2", custom.listing("v1beta2", QUESTION, PODS)),
        ("Status", not_found("the server could not find the metric e-notfound for external").document),
        ("APIGroupList", DISCOVERY.group_list(16444)),
        ("APIGroup", DISCOVERY.group("external.metrics.k8s.io")),
    ],
)
def test_cases_41_and_42_the_bytes_are_those_of_a_go_server(name: str, document: Document) -> None:
    assert written(document) == b64decode(RECORDED[name])


def test_a_kind_without_a_message_has_no_bytes() -> None:
    assert written({"kind": "Table", "apiVersion": "meta.k8s.io/v1"}) is None


# A reader that knows nothing of the messages: field number -> what it held, in its order.
Read = dict[int, list[Any]]


def read(data: bytes) -> Read:
    fields: Read = {}
    at = iter(data)
    while (tag := varint(at, None)) is not None:
        number, wire_type = divmod(tag, 8)
        assert wire_type in (0, 2)
        value = varint(at, 0)
        fields.setdefault(number, []).append(bytes(next(at) for _ in range(value or 0)) if wire_type == 2 else value)
    assert list(fields) == sorted(fields)
    return fields


def varint(data: Iterator[int], at_the_end: int | None) -> int | None:
    number = shift = 0
    for octet in data:
        number, shift = number | (octet & 0x7F) << shift, shift + 7
        if octet < 0x80:
            return number
    return at_the_end


def text(fields: Read, number: int) -> str:
    (content,) = fields[number]
    return bytes(content).decode()


def content_of(document: Document) -> Read:
    data = written(document)
    assert data is not None
    assert data[:4] == b"k8s\0"
    envelope = read(data[4:])
    type_meta = read(envelope[1][0])
    assert (text(type_meta, 1), text(type_meta, 2)) == (document.get("apiVersion", ""), document["kind"])
    assert (text(envelope, 3), text(envelope, 4)) == ("", "")
    return read(envelope[2][0])


texts = st.text(max_size=200)
seconds = st.none() | st.integers(0, 2**34)
values = st.builds(
    ExternalValue,
    texts,
    st.none() | st.dictionaries(texts, texts, max_size=3),
    texts,
    seconds.map(lambda at_s: at_s if at_s is None else float(at_s)),
    st.none() | st.integers(0, 2**62),
)


@given(st.lists(values, max_size=3))
def test_what_was_written_of_external_metrics_is_read_by_their_numbers(given_values: list[ExternalValue]) -> None:
    items = [read(item) for item in content_of(external.listing(given_values)).get(2, [])]
    assert len(items) == len(given_values)
    for item, value in zip(items, given_values, strict=True):
        assert text(item, 1) == value.metric
        pairs = [read(pair) for pair in item.get(2, [])]
        assert [(text(pair, 1), text(pair, 2)) for pair in pairs] == sorted((value.labels or {}).items())
        time = read(item[3][0])
        assert time == ({} if value.at_s is None else {1: [int(value.at_s)], 2: [0]})
        assert item.get(4) == (None if value.window_s is None else [value.window_s])
        assert text(read(item[5][0]), 1) == value.value


@given(st.integers(0, 2**31 - 1), texts, texts, st.none() | texts)
def test_what_was_written_of_an_error_is_read_by_its_numbers(
    code: int, reason: str, fault: str, kind: str | None
) -> None:
    details = None if kind is None else {"kind": kind, "causes": [{"message": fault}]}
    content = content_of(failure(code, reason, fault, details).document)
    assert (text(content, 2), text(content, 3), text(content, 4)) == ("Failure", fault, reason)
    assert content[6] == [code]
    assert (5 in content) == (details is not None)
    if details is not None:
        told = read(content[5][0])
        assert (text(told, 3), text(read(told[4][0]), 2)) == (kind, fault)


def test_a_negative_number_is_its_64_bits() -> None:
    (item,) = content_of(external.listing([ExternalValue("m", {}, "1", -1.0, window_s=-2)]))[2]
    fields = read(item)
    assert (read(fields[3][0])[1], fields[4]) == ([2**64 - 1], [2**64 - 2])


def test_aggregated_discovery_names_groups_versions_and_metrics() -> None:
    groups = [read(group) for group in content_of(DISCOVERY.aggregated())[2]]
    assert [text(read(group[1][0]), 1) for group in groups] == ["custom.metrics.k8s.io", "external.metrics.k8s.io"]
    version = read(groups[1][2][0])
    assert (text(version, 1), text(version, 3)) == ("v1beta1", "Current")
    resource = read(version[2][0])
    assert (text(resource, 1), text(resource, 3), text(resource, 5)) == ("my-external-metric", "Namespaced", "get")
    assert text(read(resource[2][0]), 3) == "ExternalMetricValueList"
    parent = read(read(groups[0][2][0])[2][0])
    subresource = read(parent[8][0])
    assert (text(parent, 1), text(subresource, 1), text(subresource, 4)) == ("pods", "custommetrics", "get")
