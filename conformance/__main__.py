"""Replay recorded answers of a Go metrics server against this one, and say what differs."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from structlog.testing import capture_logs

from conformance import divergences
from conformance.recording import RecordingError, Row, read
from conformance.replay import Kind, Verdict, replay, summary
from conformance.server import started

_FORMAT = """A recording is JSON, one request a line: id, method, path (with its query), identity (whose certificate is
presented), request_headers, request_body; and what was answered: status, headers, body with its encoding (utf-8, base64
or omitted), or error where no answer came."""

RECORDED = Path(__file__).parents[1] / "tests" / "data" / "wire" / "recorded.jsonl"


def main(given: Sequence[str] | None = None) -> int:
    """One line a row, then how many; 1 when a row failed, 2 when there is nothing to replay. given: None is argv."""
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__, epilog=_FORMAT)
    parser.add_argument("file", nargs="?", type=Path, help=f"the recording; else $RECORDING, else {RECORDED}")
    parser.add_argument("--divergences", action="store_true", help="print the listed divergences as a table and stop")
    arguments = parser.parse_args(given)
    if arguments.divergences:
        sys.stdout.write(divergences.table())
        return 0
    path = arguments.file or Path(os.environ.get("RECORDING") or RECORDED)
    try:
        rows = read(path)
    except OSError as error:
        sys.stderr.write(f"no recording at {path} ({error.strerror}): name one, or set RECORDING to its path\n")
        return 2
    except RecordingError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return _replayed(rows)


def _replayed(rows: list[Row]) -> int:
    verdicts: list[Verdict] = []
    with capture_logs(), started(rows) as running:  # a failure that was asked for is logged all the same
        for verdict in replay(rows, running.caller):
            verdicts.append(verdict)
            if verdict.kind is not Kind.MATCHED:
                _say(str(verdict))
    _say(summary(verdicts))
    return int(any(verdict.kind is Kind.FAILED for verdict in verdicts))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
