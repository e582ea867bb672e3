"""Wrong and hostile answers to the Pravega, trace and Kubernetes sources, from a server on loopback.

tests/pipeline/test_hostile_sources.py has those of Prometheus.
"""

import gzip
import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hostile_server import Answer, Form, http_server, send, trickle
from sample_rows import rows_of

from adapter.config import KubernetesSource, PravegaSource, TraceSource
from adapter.errors import SourceError
from adapter.http_body import LARGEST_BODY
from adapter.sources import Source
from adapter.sources.kubernetes import KubernetesReader
from adapter.sources.pravega import PravegaReader, StreamRead
from adapter.sources.sample_table import FAULT
from adapter.sources.trace import TraceReader
from conformance.cluster import kubeconfig

DEADLINE_S = 14.0  # on a busy machine
EVIL = "a\nforged: line\x1b[2J\u202e<script>"


def kubernetes(url: str, folder: Path, deadline_s: float = DEADLINE_S) -> Source:
    file = folder / "kubeconfig"
    file.write_text(kubeconfig(url, token="secret-token"))
    return KubernetesReader(
        "it", KubernetesSource(kind="kubernetes", kubeconfig=str(file), deadline_s=deadline_s), time.time
    )


def pravega(url: str, folder: Path) -> Source:
    settings = PravegaSource(kind="pravega", url=url, deadline_s=DEADLINE_S)
    return PravegaReader("it", settings, (StreamRead("shop/clicks", "shop", "clicks"),))


def trace(url: str, folder: Path) -> Source:
    return TraceReader("it", TraceSource(kind="trace", url=url, deadline_s=DEADLINE_S))


OPEN: dict[str, Callable[[str, Path], Source]] = {"kubernetes": kubernetes, "pravega": pravega, "trace": trace}


@contextmanager
def opened(kind: str, answer: Answer, folder: Path) -> Iterator[Source]:
    with http_server(answer) as url, closing(OPEN[kind](url, folder)) as source:  # type: ignore[type-var]
        yield source


def fault_of(kind: str, answer: Answer, folder: Path) -> str:
    """The error of the source, or the fault of its workload. There is no value in either case."""
    now_s = int(time.time())
    with opened(kind, answer, folder) as source:
        try:
            rows = rows_of(source.samples(now_s, now_s, 15))
        except SourceError as error:
            return str(error)
    assert [row.signal for row in rows] == [FAULT]
    return rows[0].text


def endless(status: int) -> Answer:
    """Sends this status and a body without end."""

    def answer(request: Any, form: Form) -> None:
        request.send_response(status)
        request.end_headers()
        while True:
            request.wfile.write(b" " * 2**20)

    return answer


def answer_with(body: bytes, **more: Any) -> Answer:
    return lambda request, form: send(request, body, **more)


BOMB = gzip.compress(b" " * (LARGEST_BODY + 1))
TOO_LARGE = f"the answer is larger than {LARGEST_BODY} bytes"
WRONG: dict[str, tuple[Answer, str]] = {
    "an endless body": (endless(200), TOO_LARGE),
    "a gzip bomb": (answer_with(BOMB, Content_Encoding="gzip"), TOO_LARGE),
    "half a gzipped body": (answer_with(gzip.compress(b"[]")[:-4], Content_Encoding="gzip"), "a part of it"),
    "bytes after a gzipped body": (answer_with(gzip.compress(b"[]") + b" ", Content_Encoding="gzip"), "got more bytes"),
    "an encoding that was not offered": (answer_with(b"[]", Content_Encoding="br"), "got Content-Encoding 'br'"),
    "a web page": (answer_with(b"<html>" + EVIL.encode(), content_type="text/html"), "not "),
    "nested too deeply": (answer_with(b"[" * 100_000), "not "),
    "bytes that are not UTF-8": (answer_with(b'"\xff"'), "not "),
}


@pytest.mark.parametrize("kind", OPEN)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_a_fault_in_one_line_and_no_value(name: str, kind: str, tmp_path: Path) -> None:
    answer, cause = WRONG[name]
    fault = fault_of(kind, answer, tmp_path)
    assert cause in fault
    assert fault.isprintable()


def test_a_page_of_large_objects_is_read_in_smaller_pages(tmp_path: Path) -> None:
    limits: list[str] = []

    def list_of_objects(request: Any, form: Form) -> None:
        limits.append(form["limit"])
        is_large = "continue" not in form and int(form["limit"]) > 5
        page = {"items": [], "metadata": {} if "continue" in form else {"continue": "next"}}
        body, encoding = (BOMB, "gzip") if is_large else (json.dumps(page).encode(), "identity")
        send(request, body, Content_Encoding=encoding)

    with opened("kubernetes", list_of_objects, tmp_path) as source:
        assert rows_of(source.samples(int(time.time()), int(time.time()), 15)) == []
    assert limits == ["500", "50", "5", "5"]


@pytest.mark.parametrize("body", ["[]", "{}", "null", '{"items": {}}', '{"items": ["a"], "metadata": {}}'])
def test_an_answer_that_is_no_list_of_objects_is_named(body: str, tmp_path: Path) -> None:
    assert "not an answer of the Kubernetes API: " in fault_of("kubernetes", answer_with(body.encode()), tmp_path)


def test_a_body_that_trickles_ends_at_the_deadline(tmp_path: Path) -> None:
    with http_server(trickle) as url:
        reader = kubernetes(url, tmp_path, deadline_s=1.0)
        with closing(reader), pytest.raises(SourceError, match="the answer did not end in time"):  # type: ignore[type-var]
            reader.samples(int(time.time()), int(time.time()), 15)


@pytest.mark.parametrize("kind", ["kubernetes", "pravega"])
def test_a_refusal_with_an_endless_body_is_not_read_to_its_end(kind: str, tmp_path: Path) -> None:
    assert "503" in fault_of(kind, endless(503), tmp_path)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-1", "1e999"])
def test_a_trace_with_a_value_that_is_no_count_is_refused(value: str, tmp_path: Path) -> None:
    row = '{"at_s": %d, "workload": "shop/clicks", "stage": "", "signal": "backlog_records", "value": %s, "text": ""}'
    assert fault_of("trace", answer_with((row % (time.time(), value)).encode()), tmp_path).startswith("it: the fleet")


@pytest.mark.parametrize("kind", OPEN)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_source_follows_a_redirect(status: int, kind: str, tmp_path: Path) -> None:
    reached: list[str] = []
    with http_server(lambda request, form: reached.append(request.path)) as thief:
        fault = fault_of(kind, answer_with(b"", status=status, Location=f"{thief}/elsewhere"), tmp_path)
    assert reached == []
    assert fault
