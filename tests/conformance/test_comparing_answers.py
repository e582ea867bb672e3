"""What differs between a recorded answer and ours."""

import pytest

from conformance.comparing import differences
from conformance.recording import Answered, Dropped

PLAIN = {"content-type": "text/plain"}


def answered(status: int = 200, body: bytes | None = b"ok", **headers: str) -> Answered:
    return Answered(status, PLAIN | {name.replace("_", "-"): value for name, value in headers.items()}, body)


@pytest.mark.parametrize(
    ("recorded", "ours"),
    [
        pytest.param(answered(), answered(), id="the same"),
        pytest.param(answered(body=None), answered(body=b"whatever"), id="a body that was not kept"),
        pytest.param(answered(), answered(date="today", audit_id="1"), id="headers of the passage"),
        pytest.param(answered(), answered(last_modified="today"), id="a header that recordings leave out"),
        pytest.param(answered(vary="Accept"), answered(vary="Accept-Encoding, Accept"), id="one Vary of several"),
        pytest.param(Dropped("RemoteDisconnected"), Dropped("RemoteDisconnected"), id="no answer"),
    ],
)
def test_what_says_the_same_does_not_differ(recorded: Answered | Dropped, ours: Answered | Dropped) -> None:
    assert differences(recorded, ours) == []


@pytest.mark.parametrize(
    ("recorded", "ours", "said"),
    [
        pytest.param(answered(), answered(404), "status: expected 200, got 404", id="status"),
        pytest.param(
            answered(vary="Accept"), answered(), "header vary: expected 'Accept', got none", id="a header is missing"
        ),
        pytest.param(
            answered(), answered(retry_after="1"), "header retry-after: expected none, got '1'", id="a header too many"
        ),
        pytest.param(
            answered(),
            answered(content_type="a/b"),
            "header content-type: expected 'text/plain', got 'a/b'",
            id="header",
        ),
        pytest.param(answered(etag='"a"'), answered(), "header etag: expected '\"a\"', got none", id="no ETag"),
        pytest.param(
            answered(body=b"x" * 30 + b"abc"),
            answered(body=b"x" * 30 + b"abd\n"),
            f"body at byte 32: expected '{'x' * 22}abc', got '{'x' * 22}abd\\n'",
            id="body, around the first difference",
        ),
        pytest.param(answered(body=b""), answered(), "body at byte 0: expected nothing, got 'ok'", id="body too many"),
        pytest.param(
            answered(body=b"\xff"),
            answered(body=b"\xfe"),
            "body at byte 0: expected '\\\\xff', got '\\\\xfe'",
            id="bytes",
        ),
        pytest.param(
            answered(),
            Dropped("SSLError"),
            "connection: expected an answer (200), got an end (SSLError)",
            id="no answer",
        ),
        pytest.param(
            Dropped("SSLError"),
            answered(),
            "connection: expected an end (SSLError), got an answer (200)",
            id="an answer",
        ),
    ],
)
def test_a_difference_is_told_in_words(recorded: Answered | Dropped, ours: Answered | Dropped, said: str) -> None:
    assert differences(recorded, ours) == [said]
