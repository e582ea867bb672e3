"""What a decision was made from, section by section: the question, signals, capacity, terms and rules."""

from dataclasses import fields

import numpy as np

from adapter.core.capacity import CONFIDENCE, PRIOR, Table, rate_at
from adapter.core.decide import decide
from adapter.core.parameters import columns
from adapter.core.policies import policy_of
from adapter.core.record import decision_input_of, table_in
from adapter.core.rules import RuleBook, Rules
from adapter.core.signals import HORIZON_S
from adapter.operations.reading import Reading, known
from adapter.operations.rows import Row, Section
from adapter.operations.tables import unbounded
from adapter.operations.words import ago, exact, lasting, number, said, title
from adapter.serving.ui.view import UNKNOWN

_SIGNALS = (
    "throughput_records_per_s",
    "input_rate_records_per_s",
    "forecast_input_rate_records_per_s",
    "growth_records_per_s",
    "backlog_records",
    "highest_partition_backlog_records",
    "backlog_time_s",
    "drain_time_s",
    "utilization_ratio",
    "relative_lag_change_ratio",
    "hottest_partition_ratio",
    "slowest_worker_ratio",
)
_SAME_RATIO = 0.02  # what differs by less is told once
_CHOICES = {f.name: f.metadata["one_of"] for f in fields(Rules) if "one_of" in f.metadata}
_MEANINGS = {f.name: f.metadata["meaning"] for f in fields(Rules) if not f.metadata.get("hidden")}


def asked(reading: Reading) -> Section:
    """How many workers, by whom, and out of which."""
    decision = reading.decision
    counts = ((decision.spec_workers, "desired"), (decision.workers, "running"), (decision.ready_workers, "ready"))
    workers = ", ".join(f"{number(count)} {state}" for count, state in counts if count is not None)
    limits = f"{number(decision.min_workers)} to {number(decision.max_workers)}"
    return Section(
        f"{decision.workload}, policy {decision.policy}",
        (
            Row(name="required workers", value=number(reading.served), note=_origin(reading)),
            Row(name="allowed", value=limits, note=_limited(reading)),
            Row(name="workers", value=_current(reading), note=workers),
            *([Row(name="deciding stage", value=decision.stage)] if decision.stage else []),
        ),
    )


def signals(reading: Reading) -> Section:
    """What was seen, and how long ago."""
    decision = reading.decision
    seen = f"last sample {ago(decision.sample_age_s)}, workers counted {ago(decision.workers_age_s)}"
    values = {name: getattr(decision, name) for name in _SIGNALS}
    rows = [Row(name=title(name), value=said(name, value)) for name, value in values.items() if value is not None]
    silent = ", ".join(title(name) for name, value in values.items() if value is None)
    return Section(f"Signals ({seen})", (*rows, *([Row(name=UNKNOWN, note=silent)] if silent else [])))


def capacity(reading: Reading) -> Section:
    """The performance table as it was learned, and what the workers at work carry now."""
    table = table_in(reading.columns)
    entries = zip(table.sizes[:, 0], table.rates[:, 0], table.trust[:, 0], table.seen_at_s[:, 0], strict=True)
    rows = [_entry(reading, *map(float, entry)) for entry in entries if np.isfinite(entry[0])]
    return Section("Capacity", (*rows, _at_work(reading, table)))


def terms(reading: Reading) -> Section:
    """The sizes that the policy computed, also where a closed gate prevents their use."""
    policy_result = reading.result.policy_result
    sizes = {
        "to keep up": policy_result.keep_up_workers,
        "to catch up": policy_result.catch_up_workers,
        "needed": policy_result.needed_workers,
        "wanted": policy_result.wanted_workers,
        "at least, by the window": reading.columns["workload_status.peak_workers"],
    }
    notes = {"needed": _rounding(reading)}
    rows = [
        Row(name=name, value=_size(known(size)), note=notes.get(name, ""))
        for name, size in sizes.items()
        if known(size) is not None
    ]
    unused = " (not used: a gate is closed)" if reading.gate is not None else ""
    return Section(f"Terms of the policy, in workers{unused}", (*rows, *_what_if(reading)))


