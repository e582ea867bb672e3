"""A file of recorded requests and answers, read; and what is said of one that cannot be."""

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.recording import Answered, Asked, Dropped, RecordingError, Row, read

LINE = {
    "id": "ext-035",
    "note": "two series",
    "method": "GET",
    "path": "/apis?x=1",
    "identity": "admin",
    "request_headers": {"Accept": "*/*"},
    "status": 200,
    "headers": {"Content-Type": "text/plain"},
    "encoding": "utf-8",
    "body": "ok",
}


def written(folder: Path, *lines: dict[str, Any] | str) -> Path:
    path = folder / "recorded.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return path


def line(**fields: Any) -> dict[str, Any]:
    """A line with fields changed; None takes one away."""
    return {key: value for key, value in (LINE | fields).items() if value is not None}


def outcome(folder: Path, **fields: Any) -> Answered | Dropped:
    return read(written(folder, line(**fields)))[0].outcome


def test_a_line_becomes_a_row(tmp_path: Path) -> None:
    asked = Asked("GET", "/apis?x=1", "admin", (("Accept", "*/*"),))
    answered = Answered(200, {"content-type": "text/plain"}, b"ok")
    assert read(written(tmp_path, LINE, "")) == [Row("ext-035", asked, answered, "two series")]


def test_bytes_that_are_no_text_are_given_in_base64(tmp_path: Path) -> None:
    assert outcome(tmp_path, encoding="base64", body="azhzAA==") == Answered(
        200, {"content-type": "text/plain"}, b"k8s\0"
    )


def test_a_body_that_was_not_kept_is_unknown(tmp_path: Path) -> None:
    assert outcome(tmp_path, encoding="omitted", body="<9 bytes>") == Answered(
        200, {"content-type": "text/plain"}, None
    )


def test_an_error_is_a_connection_that_ended(tmp_path: Path) -> None:
    assert outcome(tmp_path, status=None, error="RemoteDisconnected") == Dropped("RemoteDisconnected")


def test_a_header_may_come_several_times(tmp_path: Path) -> None:
    row = read(written(tmp_path, line(request_headers={"X-Remote-Group": ["a", "b"]})))[0]
    assert row.asked.headers == (("X-Remote-Group", "a"), ("X-Remote-Group", "b"))


@pytest.mark.parametrize(
    ("faulty", "said"),
    [
        pytest.param("{", "Input data was truncated", id="no JSON"),
        pytest.param("[]", "Expected `object`, got `array`", id="no object"),
        pytest.param(line(path=None), "missing required field `path`", id="a field is missing"),
        pytest.param(line(status="200"), "Expected `int | null`, got `str` - at `$.status`", id="another type"),
        pytest.param(line(encoding="latin-1"), "Invalid enum value 'latin-1' - at `$.encoding`", id="unknown encoding"),
        pytest.param(line(encoding="base64", body="?"), "Only base64 data is allowed", id="no base64"),
        pytest.param(line(error="Gone"), "either `status` or `error` is needed", id="answer and error"),
        pytest.param(line(status=None), "either `status` or `error` is needed", id="no answer and no error"),
        pytest.param(line(identity="carol"), "identity: expected one of none, admin", id="unknown identity"),
    ],
)
def test_a_faulty_line_is_named_with_what_was_expected(tmp_path: Path, faulty: dict[str, Any] | str, said: str) -> None:
    path = written(tmp_path, line(id="ext-034"), faulty)
    with pytest.raises(RecordingError) as raised:
        read(path)
    assert str(raised.value).startswith(f"{path}:2: expected a recorded request and answer in JSON: ")
    assert said in str(raised.value)


def test_an_id_stands_once(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r":2: id ext-035 was given on line 1 already"):
        read(written(tmp_path, LINE, LINE))


def test_an_empty_file_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"expected a line for each recorded request, got none"):
        read(written(tmp_path, ""))
