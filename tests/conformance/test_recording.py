"""Reading a file of recorded requests and responses."""

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.recording import RecordingError, Request, Response, Row, read

LINE = {
    "id": "ext-035",
    "method": "GET",
    "path": "/apis?x=1",
    "identity": "admin",
    "request_headers": {"Accept": ["a", "b"]},
    "status": 200,
    "headers": {"Content-Type": "text/plain"},
    "encoding": "utf-8",
    "body": "ok",
}


def write(folder: Path, *lines: dict[str, Any] | str) -> Path:
    path = folder / "recording.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return path


def line(**fields: Any) -> dict[str, Any]:
    """A line with some fields changed; None removes one."""
    return {key: value for key, value in (LINE | fields).items() if value is not None}


def test_a_line_becomes_a_row(tmp_path: Path) -> None:
    request = Request("GET", "/apis?x=1", "admin", (("Accept", "a"), ("Accept", "b")))
    assert read(write(tmp_path, LINE, "")) == [
        Row("ext-035", request, Response(200, {"content-type": "text/plain"}, b"ok"))
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"encoding": "base64", "body": "azhzAA=="}, Response(200, {"content-type": "text/plain"}, b"k8s\0")),
        ({"encoding": "omitted"}, Response(200, {"content-type": "text/plain"}, None)),
        ({"status": None, "error": "RemoteDisconnected"}, None),
    ],
    ids=["bytes", "an omitted body", "no response"],
)
def test_a_response_may_have_bytes_no_body_or_not_exist(
    tmp_path: Path, fields: dict[str, Any], expected: Response | None
) -> None:
    assert read(write(tmp_path, line(**fields)))[0].outcome == expected


@pytest.mark.parametrize(
    ("malformed", "expected"),
    [
        pytest.param("{", "Input data was truncated", id="not JSON"),
        pytest.param(line(path=None), "missing required field `path`", id="a missing field"),
        pytest.param(line(encoding="base64", body="?"), "Only base64 data is allowed", id="not base64"),
        pytest.param(line(error="Gone"), "expected either `status` or `error`", id="a response and an error"),
        pytest.param(line(identity="carol"), "identity: expected one of none, admin", id="an unknown identity"),
        pytest.param(line(id="ext-034"), "the id ext-034 is used twice", id="an id used twice"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, malformed: dict[str, Any] | str, expected: str) -> None:
    path = write(tmp_path, line(id="ext-034"), malformed)
    with pytest.raises(RecordingError, match=r":2: ") as raised:
        read(path)
    assert expected in str(raised.value)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="the file is empty"):
        read(write(tmp_path, ""))
