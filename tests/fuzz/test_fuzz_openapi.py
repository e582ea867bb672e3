"""Requests made from our own description of the API, right ones and wrong ones: it describes every answer."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
import requests
import schemathesis
from fuzz_lengths import examples
from fuzz_servers import serving
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from adapter.serving.api.custom import VERSIONS
from adapter.serving.api.metrics_api import MetricsApi
from adapter.serving.api.openapi_documents import version_2, version_3
from adapter.serving.api.status import Document

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
MEDIA_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "*/*", "text/html")
# What there is, for nobody guesses its names.
SERIES = {"namespace": "shop", "resource": "required_workers"}
OBJECTS = (
    {"namespace": "shop", "resource": "deployments.apps", "name": "orders", "subresource": "required_workers"},
    {"namespace": "shop", "resource": "deployments.apps", "name": "*", "subresource": "required_workers"},
    {"namespace": "shop", "resource": "pods", "name": "*", "subresource": "utilization"},
)
_OF_OBJECTS = "namespaces/{namespace}/{resource}/{name}/{subresource}"
NUMBERS = [
    ("apis/external.metrics.k8s.io/v1beta1", "namespaces/{namespace}/{resource}", SERIES),
    *[(f"apis/custom.metrics.k8s.io/{version}", _OF_OBJECTS, each) for version in VERSIONS for each in OBJECTS],
]
Operation = Any  # of schemathesis, which has types of its own for what it makes of a document


def made(documents: Mapping[str, Document], *modes: GenerationMode) -> Iterator[Any]:
    """Every operation with requests that are right, or wrong where there is a parameter to be wrong in."""
    for name, document in documents.items():
        for found in schemathesis.openapi.from_dict(document).get_all_operations():
            operation: Operation = found.ok()  # type: ignore[union-attr]  # or the test fails
            for mode in modes:
                if mode is GenerationMode.POSITIVE or operation.definition.raw["parameters"]:
                    yield pytest.param(operation, mode, id=f"{name} {operation.path} {mode.value}")


@cache
def schema(name: str) -> Any:
    return schemathesis.openapi.from_dict(version_3()[name])


@pytest.fixture(scope="module")
def address(everybody_s: MetricsApi) -> Iterator[str]:
    with serving(everybody_s) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as opened:
        opened.trust_env = False
        yield opened


@pytest.mark.parametrize(
    ("operation", "mode"), [*made(version_3(), *GenerationMode), *made({"v2": version_2()}, GenerationMode.POSITIVE)]
)
def test_every_answer_is_one_that_is_described(
    address: str, session: requests.Session, operation: Operation, mode: GenerationMode
) -> None:
    checks = CHECKS if operation.schema.raw_schema.get("openapi") else CHECKS[:3]  # 2.0 has no word for null

    @examples(8, share=0.02)
    @given(
        operation.as_strategy(generation_mode=mode),
        st.sampled_from(({}, SERIES, *OBJECTS)),
        st.sampled_from(MEDIA_TYPES),
    )
    def is_described(case: Any, known: Mapping[str, str], accepted: str) -> None:
        case.path_parameters.update({name: known[name] for name in case.path_parameters if name in known})
        case.call_and_validate(base_url=address, session=session, headers={"Accept": accepted}, checks=checks)

    is_described()


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"labelSelector": "workload=orders"}, 200),
        ({"labelSelector": "workload=orders", "pretty": "true"}, 200),
        ({"labelSelector": "a b"}, 400),
        ({"limit": "x"}, 400),
        ({"timeout": "1"}, 400),
        ({"fieldSelector": "a=b"}, 400),
        ({"resourceVersionMatch": "Exact"}, None),
        ({"watch": "true", "labelSelector": "workload=orders"}, None),
    ],
)
@pytest.mark.parametrize("accepted", MEDIA_TYPES[:3])
def test_every_number_and_every_fault_is_as_described(
    address: str, session: requests.Session, query: Mapping[str, str], code: int | None, accepted: str
) -> None:
    for document, path, names in NUMBERS:
        operation: Operation = schema(document)[f"/{document}/{path}"]["GET"]
        case = operation.Case(path_parameters=dict(names), query=dict(query))
        answer = case.call_and_validate(base_url=address, session=session, headers={"Accept": accepted}, checks=CHECKS)
        assert code in (answer.status_code, None)  # the two groups differ in some
