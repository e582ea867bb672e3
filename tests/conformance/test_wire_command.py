"""`python -m conformance`: its output and exit code."""

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.__main__ import main
from conformance.divergences import table

EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default"


def line(name: str, path: str, **fields: Any) -> str:
    request = {"id": name, "method": "GET", "path": path, "identity": "admin", "request_headers": {}}
    response = {"status": 200, "headers": {"Content-Type": "application/json"}, "encoding": "omitted"}
    return json.dumps(request | response | fields)


SAME = line("a-001", f"{EXTERNAL}/quant")
LISTED = line("a-002", "/version", encoding="utf-8", body='{"major": "one"}')
OTHER = line("a-003", f"{EXTERNAL}/quant", encoding="utf-8", body='{"kind": 1}')


def test_each_row_that_differs_is_printed_before_the_totals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "recording.jsonl"
    file.write_text("\n".join((SAME, LISTED, OTHER)), "utf-8")
    assert main([str(file)]) == 1
    listed, failed, totals = capsys.readouterr().out.splitlines()
    assert listed.startswith("a-002: listed as proxied-paths-alone: ")
    assert failed.startswith("a-003: FAILED: ")
    assert 'body at .kind: expected 1, got "ExternalMetricValueList"' in failed
    assert totals == "1 matched, 1 listed divergences, 1 failed"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, "No such file"), (f"{SAME}\n{{}}\n", "recording.jsonl:2: expected a recorded request and response: ")],
    ids=["no file", "a malformed line"],
)
def test_an_unreadable_recording_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, expected: str
) -> None:
    file = tmp_path / "recording.jsonl"
    if text is not None:
        file.write_text(text, "utf-8")
    assert main([str(file)]) == 2
    assert expected in capsys.readouterr().err


def test_the_divergences_are_printed_for_the_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--divergences"]) == 0
    assert capsys.readouterr().out == table()
