"""What the server answers by itself is counted too, and nothing is worked out that nobody will get."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from raw_callers import Caller, application, request, serving

from adapter.config import Limits
from adapter.serving.api.rendering import Response
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.sockets.server import Server
from adapter.serving.telemetry import Telemetry, door

SMALL = Limits(uri_bytes=100, header_bytes=1_000, requests=1, linger_s=0.2)


def counted(server: Server) -> dict[str, float]:
    """What Prometheus is shown of the door, by name and label."""
    telemetry = Telemetry(SnapshotStore(), workloads=False)
    telemetry.add(door(server.connections))
    families = text_string_to_metric_families(telemetry.exposition().decode())
    names = ("backlog_adapter_connections", "backlog_adapter_connections_crowded_out", "backlog_adapter_refused")
    samples = [sample for family in families if family.name in names for sample in family.samples]
    return {
        " ".join((each.name.removeprefix("backlog_adapter_"), *each.labels.values())): each.value for each in samples
    }


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (request("/" + "a" * 200), 414),
        (request("/", f"X-Large: {'a' * 2_000}"), 431),
        (request("/", "Transfer-Encoding: gzip"), 501),
        (request("/memory/fails"), 500),
        (request("/fails"), 500),
    ],
    ids=["no request", "no host", "long target", "large head", "unknown coding", "failure in memory", "failure behind"],
)
def test_what_never_reached_the_api_is_counted_by_its_code(said: bytes, code: int) -> None:
    with serving(SMALL) as server, Caller(server) as caller:
        caller.say(said)
        assert caller.answer().code == code
        assert counted(server)[f"refused_total {code}"] == 1


def test_a_refusal_that_is_not_sent_behind_a_slow_answer_is_counted_too() -> None:
    with serving(SMALL) as server, Caller(server) as caller:
        caller.say(request("/slow/0.2") + b"nonsense\r\n\r\n")
        assert caller.answer().code == 200
        assert caller.is_closed(within_s=5)
        assert counted(server)["refused_total 400"] == 1


def test_what_is_too_much_at_once_is_counted_and_what_is_answered_is_not() -> None:
    with serving(SMALL) as server, ExitStack() as stack:
        first, second = (stack.enter_context(Caller(server)) for _ in range(2))
        assert [each.ask("/memory").code for each in (first, second)] == [200, 200]
        assert counted(server) == {"connections": 2, "connections_crowded_out_total": 0} | refused()
        first.say(request("/slow/2"))
        time.sleep(0.5)  # it is in work
        assert second.ask("/slow/0").code == 429
        assert first.answer().code == 200
        assert counted(server) == {"connections": 2, "connections_crowded_out_total": 0} | refused(429)


def refused(*codes: int) -> dict[str, float]:
    return {f"refused_total {code}": float(code in codes) for code in (400, 414, 429, 431, 500, 501)}


def test_connections_that_have_to_make_room_are_counted() -> None:
    with serving(Limits(connections=1)) as server, ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(Caller(server)).ask("/memory")
        assert counted(server)["connections_crowded_out_total"] == 2


@pytest.mark.parametrize("more", [b"", b"nonsense\r\n\r\n"], ids=["requests", "and nonsense"])
def test_what_was_sent_behind_the_last_answer_is_not_worked_out_and_gets_no_answer(more: bytes) -> None:
    asked: list[str] = []

    def last(scope: Mapping[str, Any]) -> Response:
        asked.append(scope["path"])
        return Response(200, ((b"connection", b"close"),), b"bye")

    server = Server(application, "127.0.0.1", 0, at_once=last)
    server.start()
    try:
        with Caller(server) as caller:
            caller.say(
                request("/1") + request("/2") + request("/3", "Content-Length: 5", method="POST") + b"hello" + more
            )
            assert caller.answer().body == b"bye"
            assert caller.is_closed(within_s=5)
    finally:
        server.stop()
    assert asked == ["/1"]
