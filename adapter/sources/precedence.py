"""The sources that are read, and their precedence as a column of the samples of a workload."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from adapter.config import (
    AnyReading,
    Config,
    KafkaReading,
    KubernetesSource,
    PravegaSource,
    PrometheusReading,
    TraceSource,
)
from adapter.config.faults import Fault
from adapter.core.samples import EVERY
from adapter.sources.sample_table import names_in

UNNAMED = 1_000  # rank of a source that no entry of `read` names, such as that of a fleet
_DIRECT = -1  # rank of the API server, which counts replicas itself
_ALONE = 0  # rank of a source where no other could report the same


def sources_of(config: Config, reading: AnyReading) -> tuple[str, ...]:
    """The sources that an entry of `read` names: its own, then the Prometheus with the rates of a Pravega stream."""
    source = config.sources[reading.source]
    rates = source.prometheus if isinstance(source, PravegaSource) else None
    return (reading.source,) if rates is None else (reading.source, rates)


def workloads_of(config: Config, source: str) -> list[str]:
    """The workloads that a source concerns: the configured ones that read it, and EVERY if it may concern others.

    One of kind kubernetes is read for all workloads.
    """
    of_all = isinstance(config.sources[source], KubernetesSource)
    discovers = any(fleet.source == source for fleet in config.fleets)
    return [EVERY] * (of_all or discovers) + [
        workload.id
        for workload in config.workloads
        if of_all or any(source in sources_of(config, reading) for reading in workload.read)
    ]


def read_sources(config: Config) -> list[str]:
    """The sources that concern a workload or fleet."""
    return [name for name in config.sources if workloads_of(config, name)]


def unread_sources(config: Config) -> list[str]:
    """A sentence for each source that no workload or fleet reads. Without workloads and fleets nothing is read.

    All rows of a trace count, also those of a workload that does not name it.
    """
    if not (config.workloads or config.fleets):
        return []
    read = read_sources(config)
    unread = [name for name, one in config.sources.items() if name not in read and not isinstance(one, TraceSource)]
    text = "no workload or fleet reads this source; name it in a `read` or a fleet, or remove it"
    return [Fault(("sources", name), text).sentence() for name in unread]


def shared_inputs(config: Config) -> list[str]:
    """A sentence for each entry of `read` whose records another workload reads too, probably a copied one."""
    first: dict[tuple[object, ...], int] = {}
    return [
        Fault(("workloads", at, "read", number, name), f"workloads[{other}] reads {text}").sentence()
        for at, workload in enumerate(config.workloads)
        for number, one in enumerate(workload.read)
        for name, keys, text in _inputs(one)
        if (other := min(first.setdefault(key, at) for key in keys)) != at
    ]


def _inputs(one: AnyReading) -> Iterator[tuple[str, list[tuple[object, ...]], str]]:
    """The setting that selects what an entry reads, each thing that it reads, and the message if another reads it."""
    if isinstance(one, KafkaReading):
        text = "this group and topic too, so both are sized for one backlog; correct one of them"
        yield "group", [(one.source, one.group, topic) for topic in one.topics], text
    if isinstance(one, PrometheusReading) and one.preset:
        text = "the same series of this preset; correct the match of one of them"
        yield "match", [(one.source, one.preset, *sorted(one.match.items()))], text


def ranks(config: Config, source: str) -> dict[str, int]:
    """The rank of a source for each workload whose `read` names it: its position there, from 1."""
    found: dict[str, int] = {}
    for workload in config.workloads:
        names = [name for reading in workload.read for name in sources_of(config, reading)]
        if source in names:
            found[workload.id] = 1 + names.index(source)
    return found


def with_source(table: pa.Table, config: Config, source: str) -> pa.Table:
    """Add the name of a source and its rank to its samples, for `merge`."""
    names = names_in(table, "workload")
    direct = isinstance(config.sources[source], KubernetesSource)
    alone = sum(not isinstance(each, KubernetesSource) for each in config.sources.values()) == 1
    known: Mapping[str, int] = {} if direct or alone else ranks(config, source)
    other = _DIRECT if direct else _ALONE if alone else UNNAMED
    by_code = np.array([known.get(name, other) for name in names.names], dtype=np.int64)
    named = pa.DictionaryArray.from_arrays(np.zeros(len(table), dtype=np.int32), pa.array([source], pa.string()))
    return table.append_column("source", named).append_column("rank", pa.array(by_code[names.codes], pa.int64()))
