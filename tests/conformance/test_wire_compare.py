"""Which differences between a recorded response and ours count."""

import json
from typing import Any

import pytest

from conformance.compare import differences
from conformance.recording import Response

JSON = "application/json"


def response(document: Any = None, status: int = 200, content_type: str = JSON, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, {"content-type": content_type, **named}, json.dumps(document or {}).encode())


def status(code: int, reason: str | None, message: str = "") -> Response:
    document = {"kind": "Status", "message": message, "code": code} | ({} if reason is None else {"reason": reason})
    return response(document, code)


@pytest.mark.parametrize(
    ("recorded", "ours"),
    [
        pytest.param(response({"a": [1]}), Response(200, {"content-type": JSON}, b'{\n "a": [ 1 ]}'), id="white space"),
        pytest.param(Response(200, {"content-type": JSON}, None), response({"a": 1}), id="an omitted body"),
        pytest.param(response(date="today"), response(date="tomorrow"), id="another header"),
        pytest.param(
            response(content_type="text/plain"), response(content_type="text/plain; charset=utf-8"), id="a charset"
        ),
        pytest.param(response({"serverAddress": ":1"}), response({"serverAddress": ":2"}), id="the server's port"),
        pytest.param(status(400, "BadRequest", "found '='"), status(400, "BadRequest", "no value"), id="an error text"),
        pytest.param(response({"paths": []}, 404), status(404, "NotFound"), id="an error without a Status"),
        pytest.param(None, None, id="no response"),
    ],
)
def test_responses_of_the_same_meaning_do_not_differ(recorded: Response | None, ours: Response | None) -> None:
    assert differences(recorded, ours) == []


@pytest.mark.parametrize(
    ("recorded", "ours", "expected"),
    [
        pytest.param(response(), response(status=404), "status: expected 200, got 404", id="status"),
        pytest.param(
            response(content_type=f"{JSON};v=v2;as=Table"), response(),
            f"content type: expected {JSON};as=Table, got {JSON}", id="content type",
        ),
        pytest.param(response(), response(retry_after="7"), "retry-after: expected None, got 7", id="Retry-After"),
        pytest.param(status(500, None), status(500, "InternalError"), "reason: expected None, got InternalError",
                     id="reason"),
        pytest.param(
            response({"items": [{"value": "1"}]}), response({"items": [{"value": "2"}]}),
            'body at .items.0.value: expected "1", got "2"', id="a value",
        ),
        pytest.param(response({"a": [1]}), response({"a": []}), "body at .a: expected [1], got []", id="an item less"),
        pytest.param(response(), None, "connection: expected a response with status 200, got no response",
                     id="no response"),
    ],
)  # fmt: skip
def test_a_difference_names_its_place(recorded: Response | None, ours: Response | None, expected: str) -> None:
    assert differences(recorded, ours) == [expected]
