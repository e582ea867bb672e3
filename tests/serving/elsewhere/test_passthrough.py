"""Metrics of another adapter, asked over real TLS on loopback; whatever it does, its troubles stay its own."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
import structlog
import trustme
from serving_certificates import SERVER, STRANGERS, pem
from strange_servers import Behave, StrangeServer, response, saying, strange_server, tls_of

from adapter.config import OtherAdapter
from adapter.serving.access.identity import LOCAL, Identity
from adapter.serving.api.attributes import Attributes
from adapter.serving.api.custom import ObjectMetric
from adapter.serving.api.documents import Documents
from adapter.serving.api.external import ExternalQuestion, ExternalValue
from adapter.serving.api.metrics_api import MetricsApi
from adapter.serving.api.probes import Probes, Readiness
from adapter.serving.api.request import MustWait, Request
from adapter.serving.api.status import Answer
from adapter.serving.elsewhere.passthrough import AGENT, Elsewhere, Limits, gauges

EXTERNAL, CUSTOM = "external.metrics.k8s.io", "custom.metrics.k8s.io"
URI = f"/apis/{EXTERNAL}/v1beta1/namespaces/shop/s0-kafka?labelSelector=scaledobject.keda.sh%2Fname%3Dorders"
VALUES = b'{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","metadata":{},"items":[]}'
LIST = b'{"kind":"APIResourceList","resources":[{"name":"lag"},{"name":"rate"}]}'
SOUND_ANSWER, SOUND_LIST = saying(response(200, VALUES)), saying(response(200, LIST))
# Nothing here waits for real seconds: what takes longer than this hangs.
SHORT = Limits(deadline_s=0.5, most_failures=1000, rest_s=60.0, largest=10_000)


@dataclass
class Other:
    """The other adapter. lists, answers: what it does when asked for its list, and for anything else."""

    answers: Behave = SOUND_ANSWER
    lists: Behave = SOUND_LIST

    def __call__(self, connection: socket.socket, head: str) -> None:
        (self.lists if head.split()[1].endswith("/v1beta1") else self.answers)(connection, head)


@dataclass
class Asked:
    """Elsewhere, and the server it asks. now_s: its clock."""

    elsewhere: Elsewhere
    server: StrangeServer
    folder: Path
    clock: list[float]

    def lines(self) -> list[str]:
        """Of the head of the only question that was no question for a list, sorted after the first."""
        (head,) = [head for head in self.server.heads if not head.split()[1].endswith("/v1beta1")]
        first, *rest = head.split("\r\n")
        return [first, *sorted(line for line in rest if line)]


@contextmanager
def asking(
    folder: Path, other: Other, limits: Limits = SHORT, group: str = EXTERNAL, leaf: trustme.LeafCert | None = None
) -> Iterator[Asked]:
    (folder / "token").write_text("secret\n")
    (folder / "ca.crt").write_text(pem(SERVER))
    with strange_server(other, tls_of(leaf or SERVER.issue_cert("localhost"))) as server:
        settings = OtherAdapter(url=server.url, ca_file=f"{folder}/ca.crt", token_file=f"{folder}/token")
        clock = [100.0]
        elsewhere = Elsewhere(group, settings, limits, clock=lambda: clock[0])
        try:
            yield Asked(elsewhere, server, folder, clock)
        finally:
            elsewhere.stop()


def request(uri: str = URI, *, patient: bool = True, **headers: str) -> Request:
    return Request.of("GET", uri, [(name.replace("_", "-"), value) for name, value in headers.items()], patient=patient)


def message(answer: Answer) -> str:
    """Of a 503, which is the only way in which the other's trouble shows."""
    assert (answer.code, answer.document["reason"]) == (503, "ServiceUnavailable")
    assert "Retry-After" not in answer.headers
    return str(answer.document["message"])


def test_an_answer_is_passed_on_as_it_is(tmp_path: Path) -> None:
    with asking(tmp_path, Other()) as asked:
        answer = asked.elsewhere.forward(request())
        assert (answer.code, answer.body, dict(answer.headers)) == (200, VALUES, {"Content-Type": "application/json"})
        assert asked.elsewhere.outcomes() == {"answered": 1}


