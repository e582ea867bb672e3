"""Write the table of sources and signals into docs/sources.md: run `python -m bench.source_table`."""

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from adapter.core.engine import replay
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.samples import STAGE_SIGNALS, Samples
from adapter.sources import presets
from adapter.sources.offsets import SIGNALS as KAFKA_SIGNALS

FILE = Path(__file__).parents[1] / "docs" / "sources.md"
BEGIN, END = "<!-- begin of the table -->\n", "<!-- end of the table -->\n"
HPA_SIGNALS = ("spec_workers", "workers", "ready_workers", "min_workers", "max_workers")
# Heading -> field of StageSignals, which the engine may compute from other signals.
DERIVED = {
    "throughput": "throughput_records_per_s",
    "input": "input_rate_records_per_s",
    "backlog": "backlog_records",
    "growth": "growth_records_per_s",
    "backlog time": "backlog_time_s",
    "utilization": "utilization_ratio",
}
# Heading -> signal, which is read or unknown.
READ = {
    "fullest partition": "highest_partition_backlog_records",
    "stuck partitions": "stuck_backlog_records",
    "hot partition": "hottest_partition_ratio",
    "slow worker": "slowest_worker_ratio",
    "CPU": "cpu_ratio",
    "memory": "memory_ratio",
    "busiest subtask": "busiest_subtask_ratio",
    "backpressure": "backpressured_ratio",
    "partitions": "partitions",
    "workers": "workers",
    "HPA limits": "max_workers",
    "restarts": "restarts",
    "running": "running",
    "sink health": "sink_healthy",
}
HEADINGS = (*DERIVED, *READ)
_JOB, _STAGE = "example/job", "source"  # the numbers of a stage are visible if it has a name
_TICK_S, _TICKS = 15, 24
_RATE, _BACKLOG = 1000.0, 600_000.0  # a job that is ten minutes behind, so that its capacity shows
# What a source reports of that job besides 1 for every other signal.
_VALUES = {
    "backlog_records": _BACKLOG,
    "throughput_records_per_s": _RATE,
    "input_rate_records_per_s": _RATE,
    "utilization_ratio": 0.9,
    "stuck_backlog_records": 0.0,
    "uncommitted_partitions": 0.0,
    "backpressured_ratio": 0.0,
    "max_workers": 9.0,
}
_COUNTERS = {"processed_records": 0.0, "appended_records": _BACKLOG}


def sources() -> Mapping[str, Collection[str]]:
    """Each source and preset with the signals that it reads."""
    of_presets = {f"`{name}`": presets.load(name).signals for name in presets.names()}
    return {
        "source `kafka`": KAFKA_SIGNALS,
        "source `pravega`": ("partitions",),
        "source `pravega` with `prometheus`": ("partitions", *presets.stream_rates()),
        "source `kubernetes`": HPA_SIGNALS,
        **of_presets,
    }


def cells(signals: Collection[str]) -> dict[str, str]:
    """Heading -> "yes" if the source reads the signal, "computed" if it follows from others, else "no"."""
    known = _known(frozenset(signals))
    derived = {
        heading: "yes" if field in signals else "computed" if field in known else "no"
        for heading, field in DERIVED.items()
    }
    return derived | {heading: "yes" if signal in signals else "no" for heading, signal in READ.items()}


def table() -> str:
    """The Markdown table."""
    return "\n".join(_lines()) + "\n"


def replace_table(document: str) -> str:
    """The document with the present table between its marks."""
    head, rest = document.split(BEGIN)
    return f"{head}{BEGIN}{table()}{END}{rest.split(END)[1]}"


def _lines() -> Iterator[str]:
    yield f"| Source or preset | {' | '.join(HEADINGS)} |"
    yield "|---" * (len(HEADINGS) + 1) + "|"
    for name, signals in sources().items():
        known = cells(signals)
        yield f"| {name} | {' | '.join(known[heading] for heading in HEADINGS)} |"


@cache
def _known(signals: frozenset[str]) -> frozenset[str]:
    """What the engine knows of a job of which a source reports these signals, beside a count of its workers."""
    book = RuleBook(by_workload={_JOB: Rules()})
    *_, (_, decisions) = replay((_tick(signals, number * _TICK_S) for number in range(_TICKS)), book)
    return frozenset(field for field, values in decisions.stage_numbers.items() if np.isfinite(values).any())


def _tick(signals: Collection[str], at_s: float) -> Samples:
    reported = {"workers", "spec_workers", "ready_workers", *signals}
    values = {signal: np.array([_value(signal, at_s)]) for signal in sorted(reported)}
    return Samples(
        at_s=at_s,
        workloads=(_JOB,),
        stages=((_JOB, _STAGE),) if reported & set(STAGE_SIGNALS) else (),
        by_stage={signal: value for signal, value in values.items() if signal in STAGE_SIGNALS},
        by_workload={signal: value for signal, value in values.items() if signal not in STAGE_SIGNALS},
    )


def _value(signal: str, at_s: float) -> float:
    if signal in _COUNTERS:
        return _COUNTERS[signal] + _RATE * at_s
    return _VALUES.get(signal, 1.0)


if __name__ == "__main__":
    FILE.write_text(replace_table(FILE.read_text("utf-8")), "utf-8")
