"""The streams of a workload in its explanation."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx
from records import growing
from streamed_answers import StreamedTransport

from adapter import config
from adapter.config import PravegaSource, Tls
from adapter.operations.explain import explain, lines
from adapter.operations.rows import Row
from adapter.operations.streams import stream_section
from adapter.sources.pravega import PravegaReader, StreamRead

RECORDED = Path(__file__).parents[1] / "data" / "pravega"
CONFIG = config.parse(
    """
sources: {p: {kind: pravega, url: "http://controller:10080"}}
workloads:
  - namespace: shop
    name: clicks
    read: [{source: p, scope: s1, stream: clicks}, {source: p, scope: s1, stream: gone}]
  - {namespace: shop, name: other, read: [{source: p, scope: s1, stream: other}]}
pipeline: {checkpoint: /var/lib/x}
""",
    "test.yaml",
)


def answer(request: httpx.Request) -> httpx.Response:
    if request.url.path == "/v1/scopes/s1/streams/clicks":
        return httpx.Response(200, content=(RECORDED / "stream_by_events.json").read_bytes())
    return httpx.Response(404)


def opener(
    respond: Callable[[httpx.Request], httpx.Response],
    name: str,
    settings: PravegaSource,
    reads: tuple[StreamRead, ...],
) -> PravegaReader:
    return PravegaReader(name, settings, reads, StreamedTransport(respond))


def rows(respond: Callable[[httpx.Request], httpx.Response], workload: str = "shop/clicks") -> tuple[Row, ...]:
    return stream_section(CONFIG, workload, partial(opener, respond)).rows


def test_each_stream_of_the_workload_has_its_policy_or_the_reason_why_it_is_unknown() -> None:
    assert rows(answer) == (
        Row(name="s1/clicks", note="by rate, target 100 events/s a segment, factor 2, at least 1 segment"),
        Row(
            name="s1/gone",
            note="unknown: p: stream s1/gone of http://controller:10080: it does not exist (deleted?)",
        ),
    )


def test_a_controller_that_does_not_answer_leaves_the_explanation_whole() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("Connection refused")

    text = lines(explain(growing()), stream_section(CONFIG, "shop/clicks", partial(opener, refuse)))
    assert "Streams, as Pravega scales them" in text
    assert text[-1].startswith("  s1/gone      unknown: p: stream s1/gone of http://controller:10080: Connection")


def test_certificates_that_are_missing_here_are_a_reason_too() -> None:
    source = CONFIG.sources["p"].model_copy(update={"url": "https://controller", "tls": Tls(ca_file="/nowhere/ca.pem")})
    section = stream_section(CONFIG.model_copy(update={"sources": {"p": source}}), "shop/clicks")
    assert section.rows[0].note.startswith("unknown: p: tls.ca_file: expected a readable file, got /nowhere/ca.pem ")


def test_a_workload_without_a_stream_has_no_section() -> None:
    assert rows(answer, "shop/orders") == ()
    assert lines(explain(growing()), stream_section(CONFIG, "shop/orders")) == lines(explain(growing()))