def test_the_question_goes_as_it_came_with_our_token_and_nothing_else_of_the_caller(tmp_path: Path) -> None:
    uri = f"/apis/{EXTERNAL}/v1beta1/namespaces/sh%6Fp/a%7Cb?labelSelector=a+in+(b%2C%20c)&pretty=&x='\"&x=2"
    given = {
        "accept": "application/vnd.kubernetes.protobuf, */*",
        "user_agent": "kube-controller-manager/v1.36",
        "authorization": "Bearer of-the-caller",
        "x_remote_user": "alice",
        "impersonate_user": "root",
        "cookie": "a=b",
        "host": "elsewhere",
    }
    with asking(tmp_path, Other()) as asked:
        asked.elsewhere.forward(request(uri, **given))
        assert asked.lines() == [
            f"GET {uri} HTTP/1.1",
            "Accept-Encoding: identity",
            "Accept: application/vnd.kubernetes.protobuf",
            "Authorization: Bearer secret",
            "Connection: keep-alive",
            f"Host: localhost:{asked.server.port}",
            f"User-Agent: {AGENT} kube-controller-manager/v1.36",
        ]


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "é", "x" * 1000], ids=["line feed", "not ASCII", "long"])
def test_a_header_that_a_server_could_refuse_is_not_sent_for_the_refusal_would_look_like_its_fault(
    tmp_path: Path, value: str
) -> None:
    with asking(tmp_path, Other()) as asked:
        assert asked.elsewhere.forward(request(user_agent=value)).code == 200
        assert {"Accept: application/json", f"User-Agent: {AGENT}"} <= set(asked.lines())


@pytest.mark.parametrize(
    ("accept", "asked_for"), [("application/cbor,*/*", "application/json"), ("application/yaml", "application/yaml")]
)
def test_only_what_can_be_judged_is_asked_for(tmp_path: Path, accept: str, asked_for: str) -> None:
    """Else a caller could make another adapter look broken to everybody."""
    with asking(tmp_path, Other()) as asked:
        assert asked.elsewhere.forward(request(accept=accept)).code == 200
        assert f"Accept: {asked_for}" in asked.lines()


def test_what_is_no_text_of_a_request_is_escaped(tmp_path: Path) -> None:
    with asking(tmp_path, Other()) as asked:
        assert asked.elsewhere.forward(request("/apis/a/b/namespaces/c/\u00e9 \r\nX: 1")).code == 200
        assert asked.lines()[0] == "GET /apis/a/b/namespaces/c/%C3%A9%20%0D%0AX:%201 HTTP/1.1"


@pytest.mark.parametrize("namespace", ["..", ".", "%2e%2e", "a%2F..%2Fb"])
def test_a_path_that_could_be_read_as_another_one_is_not_passed_on(tmp_path: Path, namespace: str) -> None:
    with asking(tmp_path, Other()) as asked:
        answer = asked.elsewhere.forward(request(f"/apis/{EXTERNAL}/v1beta1/namespaces/{namespace}/m"))
        assert answer.code == 404
        assert asked.elsewhere.outcomes() == {}


def test_headers_of_the_connection_cookies_and_retry_after_stay_behind(tmp_path: Path) -> None:
    sent = response(429, b'{"kind":"Status","message":"slowly"}', Retry_After="7", Set_Cookie="a=b", Via="1.1 x")
    with asking(tmp_path, Other(answers=saying(sent))) as asked:
        answer = asked.elsewhere.forward(request())
        assert (answer.code, dict(answer.headers)) == (429, {"Content-Type": "application/json"})