def rules(reading: Reading) -> Section:
    """The parameters that are not the policy's defaults."""
    decision = reading.decision
    book = RuleBook(by_workload={decision.workload: Rules(policy=decision.policy)})
    defaults = columns((decision.workload,), np.array([np.nan]), book, decision.at_s, {}).values
    rows = []
    for name, meaning in _MEANINGS.items():
        now, default = reading.rule(name), known(getattr(defaults, name))
        if now != default:
            value = f"{_set(name, now)}, default {_set(name, default)}"
            rows.append(Row(name=name, value=value, note=meaning, clipped=True))
    return Section("Rules that are not the default", tuple(rows))


def _rounding(reading: Reading) -> str:
    """How the partitions change the size that the load needs: an even spread takes more workers, or fewer."""
    partitions = reading.number("policy_input.partitions")
    without = {**reading.columns, "policy_input.partitions": np.array([np.nan])}
    plain = known(decide(decision_input_of(without)).policy_result.needed_workers)
    needed = known(reading.result.policy_result.needed_workers)
    if plain is None or needed is None or needed == plain or partitions is None or _follows(reading):
        return ""
    direction = "up" if needed > plain else "down"
    return f"rounded {direction} from {_size(plain)}: spreads {number(partitions)} partitions evenly"


def _follows(reading: Reading) -> bool:
    return policy_of(reading.decision.policy).follows_partitions


def _origin(reading: Reading) -> str:
    parts = [f"{reading.gate} is closed"] if reading.gate is not None else []
    if reading.bound:
        parts.append(f"{number(unbounded(reading))} before bounds, cut by {reading.bound}")
    if not parts:
        parts = ["as the policy wants it", *(["and its sink keeps it"] if reading.held_by_sink else [])]
    return ", ".join(parts)


def _current(reading: Reading) -> str:
    current = reading.number("workload_status.current_workers")
    return UNKNOWN if current is None else number(current)


def _limited(reading: Reading) -> str:
    decided = reading.decision
    range_ = f"{reading.least_by} to {reading.most_by}"
    if decided.partitions is not None:
        return f"{range_}; {number(decided.partitions)} partitions"
    age_s = decided.partitions_age_s
    return range_ if age_s is None else f"{range_}; partitions last counted {ago(age_s)}"


def _at_work(reading: Reading, table: Table) -> Row:
    decision, workers = reading.decision, reading.columns["policy_input.workers"]
    learned = known(rate_at(table, workers, reading.columns["rules.scaling_exponent"]))
    now = decision.capacity_records_per_s
    value, note = said("_per_s", now), f"confidence: {decision.confidence}"
    if now is None and learned is not None:
        value = f"{said('_per_s', learned)} or more"
    elif now is not None and learned is not None and abs(now - learned) > _SAME_RATIO * learned:
        note = f"table says {said('_per_s', learned)}, now {value}; {note}"
    return Row(name=f"{number(known(workers))} at work", value=value, note=note)


def _entry(reading: Reading, size: float, rate: float, trust: float, seen_at_s: float) -> Row:
    if trust == PRIOR:  # of a size beyond all
        each, configured = rate / size, reading.rule("worker_capacity_records_per_s")
        note = "as configured" if each == configured else f"as was carried, {said('_per_s', configured)} configured"
        return Row(name="each worker", value=said("_per_s", each), note=note)
    seen = ago(reading.decision.at_s - seen_at_s)
    return Row(name=f"{number(size)} workers", value=said("_per_s", rate), note=f"{CONFIDENCE[int(trust)]}, {seen}")


def _what_if(reading: Reading) -> list[Row]:
    ahead = reading.result.policy_result.outlook
    behind_s = None if ahead is None else known(ahead.change_behind_s)
    if ahead is None or behind_s is None:
        return []
    current, other = number(reading.number("policy_input.workers")), number(known(ahead.workers))
    kept_s, after_s, end_s = known(ahead.keep_behind_s), known(ahead.keep_after_s), known(ahead.caught_up_s)
    caught_up = f"caught up in {lasting(end_s)}" if end_s is not None and end_s < HORIZON_S else "not caught up"
    return [
        Row(name=f"with {current} workers", value=f"{lasting(kept_s)} behind", note=f"in {lasting(after_s)}"),
        Row(name=f"with {other} workers", value=f"{lasting(behind_s)} behind", note=f"at most; {caught_up}"),
    ]


def _size(workers: float | None) -> str:
    return UNKNOWN if workers is None else f"{workers:,.2f}".replace(",", " ").removesuffix(".00")


def _set(name: str, value: float | None) -> str:
    if value is None:
        return "unset"
    return str(_CHOICES[name][int(value)]) if name in _CHOICES else exact("", value)
