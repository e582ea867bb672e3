"""What is answered in time and what is not, and that each answer is accounted for once, as its caller got it."""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog
from raw_callers import Answer, Caller, eventually
from serving_builders import AT_S, entry, local_api, snapshot
from werkzeug.wsgi import ClosingIterator

from adapter.serving.accounting import Accounting
from adapter.serving.api import status
from adapter.serving.api.external import GROUP, GROUP_VERSION
from adapter.serving.api.metrics_api import Answered, MetricsApi
from adapter.serving.api.request import MustWait, Request
from adapter.serving.app import create_app
from adapter.serving.front import Front, leave
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.sockets.bridge import of_wsgi
from adapter.serving.sockets.server import Server
from adapter.serving.telemetry import Telemetry

OURS = f"/apis/{GROUP_VERSION}/namespaces/shop/required_workers?labelSelector=workload%3Dorders"
SLOW = f"/apis/{GROUP_VERSION}/namespaces/shop/s0-kafka"
# As a Go server has it (ext-074).
TIMED_OUT = (
    b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
    b'"reason":"Timeout","details":{},"code":504}\n'
)


@dataclass
class Slow:
    """Another adapter, which answers when it is let go. told: what was accounted for of all answers."""

    is_over: threading.Event = field(default_factory=threading.Event)
    is_done: threading.Event = field(default_factory=threading.Event)
    told: list[tuple[Answered, float]] = field(default_factory=list)

    def forward(self, request: Request) -> status.Answer:
        if not request.patient:
            raise MustWait
        assert self.is_over.wait(10)
        self.is_done.set()
        return status.Answer(200, body=b"{}", headers=status.JSON_CONTENT)

    def account(self, answered: Answered, took_s: float) -> None:
        self.told.append((answered, took_s))

    @property
    def codes(self) -> list[int]:
        return [answered.response.code for answered, _ in self.told]

    def api(self) -> MetricsApi:
        store = SnapshotStore(lambda: AT_S + 1)
        store.put(snapshot(entry("shop/orders")))
        return local_api(store, elsewhere={GROUP: self.forward}, account=self.account)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@contextmanager
def serving(slow: Slow, api: MetricsApi | None = None) -> Iterator[Server]:
    """No thread is in work any more when it stops."""
    api = api or slow.api()
    app, in_work = create_app(api), Counter[str]()

    def watched(environ: Any, start_response: Any) -> Iterable[bytes]:
        in_work["begun"] += 1
        return ClosingIterator(app(environ, start_response), lambda: in_work.update(["ended"]))

    front = Front(api, of_wsgi(watched))
    server = Server(front, "127.0.0.1", 0, at_once=front.at_once)
    server.start()
    try:
        yield server
    finally:
        slow.is_over.set()
        assert eventually(lambda: in_work["begun"] == in_work["ended"])
        server.stop()


def asked(slow: Slow, path: str, *headers: str, method: str = "GET") -> Answer:
    with serving(slow) as server, Caller(server) as caller:
        return caller.ask(path, *headers, method=method)


def test_an_answer_that_takes_longer_than_is_wanted_is_a_504(slow: Slow) -> None:
    answer = asked(slow, f"{SLOW}?timeout=50ms")
    assert (answer.code, answer.body) == (504, TIMED_OUT)
    fields = {name: answer.headers[name] for name in ("content-type", "cache-control", "content-length")}
    assert fields == {
        "content-type": "text/plain; charset=utf-8",
        "cache-control": "no-cache, private",
        "content-length": str(len(TIMED_OUT)),
    }


def test_a_504_carries_the_name_that_its_request_was_given(slow: Slow) -> None:
    assert asked(slow, f"{SLOW}?timeout=50ms", "Audit-Id: 4f2a").headers["audit-id"] == "4f2a"


def test_a_504_without_one_is_given_one_as_every_other_answer(slow: Slow) -> None:
    assert asked(slow, f"{SLOW}?timeout=50ms").headers["audit-id"]


def test_a_504_is_accounted_for_once_as_one_with_its_request_and_its_time(slow: Slow) -> None:
    with serving(slow) as server, Caller(server) as caller:
        assert caller.ask(f"{SLOW}?timeout=50ms", "User-Agent: hpa").code == 504
        slow.is_over.set()
        assert slow.is_done.wait(5)
        assert caller.ask(OURS).code == 200  # whatever came too late has had its time
    assert slow.codes == [504, 200]
    (answered, took_s), _ = slow.told
    assert (answered.request.uri, answered.request.header("user-agent")) == (f"{SLOW}?timeout=50ms", "hpa")
    assert answered.route is not None
    assert answered.route.metric == "s0-kafka"
    assert 0.05 <= took_s < 5