@pytest.mark.parametrize(
    ("code", "body", "content_type"),
    [
        (404, b'{"kind":"Status","message":"no such metric"}', "application/json"),
        (500, b'{"kind":"Status","message":"its source is down"}', "application/json; charset=utf-8"),
        (500, b'Internal Server Error: "/apis": no access review', "text/plain; charset=utf-8"),
        (504, b'{"metadata":{},"status":"Failure","message":"too slow"}', "text/plain"),
        (200, b"k8s\x00\x0a\x00", "application/vnd.kubernetes.protobuf"),
        (200, b"kind: ExternalMetricValueList\n", "application/yaml"),
        (200, VALUES.replace(b"External", b""), "application/json"),
    ],
    ids=["not found", "error", "error as text", "ext-074", "protobuf", "YAML", "values of objects"],
)
def test_what_the_api_knows_is_passed_on(tmp_path: Path, code: int, body: bytes, content_type: str) -> None:
    with asking(tmp_path, Other(answers=saying(response(code, body, content_type)))) as asked:
        answer = asked.elsewhere.forward(request())
        assert (answer.code, answer.body, answer.headers["Content-Type"]) == (code, body, content_type)


@pytest.mark.parametrize("code", [401, 403])
def test_that_it_does_not_let_us_in_is_told_as_that_and_not_as_the_callers_fault(tmp_path: Path, code: int) -> None:
    said = b'{"kind":"Status","message":"User \\"system:serviceaccount:a:b\\" cannot list resource"}'
    with asking(tmp_path, Other(answers=saying(response(code, said)))) as asked:
        told = message(asked.elsewhere.forward(request()))
        assert f"does not let this adapter's service account in ({code})" in told
        assert 'User "system:serviceaccount:a:b" cannot list resource' in told
        assert "get and list on external.metrics.k8s.io" in told
        assert asked.elsewhere.outcomes() == {"forbidden": 1}


def never(connection: socket.socket, head: str) -> None:
    """Holds the connection until the other side gives up."""
    connection.recv(1)


def dribbling(prefix: bytes) -> Behave:
    """Sends a byte at a time, each of them in time."""

    def behave(connection: socket.socket, head: str) -> None:
        connection.sendall(prefix)
        while True:
            connection.sendall(b"x")
            time.sleep(0.05)

    return behave


def endless(connection: socket.socket, head: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
TROUBLES: dict[str, tuple[Behave, str, str]] = {
    "it hangs": (never, "late", "no answer within 0.5 s"),
    "its head dribbles": (dribbling(HEAD + b"X-Long: "), "late", "no answer within 0.5 s"),
    "its body dribbles": (dribbling(HEAD + b"Content-Length: 5000\r\n\r\n"), "late", "no answer within 0.5 s"),
    "it hangs up": (saying(b""), "malformed", "disconnected without sending a response"),
    "its body is cut off": (saying(HEAD + b"Content-Length: 99\r\n\r\n{"), "malformed", "without sending complete"),
    "it speaks no HTTP": (saying(b"\x00\x01garbage\r\n\r\n"), "malformed", "RemoteProtocolError"),
    "it redirects": (saying(response(302, b"", Location="http://127.0.0.1:1/")), "malformed", "redirects (302)"),
    "it is a web page": (saying(response(200, b"<html>", "text/html")), "malformed", "got 200 'text/html'"),
    "its error is a web page": (saying(response(502, b"<html>", "text/html")), "malformed", "got 502 'text/html'"),
    "its type is missing": (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), "malformed", "got 200 ''"),
    "its JSON is none": (saying(response(200, b"{")), "malformed", "expected an object in JSON"),
    "its JSON is no UTF-8": (saying(response(200, b'{"kind":"\xff"}')), "malformed", "expected an object in JSON"),
    "its JSON is deep": (saying(response(200, b'{"a":' + b"[" * 9_000)), "malformed", "expected an object in JSON"),
    "its JSON is no list": (saying(response(200, b'{"kind":"PodList"}')), "malformed", "got one 'PodList'"),
    "its error is no JSON": (saying(response(500, b"oops")), "malformed", "expected an object in JSON"),
    "its protobuf is none": (
        saying(response(200, b"oops", "application/vnd.kubernetes.protobuf")),
        "malformed",
        "expected protobuf",
    ),
    "it says nothing": (saying(response(204, b"")), "malformed", "got 204"),
    "it says not modified": (saying(b"HTTP/1.1 304 Not Modified\r\n\r\n"), "malformed", "(304)"),
    "it packs what nobody asked it to": (
        saying(response(200, VALUES, Content_Encoding="gzip")),
        "malformed",
        "Content-Encoding 'gzip'",
    ),
    "its answer is huge": (saying(response(200, b" " * 10_001)), "large", "at most 10000 bytes"),
    "its answer never ends": (endless, "large", "at most 10000 bytes"),
}


