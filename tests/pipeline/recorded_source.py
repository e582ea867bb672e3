"""A source whose samples depend on the tick alone, so that any run can be compared with a plain fold.

Workers import it by name. Its file setting is a folder, which gets a file with the span of each call.
"""

import json
import threading
import time
from itertools import product
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from adapter.config import Config
from adapter.errors import SourceError
from adapter.sources.sample_table import SCHEMA, SampleTable

WORKLOADS = tuple(f"shop/orders-{number}" for number in range(40))


def table_of(ticks: range) -> pa.Table:
    """Counters that grow unevenly, workers that are missing now and then, a fault every seventh tick."""
    table = SampleTable()
    for at_s, (number, workload) in product(ticks, enumerate(WORKLOADS)):
        processed = float(at_s * (10 + number) - (at_s * 7919 + number) % 13)
        backlog = float((at_s * 31 + number * 17) % 997) / 3
        table.add(at_s, workload, {"processed_records": processed, "backlog_records": backlog})
        if at_s % 5 != number % 5:
            workers = dict.fromkeys(("ready_workers", "workers", "spec_workers"), float(1 + number % 4))
            table.add(at_s, workload, workers | {"fleet": 0.0})
        if at_s % 7 == 0 and number == 0:
            table.add_fault(at_s, workload, "one exporter did not answer")
    return table.finish()


class Recorded:
    """Answers for the past."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        span = json.dumps([start_s, end_s, step_s])
        (self._folder / f"{start_s:020}-{uuid4().hex}.json").write_text(span)
        return table_of(range(start_s, end_s + 1, step_s))

    def close(self) -> None:
        pass


class Dead:
    """Refuses every call."""

    def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        raise SourceError("dead", "connection refused")

    def close(self) -> None:
        pass


class Broken(Dead):
    """Raises what a client library might."""

    def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        raise ZeroDivisionError("a bug")


class Hanging(Dead):
    """Never answers."""

    def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        threading.Event().wait()
        return SCHEMA.empty_table()


class Late(Dead):
    """Takes two seconds for each answer, which is then of no use."""

    def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        time.sleep(2)
        table = SampleTable()
        table.add(end_s, "shop/late", {"backlog_records": 1.0})
        return table.finish()


def open_source(config: Config, name: str) -> Recorded | Dead:
    """The source by the first word of its name."""
    kinds = {"dead": Dead, "broken": Broken, "hanging": Hanging, "late": Late}
    kind = kinds.get(name.partition("-")[0])
    settings = config.sources[name]
    assert settings.kind == "trace"
    return kind() if kind else Recorded(str(settings.file))
