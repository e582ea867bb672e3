"""Sentences about queries and matches that are valid and probably return something else than their author expects."""

import re
from collections.abc import Iterator, Mapping

from adapter.config import Config, Fleet, PrometheusReading
from adapter.config.faults import path_text
from adapter.core.samples import COUNTERS
from adapter.sources import presets, promql
from adapter.sources.prometheus_plan import configured_reads, namespace_of, preset_of

_RATE = ("rate", "irate", "increase", "delta", "idelta", "deriv")  # functions that make a rate of a counter
_PER_WINDOW = {"rate", "irate", "increase"}
_PERCENT = re.compile("percent|pct", re.IGNORECASE)
_RATES = {"processed_records": "throughput_records_per_s", "appended_records": "input_rate_records_per_s"}
_SHARED_LABELS = {"job", "exported_job", "instance", "namespace", "cluster", "region", "env", "service", "topic"}
_GROUPS = {"consumergroup", "group", "groupid"}  # names of one label in the exporters of Kafka, without _
# The presets whose series have the namespace of the workers. The driver of Spark may run in another one.
_OF_WORKERS = {
    *("beam", "flink", "flink-sink", "flink-varga", "pravega-flink"),
    *("cadvisor", "cadvisor-memory", "kube-state-metrics"),
}
_OPERATOR = re.compile("=~|!~|!=|=")
_QUOTED = re.compile("""\".*\"|'.*'""")
_NOT_REPORTED = re.compile("[^a-zA-Z0-9:_]")  # Flink's PrometheusReporter writes _ for each of these


def hints(config: Config) -> list[str]:
    """Queries and matches that probably return something else; each sentence begins with its path."""
    found = [(path, reads) for name in config.sources for path, reads in configured_reads(config, name)]
    of_queries = [
        f"{path}.signals.{signal}: {text}"
        for path, reads in found
        for signal, template in reads.signals.items()
        for text in _query_hints(signal, template, reads.match)
    ]
    of_matches = [f"{path}.{text}" for path, reads in found for text in _match_hints(reads)]
    return [*of_queries, *of_matches, *_namespace_hints(config)]


def _namespace_hints(config: Config) -> Iterator[str]:
    """Report series of workers whose namespace is not that of the workload, which is that of its HPA."""
    for i, workload in enumerate(config.workloads):
        for j, reads in enumerate(workload.read):
            if isinstance(reads, PrometheusReading) and (other := _other_namespace(reads, workload.namespace)):
                text = f"is {other}, but the workload belongs to the namespace {workload.namespace}, where its HPA is"
                yield f"workloads[{i}].read[{j}].match.namespace: {text}; correct one of them"
    for i, fleet in enumerate(config.fleets):
        if fleet.preset and namespace_of(fleet) and (other := _other_namespace(fleet, fleet.namespace)):
            text = f"is {fleet.namespace}, but match selects the series of workers in {other}, where their HPAs are"
            yield f"fleets[{i}].namespace: {text}; set namespace: {other}, or namespace_label: namespace"


def _other_namespace(reads: PrometheusReading | Fleet, namespace: str) -> str | None:
    """The namespace of the workers that an entry selects, if it is another one. Exporters have one of their own."""
    # Beside exported_namespace, namespace is that of an exporter.
    is_of_workers = reads.preset in _OF_WORKERS and "exported_namespace" not in reads.match
    selected = reads.match.get("namespace") if is_of_workers else None
    return selected if selected != namespace else None


def _query_hints(signal: str, template: str, match: Mapping[str, str]) -> Iterator[str]:
    if match and not presets.count_placeholder(template, "match"):
        yield "has no $match, so `match` does not limit the series that it reads; write METRIC{$match}"
    query = presets.fill(template, 'a="b"', ("a",), "60s")
    if parts := promql.parts(query):
        yield from _part_hints(signal, parts)
    if signal != "restarts" and promql.is_zero_without_series(query):
        text = "is 0 while its series are missing, although the number is then unknown"
        yield f"{text}; remove the part that returns 0, such as `or vector(0)`"


def _part_hints(signal: str, parts: promql.Parts) -> Iterator[str]:
    is_rate, is_scaled = signal.endswith(("_per_s", "_ratio")), bool(parts.operators & {"*", "/"})
    counts = any(name.endswith("_total") for name in parts.metrics) and not parts.has_offset
    if is_rate and counts and not any(name.startswith(_RATE) for name in parts.functions):
        yield "is a counter where a rate is expected; write rate(METRIC{$match}[$window])"
    if signal in COUNTERS and parts.functions & _PER_WINDOW:
        yield f"is a rate where a counter is expected; write it below {_RATES[signal]}, or leave out rate()"
    if parts.has_rate_of_aggregate:
        yield "is the rate of an aggregate, which falls when a worker ends; write sum(rate(METRIC{$match}[$window]))"
    if signal.endswith("_per_s") and "increase" in parts.functions and not is_scaled:
        yield "counts the records of a window where records/s are expected; write rate() for increase()"
    if signal.endswith("_ratio") and any(map(_PERCENT.search, parts.metrics)) and not is_scaled:
        yield "is probably a percentage where a share from 0 to 1 is expected; divide it by 100"


def _match_hints(reads: PrometheusReading | Fleet) -> Iterator[str]:
    preset, is_fleet = preset_of(reads), isinstance(reads, Fleet)
    wrong = {label: text for label, value in reads.match.items() if (text := _value_hint(value, is_fleet))}
    yield from (f"{path_text(('match', label))}: {text}" for label, text in wrong.items())
    job = reads.match.get("job_name", "")
    reported = _NOT_REPORTED.sub("_", job)
    if preset.workload_label == "job_name" and "job_name" not in wrong and reported != job:
        unless = "unless metrics.reporter.prom.filterLabelValueCharacters is false"
        yield f"match.job_name: Flink's PrometheusReporter writes {job} as {reported}; write {reported}, {unless}"
    needs_label = preset.name and not is_fleet and not preset.match_label
    if needs_label and reads.match.keys() <= _SHARED_LABELS:
        text = f"has no {preset.workload_label}, with which the preset {preset.name} names each workload"
        yield f"match: {text}; add it unless this is the only workload that matches"
    elif preset.name and preset.workload_label not in reads.match:
        for label in (label for label in reads.match if _is_meant(label, preset.workload_label)):
            text = f"the series of the preset {preset.name} have the label {preset.workload_label}"
            yield f"{path_text(('match', label))}: {text}; write that, unless your scrape configuration adds {label}"


def _value_hint(value: str, is_fleet: bool) -> str | None:
    """What is probably wrong with the value of a label."""
    fix = "write the whole value" if is_fleet else "write the whole value, or use a fleet for many workloads"
    if operator := _OPERATOR.match(value):
        return f"begins with {operator[0]}, which is a part of the value here; {fix}"
    if _QUOTED.fullmatch(value):
        return f"has quotes, which are a part of the value here; write {value[1:-1]}"
    symbol = next((symbol for symbol in ("*", ".+", "|") if symbol in value), None)
    meaning = "no wildcard" if symbol == "*" else "no regular expression"
    return f"names one value, because {symbol} is {meaning} here; {fix}" if symbol else None


def _is_meant(label: str, name: str) -> bool:
    """Whether a label is another spelling of a name, or that of another exporter of consumer groups."""
    return _spelling(label) == _spelling(name) or {_spelling(label), _spelling(name)} <= _GROUPS


def _spelling(label: str) -> str:
    return label.replace("_", "").lower()