@pytest.mark.parametrize(("behave", "outcome", "told"), TROUBLES.values(), ids=TROUBLES)
def test_its_trouble_is_a_503_with_its_name_by_the_deadline(
    tmp_path: Path, behave: Behave, outcome: str, told: str
) -> None:
    with asking(tmp_path, Other(answers=behave)) as asked:
        began_s = time.monotonic()
        answer = asked.elsewhere.forward(request())
        assert time.monotonic() - began_s < 2.0
        assert message(answer).startswith(
            f"metrics that are not this adapter's are asked of localhost:{asked.server.port}: "
        )
        assert told in message(answer)
        assert asked.elsewhere.outcomes() == {outcome: 1}


def test_one_that_is_gone_is_told_as_that(tmp_path: Path) -> None:
    with asking(tmp_path, Other()) as asked:
        pass
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    files = {"ca_file": f"{asked.folder}/ca.crt", "token_file": f"{asked.folder}/token"}
    elsewhere = Elsewhere(EXTERNAL, OtherAdapter(url=f"https://127.0.0.1:{port}", **files), SHORT)
    assert "ConnectError" in message(elsewhere.forward(request()))
    elsewhere.stop()


@pytest.mark.parametrize(
    "leaf",
    [STRANGERS.issue_cert("localhost"), SERVER.issue_cert("another.svc")],
    ids=["of another CA", "of another name"],
)
def test_our_token_goes_to_nobody_who_cannot_show_the_certificate(tmp_path: Path, leaf: trustme.LeafCert) -> None:
    with asking(tmp_path, Other(), leaf=leaf) as asked:
        assert "CERTIFICATE_VERIFY_FAILED" in message(asked.elsewhere.forward(request()))
        assert asked.server.heads == []


def test_one_that_signs_its_own_certificate_is_asked_where_that_is_said_and_a_warning_tells_it(tmp_path: Path) -> None:
    """As prometheus-adapter does by default, for the name localhost."""
    (tmp_path / "token").write_text("secret")
    with (
        strange_server(Other(), tls_of(STRANGERS.issue_cert("another.svc"))) as server,
        structlog.testing.capture_logs() as logs,
    ):
        other = OtherAdapter(url=server.url, insecure_skip_tls_verify=True, token_file=f"{tmp_path}/token")
        elsewhere = Elsewhere(CUSTOM, other, SHORT)
        elsewhere.start()
        assert elsewhere.forward(request()).code == 200
        elsewhere.stop()
    warning = logs[0]
    assert (warning["log_level"], warning["group"]) == ("warning", CUSTOM)
    assert "this pod's token" in warning["effect"]


def test_token_and_ca_are_read_anew(tmp_path: Path) -> None:
    with asking(tmp_path, Other(), leaf=STRANGERS.issue_cert("localhost")) as asked:
        asked.elsewhere.forward(request())
        (tmp_path / "ca.crt").write_text(pem(STRANGERS))
        (tmp_path / "token").write_text("another")
        assert asked.elsewhere.forward(request()).code == 200
        assert "Authorization: Bearer another" in asked.lines()


def test_a_ca_file_that_is_empty_for_a_moment_trusts_nobody(tmp_path: Path) -> None:
    with asking(tmp_path, Other(), leaf=STRANGERS.issue_cert("localhost")) as asked:
        (tmp_path / "ca.crt").write_text("\n")
        refused = asked.elsewhere.forward(request())
        assert refused.code == 503
        assert "got an empty file" in str(refused.document)
        assert asked.server.heads == []


