"""Replay recorded responses of a Go metrics server against this one, and print what differs."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from structlog.testing import capture_logs

from conformance import divergences
from conformance.recording import RecordingError, read
from conformance.replay import Result, Verdict, replay, summary
from conformance.server import run_server

RECORDING = Path(__file__).parents[1] / "tests" / "data" / "wire" / "recorded.jsonl"
_FORMAT = """A recording is one JSON object a line: id, method, path (with its query), identity (the client
certificate), request_headers, request_body; and status, headers and body with its encoding (utf-8, base64 or omitted),
or error where the connection ended without a response."""


def main(words: Sequence[str] | None = None) -> int:
    """Print one line for each row that differs, then the totals; 1 for a failed row, 2 for an unreadable recording."""
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__, epilog=_FORMAT)
    parser.add_argument("file", nargs="?", type=Path, default=RECORDING, help=f"the recording; default: {RECORDING}")
    parser.add_argument("--divergences", action="store_true", help="print the listed divergences as a table and exit")
    arguments = parser.parse_args(words)
    if arguments.divergences:
        sys.stdout.write(divergences.table())
        return 0
    try:
        rows = read(arguments.file)
    except (OSError, RecordingError) as error:
        sys.stderr.write(f"cannot read the recording: {error}\n")
        return 2
    results: list[Result] = []
    with capture_logs(), run_server(rows) as running:  # the failures that a recording provokes are logged too
        for result in replay(rows, running.client):
            results.append(result)
            if result.verdict is not Verdict.MATCHED:
                sys.stdout.write(f"{result}\n")
    sys.stdout.write(summary(results) + "\n")
    return int(any(each.verdict is Verdict.FAILED for each in results))


if __name__ == "__main__":
    sys.exit(main())
