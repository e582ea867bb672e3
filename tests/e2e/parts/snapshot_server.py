"""Snapshots for `serve` in place of a pipeline: decisions with numbers that a test sets."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from adapter.core.decisions import Decision, Reason
from adapter.serving.snapshots.columns import entries_of
from adapter.serving.snapshots.snapshot import Entry, Snapshot, encode
from adapter.serving.snapshots.transport import MESSAGE_TYPE
from bench.loopback import serve
from parts.process import HOST

TICK_S = 5.0
ERROR_AFTER_S = 60.0

Numbers = Mapping[str, Mapping[str, float]]  # workload -> field of Decision -> number


@contextmanager
def snapshot_server(numbers: Callable[[], Numbers]) -> Iterator[str]:
    """The address of a server whose snapshot has the current numbers, dated to the request."""

    def snapshot(_: str) -> bytes:
        at_s = time.time()
        entries = [_entry(workload, at_s, fields) for workload, fields in sorted(numbers().items())]
        return encode(
            Snapshot(at_s=at_s, tick_s=TICK_S, error_after_s=ERROR_AFTER_S, entries=entries_of(at_s, entries))
        )

    with serve(snapshot, HOST, MESSAGE_TYPE) as url:
        yield url


def _entry(workload: str, at_s: float, numbers: Mapping[str, float]) -> Entry:
    ages = {"sample_age_s": 0.0, "partitions_age_s": 0.0}
    decision = Decision(workload=workload, at_s=at_s, policy="drain", reason=Reason.HOLD, **ages, **numbers)
    return Entry(decision=decision, error_after_s=ERROR_AFTER_S, window_s=60.0)