def test_a_ca_that_is_rotated_breaks_no_question_off_and_leaves_no_connection_behind(tmp_path: Path) -> None:
    may_end, ended = threading.Event(), threading.Event()

    def behave(connection: socket.socket, head: str) -> None:
        is_slow = "/slow" in head
        if is_slow:
            may_end.wait(10)
        connection.sendall(response(200, VALUES, Connection="keep-alive"))
        while connection.recv(4096):  # kept open until the other side closes it
            pass
        if is_slow:
            ended.set()

    slow = request(URI.replace("/s0-kafka", "/slow"))
    limits = Limits(deadline_s=10.0)
    with asking(tmp_path, Other(answers=behave), limits) as asked, ThreadPoolExecutor(3) as threads:
        under_way = threads.submit(asked.elsewhere.forward, slow)
        while not asked.server.heads:
            time.sleep(0.001)
        (tmp_path / "ca.crt").write_text(pem(SERVER, STRANGERS))
        later = [threads.submit(asked.elsewhere.forward, request()) for _ in range(2)]
        assert [each.result(10).code for each in later] == [200, 200]
        assert not ended.is_set()
        may_end.set()
        assert under_way.result(10).code == 200
        assert ended.wait(10)


@pytest.mark.parametrize(
    ("text", "told"), [(None, "No such file"), ("", "an empty file"), ("a\nb", "other characters")]
)
def test_a_token_that_is_none_is_told_and_not_repeated(tmp_path: Path, text: str | None, told: str) -> None:
    with asking(tmp_path, Other()) as asked:
        (tmp_path / "token").unlink()
        if text is not None:
            (tmp_path / "token").write_text(text)
        assert told in message(asked.elsewhere.forward(request()))
        assert not any("s0-kafka" in head for head in asked.server.heads)


def test_who_may_not_wait_is_told_so_and_nothing_is_asked(tmp_path: Path) -> None:
    with asking(tmp_path, Other()) as asked:
        with pytest.raises(MustWait):
            asked.elsewhere.forward(request(patient=False))
        assert asked.elsewhere.outcomes() == {}


def test_what_came_from_us_does_not_go_round(tmp_path: Path) -> None:
    with asking(tmp_path, Other()) as asked:
        answer = asked.elsewhere.forward(request(user_agent=f"{AGENT} kube-controller-manager", patient=False))
        assert "it sends them back here" in message(answer)


def test_beyond_the_bound_of_questions_nobody_waits(tmp_path: Path) -> None:
    holds = threading.Event()
    both = threading.Barrier(3, timeout=10)

    def held(connection: socket.socket, head: str) -> None:
        both.wait()
        holds.wait(10)
        connection.sendall(response(200, VALUES))

    limits = Limits(deadline_s=10, most_in_flight=2)
    with asking(tmp_path, Other(answers=held), limits) as asked:
        answers: list[Answer] = []
        waiting = [
            threading.Thread(target=lambda: answers.append(asked.elsewhere.forward(request()))) for _ in range(2)
        ]
        for thread in waiting:
            thread.start()
        both.wait()
        assert "2 questions wait for it already" in message(asked.elsewhere.forward(request()))
        holds.set()
        for thread in waiting:
            thread.join(10)
        assert [answer.code for answer in answers] == [200, 200]
        assert asked.elsewhere.outcomes() == {"answered": 2, "busy": 1}


