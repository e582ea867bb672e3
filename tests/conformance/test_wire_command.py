"""`python -m conformance`: what it says, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.__main__ import main
from conformance.divergences import table

EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default"
HEADERS = {"Cache-Control": "no-cache, private", "Content-Type": "application/json"}


def line(name: str, path: str, **fields: Any) -> str:
    asked = {"id": name, "method": "GET", "path": path, "identity": "admin", "request_headers": {}}
    return json.dumps(asked | {"status": 200, "headers": HEADERS, "encoding": "omitted"} | fields)


def status(code: int, reason: str, message: str, details: dict[str, Any]) -> str:
    document = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return json.dumps(document | {"reason": reason, "details": details, "code": code}, separators=(",", ":")) + "\n"


LATE = status(504, "Timeout", "Timeout: too slow", {"retryAfterSeconds": 7})
SAME = line("a-001", f"{EXTERNAL}/quant")
LISTED = line(
    "a-002", f"{EXTERNAL}/e-late", status=504, headers=HEADERS | {"Retry-After": "7"}, encoding="utf-8", body=LATE
)
OTHER = line("a-003", f"{EXTERNAL}/quant", encoding="utf-8", body="{}")


def test_one_line_a_row_that_differs_then_how_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "recorded.jsonl"
    file.write_text("\n".join((SAME, LISTED, OTHER)), "utf-8")
    assert main([str(file)]) == 1
    listed, other, count = capsys.readouterr().out.splitlines()
    assert listed.startswith(
        "a-002: listed as no-retry-after: header retry-after: expected '7', got none; body at byte "
    )
    assert other.startswith("a-003: FAILED: body at byte 1: expected '{}', got '{\"kind\":")
    assert count == "1 matched, 1 listed divergences, 1 failed"


def test_a_recording_in_which_nothing_fails_ends_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "recorded.jsonl"
    file.write_text(SAME, "utf-8")
    assert main([str(file)]) == 0
    assert capsys.readouterr().out.endswith("1 matched, 0 listed divergences, 0 failed\n")


def test_a_file_that_is_not_there_is_named_with_what_to_give(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECORDING", str(tmp_path / "none.jsonl"))
    assert main([]) == 2
    said = (
        f"no recording at {tmp_path}/none.jsonl (No such file or directory): name one, or set RECORDING to its path\n"
    )
    assert capsys.readouterr().err == said


def test_a_malformed_file_is_named_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "recorded.jsonl"
    file.write_text(f"{SAME}\n{{}}\n", "utf-8")
    assert main([str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"{file}:2: expected a recorded request and answer in JSON: ")


def test_the_divergences_are_printed_for_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--divergences"]) == 0
    assert capsys.readouterr().out == table()
