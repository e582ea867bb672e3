"""The reader on answers that a real controller gave; data/pravega/*.json are their bodies."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest
import trustme
from sample_rows import Row, rows_of
from secure_server import answering, client_files, secure_server
from streamed_answers import StreamedTransport

from adapter import config
from adapter.config import PravegaSource, Tls
from adapter.errors import SourceError
from adapter.sources.pravega import PravegaReader, StreamRead, stream_reads
from adapter.sources.sample_table import FAULT

RECORDED = Path(__file__).parents[1] / "data" / "pravega"
SETTINGS = PravegaSource(kind="pravega", url="http://controller:10080/")
CLICKS = StreamRead("shop/clicks", "s1", "clicks")
CREATED_S, SPLIT_S, MERGED_S = 1795283939, 1795283941, 1795283944  # the seconds of the recorded events
Answer = Callable[[httpx.Request], httpx.Response]


def reader(answer: Answer, *streams: StreamRead) -> PravegaReader:
    return PravegaReader("pravega", SETTINGS, streams or (CLICKS,), StreamedTransport(answer))


def always(status: int, body: bytes = b"") -> Answer:
    return lambda request: httpx.Response(status, content=body)


def history(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, content=(RECORDED / "scaling_events.json").read_bytes())


def test_segments_of_the_present_are_partitions_s2_20() -> None:
    at_s = MERGED_S + 10
    assert rows_of(reader(history).samples(at_s, at_s, 15)) == [Row(at_s, "shop/clicks", "", "partitions", 2.0)]


def test_past_ticks_have_the_segments_of_their_time() -> None:
    found = rows_of(reader(history).samples(CREATED_S, MERGED_S + 2, 1))
    assert [(row.at_s - CREATED_S, row.value) for row in found] == [
        (1, 1.0),
        (2, 1.0),
        (3, 4.0),
        (4, 4.0),
        (5, 4.0),
        (6, 2.0),
        (7, 2.0),
    ]


def test_one_request_covers_all_ticks_and_a_minute_of_clock_difference() -> None:
    requests: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request.url)
        return history(request)

    reader(answer).samples(MERGED_S, MERGED_S + 30, 15)
    [url] = requests
    assert url.path == "/v1/scopes/s1/streams/clicks/scaling-events"
    assert dict(url.params) == {"from": str((MERGED_S - 60) * 1000), "to": str((MERGED_S + 90) * 1000)}


def test_an_empty_answer_leads_to_a_request_for_the_whole_life_of_the_stream() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return history(request) if request.url.params["from"] == "0" else httpx.Response(200, content=b"[]")

    at_s = MERGED_S + 10
    assert [row.value for row in rows_of(reader(answer).samples(at_s, at_s, 15))] == [2.0]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        pytest.param(always(404), "stream s1/clicks: it does not exist (deleted?)", id="deleted"),
        pytest.param(always(200, b"[]"), "stream s1/clicks: it has no segments yet (created a moment ago?)", id="new"),
        pytest.param(always(500), "stream s1/clicks: the controller answered 500", id="a broken controller"),
        pytest.param(always(200, b"<html>"), "stream s1/clicks: not a list of scaling events: ", id="not a controller"),
        pytest.param(history, "stream s1/clicks: it has no segments yet", id="not yet created at that tick"),
    ],
)
def test_a_stream_without_an_answer_is_a_fault_and_never_0_segments(answer: Answer, sentence: str) -> None:
    at_s = CREATED_S - 60
    [row] = rows_of(reader(answer).samples(at_s, at_s, 15))
    assert (row.at_s, row.signal, row.value) == (at_s, FAULT, 0.0)
    assert row.text.startswith(sentence)


def test_a_deleted_stream_does_not_affect_other_streams() -> None:
    gone = StreamRead("shop/gone", "s1", "gone")
    both = reader(
        lambda request: history(request) if "clicks" in request.url.path else httpx.Response(404), gone, CLICKS
    )
    found = rows_of(both.samples(MERGED_S + 10, MERGED_S + 10, 15))
    assert [(row.workload, row.signal) for row in found] == [("shop/gone", FAULT), ("shop/clicks", "partitions")]


def test_a_stream_that_times_out_does_not_affect_other_streams() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if "slow" in request.url.path:
            raise httpx.ReadTimeout("")
        return history(request)

    both = reader(answer, StreamRead("shop/slow", "s1", "slow"), CLICKS)
    slow, clicks = rows_of(both.samples(MERGED_S + 10, MERGED_S + 10, 15))
    assert slow.text == "stream s1/slow: no answer from http://controller:10080 within 5 s: ReadTimeout"
    assert (clicks.workload, clicks.signal, clicks.value) == ("shop/clicks", "partitions", 2.0)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_stream_does_not_affect_other_streams(status: int) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return history(request) if "clicks" in request.url.path else httpx.Response(status)

    both = reader(answer, StreamRead("shop/secret", "s1", "secret"), CLICKS)
    secret, clicks = rows_of(both.samples(MERGED_S + 10, MERGED_S + 10, 15))
    assert secret.text == (
        f"stream s1/secret: http://controller:10080 answered {status}: allow this client to read the stream; "
        "tls.cert_file and tls.key_file are its only credentials"
    )
    assert (clicks.workload, clicks.signal, clicks.value) == ("shop/clicks", "partitions", 2.0)


def test_names_are_escaped_in_the_path() -> None:
    paths: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.raw_path)
        return httpx.Response(404)

    reader(answer, StreamRead("shop/x", "a/b", "c?d")).samples(15, 15, 15)
    assert paths[0].startswith(b"/v1/scopes/a%2Fb/streams/c%3Fd/scaling-events?")


@pytest.mark.parametrize("status", [401, 403])
def test_a_controller_that_refuses_all_streams_is_an_error_of_the_source(status: int) -> None:
    with pytest.raises(SourceError, match=rf"^pravega: http://controller:10080 answered {status}: .*tls\.cert_file"):
        reader(always(status)).samples(15, 15, 15)


@pytest.mark.parametrize("error", [httpx.ConnectError("Connection refused"), httpx.ReadTimeout("")])
def test_no_answer_is_an_error_of_the_source_with_its_cause(error: httpx.TransportError) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise error

    with pytest.raises(SourceError, match=r"no answer from http://controller:10080 within 5 s: (Conn|ReadTimeout)"):
        reader(answer).samples(15, 15, 15)


def secure_reader(url: str, **files: str) -> PravegaReader:
    return PravegaReader("pravega", PravegaSource(kind="pravega", url=url, tls=Tls(**files)), (CLICKS,))


def test_a_missing_ca_file_is_an_error_that_names_it() -> None:
    with pytest.raises(SourceError, match=r"tls\.ca_file: expected a readable file, got /nowhere/ca\.pem "):
        secure_reader("https://controller", ca_file="/nowhere/ca.pem").samples(15, 15, 15)


def test_rotated_tls_files_are_used_in_the_next_tick(tmp_path: Path) -> None:
    old, new = trustme.CA(), trustme.CA()
    trust, own = client_files(old, tmp_path)
    body = (RECORDED / "scaling_events.json").read_bytes()
    with secure_server(new, answering(body)) as url, closing(secure_reader(url, **trust, **own)) as opened:
        with pytest.raises(SourceError, match="certificate verify failed"):
            opened.samples(MERGED_S, MERGED_S, 15)
        client_files(new, tmp_path)
        assert [row.signal for row in rows_of(opened.samples(MERGED_S, MERGED_S, 15))] == ["partitions"]
        client_files(old, tmp_path)
        with pytest.raises(SourceError, match="certificate verify failed"):
            opened.samples(MERGED_S, MERGED_S, 15)


def test_only_the_streams_of_the_named_source_are_read() -> None:
    parsed = config.parse(
        """
sources:
  p: {kind: pravega, url: "http://controller:10080"}
  q: {kind: pravega, url: "http://other:10080"}
workloads:
  - {namespace: shop, name: clicks, read: [{source: p, scope: s1, stream: clicks}]}
  - {name: other, read: [{source: q, scope: s1, stream: other}]}
pipeline: {checkpoint: /var/lib/x}
""",
        "test.yaml",
    )
    assert stream_reads(parsed, "p") == (CLICKS,)