def test_after_failures_in_a_row_it_is_left_alone_for_a_while_and_then_tried_once_more(tmp_path: Path) -> None:
    limits = Limits(most_failures=3, rest_s=5.0)
    other = Other(answers=saying(b""))
    with structlog.testing.capture_logs() as logs, asking(tmp_path, other, limits) as asked:
        for _ in range(3):
            asked.elsewhere.forward(request())
        resting = asked.elsewhere.forward(request(patient=False))
        assert "it failed 3 times in a row and is left alone" in message(resting), "at once, on whatever thread"
        asked.clock[0] += 5.1
        asked.elsewhere.forward(request())
        assert "is left alone" in message(asked.elsewhere.forward(request())), "one more failure is enough"
        asked.clock[0] += 5.1
        other.answers = SOUND_ANSWER
        assert asked.elsewhere.forward(request()).code == 200
        other.answers = saying(b"")
        assert "disconnected" in message(asked.elsewhere.forward(request()))
        assert asked.elsewhere.outcomes() == {"malformed": 5, "resting": 2, "answered": 1}
    told = [(log["log_level"], log["event"]) for log in logs]
    assert told == [("warning", "another adapter fails its metrics; ours are not touched"), ("info", "it is over")]


def test_who_asks_for_too_much_does_not_have_it_left_alone(tmp_path: Path) -> None:
    limits = Limits(most_failures=2, largest=10_000)
    with asking(tmp_path, Other(answers=saying(response(200, b" " * 10_001))), limits) as asked:
        assert ["left alone" in message(asked.elsewhere.forward(request())) for _ in range(3)] == [False] * 3
        assert asked.elsewhere.outcomes() == {"large": 3}


def test_an_error_that_it_tells_is_no_failure_of_it(tmp_path: Path) -> None:
    limits = Limits(most_failures=2)
    with asking(tmp_path, Other(answers=saying(response(500, b'{"kind":"Status"}'))), limits) as asked:
        assert [asked.elsewhere.forward(request()).code for _ in range(5)] == [500] * 5


def test_its_list_is_known_and_the_same_object_until_it_changes(tmp_path: Path) -> None:
    other = Other()
    with asking(tmp_path, other) as asked:
        assert asked.elsewhere.refresh()
        first = asked.elsewhere.names()
        assert first == ("lag", "rate")
        assert asked.elsewhere.refresh()
        assert asked.elsewhere.names() is first
        other.lists = saying(response(200, b'{"resources":null}'))
        assert asked.elsewhere.refresh()
        assert asked.elsewhere.names() == ()
        assert asked.elsewhere.is_up


def test_a_list_of_object_metrics_names_their_resources(tmp_path: Path) -> None:
    entries = [
        {"name": "pods/lag", "namespaced": True},
        {"name": "ingresses.networking.k8s.io/hits"},
        {"name": "namespaces/lag", "namespaced": False},
        {"name": "strange"},
    ]
    with asking(
        tmp_path, Other(lists=saying(response(200, json.dumps({"resources": entries}).encode()))), group=CUSTOM
    ) as asked:
        assert asked.elsewhere.refresh()
        assert f"GET /apis/{CUSTOM}/v1beta1 HTTP/1.1" in asked.server.heads[-1]
        assert asked.elsewhere.metrics() == (
            ObjectMetric("pods", "lag"),
            ObjectMetric("ingresses.networking.k8s.io", "hits"),
            ObjectMetric("namespaces", "lag", namespaced=False),
        )


@pytest.mark.parametrize(
    ("lists", "told"),
    [
        (never, "no answer within"),
        (saying(b""), "disconnected"),
        (saying(response(200, b"<html>", "text/html")), "APIResourceList"),
        (saying(response(200, b'{"resources":[1]}')), "APIResourceList"),
        (saying(response(403, b'{"message":"not you"}')), "expected 200, got 403: not you"),
        (saying(response(503, b"service unavailable\n", "text/plain")), "got 503: service unavailable"),
    ],
    ids=["it hangs", "it hangs up", "it is a web page", "its entries are none", "it forbids it", "it is not up"],
)
def test_its_list_is_kept_while_it_is_down_and_not_for_ever(tmp_path: Path, lists: Behave, told: str) -> None:
    other = Other()
    with structlog.testing.capture_logs() as logs, asking(tmp_path, other) as asked:
        assert asked.elsewhere.refresh()
        other.lists = lists
        asked.clock[0] += SHORT.kept_s - 1
        assert not asked.elsewhere.refresh()
        assert not asked.elsewhere.refresh()
        assert asked.elsewhere.names() == ("lag", "rate")
        assert not asked.elsewhere.is_up
        asked.clock[0] += 2
        assert asked.elsewhere.names() == ()
        other.lists = SOUND_LIST
        assert asked.elsewhere.refresh()
        assert asked.elsewhere.names() == ("lag", "rate")
    assert [log["log_level"] for log in logs] == ["warning", "info"], "once, and that it is over"
    assert told in logs[0]["cause"]