def test_an_answer_in_time_is_accounted_for_once_whether_or_not_it_had_to_be_waited_for(slow: Slow) -> None:
    slow.is_over.set()
    with serving(slow) as server, Caller(server) as caller:
        assert [caller.ask(path).code for path in (SLOW, OURS, SLOW, "/apis")] == [200] * 4
    assert slow.codes == [200] * 4
    assert [answered.request.uri for answered, _ in slow.told] == [SLOW, OURS, SLOW, "/apis"]


def test_what_is_waited_for_takes_as_long_as_its_caller_waited(slow: Slow) -> None:
    threading.Timer(0.1, slow.is_over.set).start()
    assert asked(slow, SLOW).code == 200
    ((_, took_s),) = slow.told
    assert took_s >= 0.05


def test_a_caller_who_goes_away_is_accounted_for_with_the_answer_that_he_did_not_wait_for(slow: Slow) -> None:
    with serving(slow) as server:
        with Caller(server) as caller:
            caller.say(f"GET {SLOW} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert eventually(lambda: server.connections.open == 1)
        assert eventually(lambda: server.connections.open == 0)
        assert slow.told == []
        slow.is_over.set()
        assert eventually(lambda: slow.codes == [200])


def test_a_504_is_counted_and_logged_as_one(slow: Slow) -> None:
    telemetry = Telemetry(SnapshotStore(), workloads=False)
    with structlog.testing.capture_logs() as logs:
        accounting = Accounting(telemetry, structlog.get_logger())
        store = SnapshotStore(lambda: AT_S + 1)
        api = local_api(store, elsewhere={GROUP: slow.forward}, account=accounting.answered)
        with serving(slow, api) as server, Caller(server) as caller:
            assert caller.ask(f"{SLOW}?timeout=50ms", "Audit-Id: 4f2a").code == 504
    (line,) = [log for log in logs if log["event"] == "request"]
    assert (line["code"], line["audit_id"], line["log_level"]) == (504, "4f2a", "warning")
    assert line["took_ms"] >= 50
    assert b'requests_total{code="504",group="external",metric="other"} 1.0' in telemetry.exposition()


def test_of_what_is_no_answer_of_the_api_no_account_is_given() -> None:
    """As the page of `run`: it is none of the API's answers."""
    told: list[Any] = []

    async def page(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a page"})

    api = local_api(SnapshotStore(), account=lambda answered, took_s: told.append(answered))
    assert _sent(Front(api, page), "/") == [200, b"a page"]
    assert told == []


def test_in_process_a_504_is_accounted_for_as_over_a_socket() -> None:
    told: list[Answered] = []

    async def never(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(60)

    api = local_api(SnapshotStore(), account=lambda answered, took_s: told.append(answered))
    code, body = _sent(Front(api, never, deadline_s=0.01), SLOW)
    assert (code, json.loads(body)["reason"]) == (504, "Timeout")
    assert [answered.response.code for answered in told] == [504]


def test_nobody_waits_for_longer_than_anybody_may_however_long_he_would() -> None:
    async def never(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(60)

    began_s = time.monotonic()
    assert _sent(Front(local_api(SnapshotStore()), never, deadline_s=0.01), f"{SLOW}?timeout=10s")[0] == 504
    assert time.monotonic() - began_s < 5


def test_an_answer_that_has_begun_and_never_ends_breaks_off_and_is_accounted_for_once() -> None:
    told: list[Answered] = []
    api = local_api(SnapshotStore(), account=lambda answered, took_s: told.append(answered))

    async def stuck(scope: Any, receive: Any, send: Any) -> None:
        leave(scope, api.answered(Request.of("GET", "/apis")))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        _sent(Front(api, stuck, deadline_s=0.01), "/apis")
    assert [answered.response.code for answered in told] == [200]


def _sent(front: Front, path: str) -> list[Any]:
    """What an application sends: the code, then the pieces of the body."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message.get("status", message.get("body")))

    async def receive() -> Any:
        return {"type": "http.request"}

    path, _, query = path.partition("?")
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": []}
    asyncio.run(front(scope, receive, send))
    return sent
