"""A source whose samples follow from the tick alone, so that any run can be compared with a plain fold.

Workers import it by name. Its file setting is a folder: the spans it was asked for are written there, one file each.
"""

import json
import threading
import time
from pathlib import Path
from uuid import uuid4

from adapter.config import Config
from adapter.errors import SourceError
from adapter.sources import FAULT, Row

WORKLOADS = tuple(f"shop/orders-{number}" for number in range(40))


def rows_at(at_s: int) -> list[Row]:
    """Counters that grow unevenly, a stage that is missing now and then, a fault of one workload every seventh tick."""
    rows = []
    for number, workload in enumerate(WORKLOADS):
        processed = float(at_s * (10 + number) - (at_s * 7919 + number) % 13)
        rows.append(Row(at_s, workload, "", "processed_records", processed))
        rows.append(Row(at_s, workload, "", "backlog_records", float((at_s * 31 + number * 17) % 997) / 3))
        if at_s % 5 != number % 5:
            rows.append(Row(at_s, workload, "", "ready_workers", float(1 + number % 4)))
            rows.append(Row(at_s, workload, "", "workers", float(1 + number % 4)))
            rows.append(Row(at_s, workload, "", "spec_workers", float(1 + number % 4)))
            rows.append(Row(at_s, workload, "", "fleet", 0.0))
    if at_s % 7 == 0:
        rows.append(Row(at_s, WORKLOADS[0], "", FAULT, 0.0, "one exporter did not answer"))
    return rows


class Recorded:
    """Answers for the past."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def samples(self, start_s: int, end_s: int, step_s: int) -> list[Row]:
        span = json.dumps([start_s, end_s, step_s])
        (self._folder / f"{start_s:020}-{uuid4().hex}.json").write_text(span)
        return [row for at_s in range(start_s, end_s + 1, step_s) for row in rows_at(at_s)]

    def close(self) -> None:
        pass


class Dead:
    """Refuses every call."""

    def samples(self, start_s: int, end_s: int, step_s: int) -> list[Row]:
        raise SourceError("dead", "connection refused")

    def close(self) -> None:
        pass


class Broken(Dead):
    """Raises what a client library might."""

    def samples(self, start_s: int, end_s: int, step_s: int) -> list[Row]:
        raise ZeroDivisionError("a bug")


class Hanging(Dead):
    """Never answers."""

    def samples(self, start_s: int, end_s: int, step_s: int) -> list[Row]:
        threading.Event().wait()
        return []


class Late(Dead):
    """Takes two seconds for each answer, which is then of no use."""

    def samples(self, start_s: int, end_s: int, step_s: int) -> list[Row]:
        time.sleep(2)
        return [Row(end_s, "shop/late", "", "backlog_records", 1.0)]


def open_source(config: Config, name: str) -> Recorded | Dead:
    """The source by the first word of its name."""
    kinds = {"dead": Dead, "broken": Broken, "hanging": Hanging, "late": Late}
    kind = kinds.get(name.partition("-")[0])
    settings = config.sources[name]
    assert settings.kind == "trace"
    return kind() if kind else Recorded(str(settings.file))
