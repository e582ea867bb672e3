"""Any request, asked in process: an answer that can be read, in time, the same whether its caller may wait or not."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from fuzz_answers import check
from fuzz_asking import answered, sound
from fuzz_inputs import Sent, mostly, sent
from fuzz_lengths import examples
from hypothesis import given
from hypothesis import strategies as st

from adapter.serving.api.metrics_api import MetricsApi
from adapter.serving.api.rendering import Response
from conformance.cluster import Cluster
from conformance.identities import NAMES

# Of which byte of a certificate, and into what. Most callers bring theirs as it is.
Changes = list[tuple[int, int]]
_changes = mostly(st.builds(Changes), st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=2), 2)


@examples(400)
@given(sent)
def test_any_request_is_answered_as_http_and_kubernetes_can_read_it(everybody_s: MetricsApi, sending: Sent) -> None:
    """Cases 37 and 38, for any path, query and header."""
    sound(everybody_s, sending)


# What a library says of a certificate that it can read all the same.
@pytest.mark.filterwarnings("ignore:Parsed a serial number", "ignore:Attribute's length")
@examples(300)
@given(sent, st.sampled_from(NAMES), _changes)
def test_whoever_asks_a_cluster_s_server_is_answered_so_too(  # noqa: PLR0913 - three of them are fixtures
    cluster_s: MetricsApi, cluster: Cluster, held: Mapping[str, bytes], sending: Sent, who: str, changes: Changes
) -> None:
    """Cases 52 to 60, for any request: a 500 is a review that breaks (case 57), and nothing else is."""
    certificate = _altered(held[who], changes) if who in held else None
    sound(cluster_s, replace(sending, certificate=certificate), cluster.reviews)


def _altered(certificate: bytes, changes: Changes) -> bytes:
    changed = bytearray(certificate)
    for place, value in changes:
        changed[place % len(changed)] = value
    return bytes(changed)


@examples(200)
@given(sent)
def test_a_document_says_the_same_in_every_form(everybody_s: MetricsApi, sending: Sent) -> None:
    said = check(answered(everybody_s, _accepting(sending, "application/json")))
    for form in ("application/yaml", "application/vnd.kubernetes.protobuf"):
        response = answered(everybody_s, _accepting(sending, form))
        told = check(response)
        # Some documents are written in JSON alone, which is a 406 in the form that was asked for.
        if _media_type(response) == form and response.code != 406:
            assert told == {key: said[key] for key in told}
            assert form != "application/yaml" or told == said


def _accepting(sending: Sent, form: str) -> Sent:
    others = [pair for pair in sending.headers if pair[0] != b"accept"]
    return replace(sending, headers=(*others, (b"accept", form.encode())))


def _media_type(response: Response) -> str:
    return dict(response.headers).get(b"content-type", b"").decode()