def test_it_follows_the_list_by_itself(tmp_path: Path) -> None:
    limits = Limits(refresh_s=0.02)
    with asking(tmp_path, Other(), limits) as asked:
        asked.elsewhere.start()
        deadline_s = time.monotonic() + 10
        while asked.elsewhere.names() != ("lag", "rate"):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)


def test_stopped_it_answers_no_more_and_leaves_no_thread(tmp_path: Path) -> None:
    with asking(tmp_path, Other(answers=never), Limits(deadline_s=30)) as asked:
        asked.elsewhere.start()
        asked.elsewhere.refresh()
        asked.elsewhere.stop()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith(("asking", "listing"))]


def test_how_both_fare_is_shown_in_one_family_each(tmp_path: Path) -> None:
    with asking(tmp_path, Other()) as one, asking(tmp_path, Other(lists=never), group=CUSTOM) as other:
        one.elsewhere.refresh()
        one.elsewhere.forward(request())
        up, requests = gauges([one.elsewhere, other.elsewhere])()
        assert {sample.labels["group"]: sample.value for sample in up.samples} == {EXTERNAL: 1, CUSTOM: 0}
        assert [(each.labels, each.value) for each in requests.samples] == [
            ({"group": EXTERNAL, "outcome": "answered"}, 1)
        ]


class Ours:
    """A provider of one metric, and of none of objects; everybody may ask."""

    def names(self) -> Sequence[str]:
        return ["backlog"]

    def metrics(self) -> Sequence[ObjectMetric]:
        return []

    def has(self, *names: str) -> bool:
        return names == ("backlog",)

    def read(self, question: ExternalQuestion) -> Sequence[ExternalValue]:
        return [ExternalValue(question.metric, {}, "7")]

    def admit(self, request: Request, attributes: Attributes) -> Identity:
        return LOCAL


def whole_api(asked: Asked) -> MetricsApi:
    ours, probes = Ours(), Probes.of(Readiness(lambda: True))
    documents = Documents(lambda: (ours.names(), ()), probes, expositions={}, port=lambda: 0)
    return MetricsApi(ours, cast(Any, ours), ours, documents, {EXTERNAL: asked.elsewhere.forward})


@pytest.mark.parametrize(
    "behave",
    [
        never,
        saying(b""),
        saying(b"\x00\x01garbage\r\n\r\n"),
        saying(response(500, b'{"kind":"Status"}')),
        saying(response(302, b"", Location="http://127.0.0.1:1/")),
        endless,
    ],
    ids=["it hangs", "it hangs up", "it speaks no HTTP", "it fails", "it redirects", "its answer never ends"],
)
def test_our_own_metrics_and_discovery_are_answered_at_once_whatever_it_does(tmp_path: Path, behave: Behave) -> None:
    own = request(URI.replace("s0-kafka", "backlog"), patient=False)
    with asking(tmp_path, Other(answers=behave), Limits(deadline_s=1.0, most_in_flight=1)) as asked:
        api = whole_api(asked)
        codes: list[int] = []
        theirs = threading.Thread(target=lambda: codes.append(api.respond(request()).code))
        theirs.start()
        began_s = time.monotonic()
        for _ in range(50):
            answer = api.respond(own)
            assert (answer.code, b'"value":"7"' in answer.body) == (200, True)
            assert api.respond(request(f"/apis/{EXTERNAL}/v1beta1", patient=False)).code == 200
        assert time.monotonic() - began_s < 0.5
        theirs.join(10)
        assert codes[0] >= 500
