"""The inputs of a decision, section by section: summary, signals, capacity, terms and rules."""

from collections.abc import Iterator
from math import inf

import numpy as np

from adapter.core.capacity import PRIOR, Table, rate_at
from adapter.core.decide import decide
from adapter.core.decisions import CONFIDENCE
from adapter.core.formatting import UNKNOWN, counted, workers
from adapter.core.parameters import CHOICES, columns
from adapter.core.policies import policy_of
from adapter.core.record import decision_input_of, table_in
from adapter.core.rule_book import RuleBook
from adapter.core.rule_columns import RuleColumns
from adapter.core.rules import MEANINGS, Rules
from adapter.core.samples import first_known
from adapter.core.signals import HORIZON_S
from adapter.core.size_messages import tries_smaller_size, why_unchanged
from adapter.core.stops import LEAST_RESCALES
from adapter.operations.number_text import ago, exact, number, time_text, title, with_unit
from adapter.operations.recorded_decision import RecordedDecision, known
from adapter.operations.rows import Row, TextSection
from adapter.operations.tables import unbounded

_COSTS = (  # name, setting, how many rescales have shown it, whether the setting is unset ("": it never is)
    ("start", "worker_start_s", "measured_starts", "measures_start"),
    ("pause", "rescale_pause_s", "measured_pauses", ""),
    ("delay", "metric_delay_s", "measured_delays", "measures_delay"),
    ("warm up", "warm_up_s", "measured_warm_ups", "measures_warm_up"),
)
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
_OF_ENGINES = (
    "cpu_ratio",
    "memory_ratio",
    "network_ratio",
    "busiest_subtask_ratio",
    "load_ratio",
    "true_rate_records_per_s",
    "required_parallelism",
    "relayed_load_ratio",
)  # shown where they are known
_SAME_RATIO = 0.02  # values that differ by less are shown once


def summary(recorded: RecordedDecision) -> TextSection:
    """The target, the range, and the present workers."""
    decision = recorded.decision
    counts = ((decision.spec_workers, "desired"), (decision.workers, "running"), (decision.ready_workers, "ready"))
    states = ", ".join(f"{number(count)} {state}" for count, state in counts if count is not None)
    limits = f"{number(decision.min_workers)} to {number(recorded.most)}"
    return TextSection(
        f"{decision.workload}, policy {decision.policy}",
        (
            Row(name="required workers", value=number(recorded.served), note=_origin(recorded)),
            Row(name="allowed", value=limits, note=_limit_text(recorded)),
            Row(name="workers", value=_current(recorded), note=states),
            *([Row(name="deciding stage", value=decision.stage)] if decision.stage else []),
            *([Row(name="bottleneck", value=decision.bottleneck)] if decision.bottleneck else []),
        ),
    )


def signals(recorded: RecordedDecision) -> TextSection:
    """The signals and their age."""
    decision = recorded.decision
    seen = f"last sample {ago(decision.sample_age_s)}, workers counted {ago(decision.workers_age_s)}"
    values = {name: getattr(decision, name) for name in _SIGNALS}
    values |= {name: value for name in _OF_ENGINES if (value := getattr(decision, name)) is not None}
    short = f"less than {time_text(recorded.rule('short_backlog_time_s'))} counts as none"
    notes = {"backlog_time_s": short} if policy_of(decision.policy).waits_until_warm else {}
    rows = [
        Row(name=title(name), value=with_unit(name, value), note=notes.get(name, ""))
        for name, value in values.items()
        if value is not None
    ]
    silent = ", ".join(title(name) for name, value in values.items() if value is None)
    return TextSection(f"Signals ({seen})", (*rows, *([Row(name=UNKNOWN, note=silent)] if silent else [])))


def capacity(recorded: RecordedDecision) -> TextSection:
    """The learned capacity table, and the capacity of the present workers."""
    table = table_in(recorded.columns)
    entries = zip(table.sizes[:, 0], table.rates[:, 0], table.confidence[:, 0], table.seen_at_s[:, 0], strict=True)
    rows = [_entry(recorded, *map(float, entry)) for entry in entries if np.isfinite(entry[0])]
    return TextSection("Capacity", (*rows, *_fullest(recorded), *_rescale(recorded), _at_work(recorded, table)))


def terms(recorded: RecordedDecision) -> TextSection:
    """The sizes that the policy computed, also where a closed gate prevents their use."""
    policy_result, peak = recorded.result.policy_result, recorded.columns["workload_status.peak_workers"]
    sizes = {
        "to keep up": policy_result.keep_up_workers,
        "to catch up": policy_result.catch_up_workers,
        "needed": policy_result.needed_workers,
        "wanted": policy_result.wanted_workers,
        "scale-down window": first_known(recorded.result.bound_inputs.window_workers, peak),
    }
    tried = "or fewer: a smaller size is tried, because only a lower bound of the capacity is known"
    notes = {
        "to keep up": tried if tries_smaller_size(recorded.decision) else "",
        "needed": _rounding(recorded),
        "wanted": _hold_text(recorded),
        "scale-down window": "the target is not lower",
    }
    rows = [
        Row(name=name, value=_size(known(size)), note=notes.get(name, ""))
        for name, size in sizes.items()
        if known(size) is not None
    ]
    unused = " (not used: a gate is closed)" if recorded.gate is not None else ""
    return TextSection(f"Terms of the policy, in workers{unused}", (*rows, *_what_if(recorded)))


def rules(recorded: RecordedDecision) -> TextSection:
    """The parameters that are not the policy's defaults. Those that are measured have rows of their own."""
    defaults, rows = _defaults(recorded), []
    measured = {setting for _, setting, _, unset in _COSTS if _is_measured(recorded, unset)}
    measured |= {"backlog_time_target_s"} if recorded.rule("measures_target") == 1 else set()
    by_ticks = recorded.rule("short_backlog_time_s") == recorded.rule("between_commits_s")
    measured |= {"short_backlog_time_s"} if by_ticks else set()
    for name, meaning in MEANINGS.items():
        now, default = recorded.rule(name), known(getattr(defaults, name))
        if now != default and name not in measured:
            rows.append(Row(name=name, value=f"{_set(name, now)}, default {_set(name, default)}", note=meaning))
    return TextSection("Rules that are not the default", tuple(rows))


def _defaults(recorded: RecordedDecision) -> RuleColumns:
    """The parameters of the policy where nothing is configured."""
    decision = recorded.decision
    book = RuleBook(by_workload={decision.workload: Rules(policy=decision.policy)})
    return columns((decision.workload,), np.array([np.nan]), book, decision.at_s, {})[0]


def _rounding(recorded: RecordedDecision) -> str:
    """How an even spread of the partitions changes the size that the load needs."""
    partitions = recorded.number("policy_input.partitions")
    without = {**recorded.columns, "policy_input.partitions": np.array([np.nan])}
    plain = known(decide(decision_input_of(without)).policy_result.needed_workers)
    needed = known(recorded.result.policy_result.needed_workers)
    follows = policy_of(recorded.decision.policy).follows_partitions
    if plain is None or needed is None or needed == plain or partitions is None or follows:
        return ""
    direction = "up" if needed > plain else "down"
    return f"rounded {direction} from {_size(plain)}: spreads {number(partitions)} partitions evenly"


def _hold_text(recorded: RecordedDecision) -> str:
    """Why the policy wants the present size, where it differs from the needed one."""
    decision = recorded.decision
    is_kept = decision.wanted_workers == decision.reference_workers != decision.needed_workers is not None
    return f"the present size: {why_unchanged(decision)}".removesuffix(": ") if is_kept else ""


def _origin(recorded: RecordedDecision) -> str:
    parts = [f"{recorded.gate} is closed"] if recorded.gate is not None else []
    if recorded.bound:
        parts.append(f"{number(unbounded(recorded))} before the bounds, changed by {recorded.bound}")
    if not parts:
        parts = ["the size that the policy wants"]
        parts += ["and the unhealthy sink holds it"] if recorded.held_by_sink else []
    return ", ".join(parts)


def _current(recorded: RecordedDecision) -> str:
    current = recorded.number("workload_status.current_workers")
    return UNKNOWN if current is None else number(current)


def _limit_text(recorded: RecordedDecision) -> str:
    decided = recorded.decision
    most_by = "the partitions" if recorded.by_partitions else recorded.most_by
    kept = "; later stages keep more" if (recorded.served or 0.0) > (recorded.most or inf) else ""
    range_ = f"{recorded.least_by} to {most_by}{kept}"
    if decided.partitions is not None:
        return f"{range_}; {counted(decided.partitions, 'partition')}"
    age_s = decided.partitions_age_s
    return range_ if age_s is None else f"{range_}; partitions last counted {ago(age_s)}"


def _at_work(recorded: RecordedDecision, table: Table) -> Row:
    decision, present = recorded.decision, recorded.columns["policy_input.workers"]
    learned = known(rate_at(table, present, recorded.columns["rules.scaling_exponent"]))
    now = decision.capacity_records_per_s
    of = "" if (table.sizes[:, 0] == present).any() else " at other sizes"
    value, note = with_unit("_per_s", now), f"confidence: {decision.confidence}{of if now is not None else ''}"
    if now is None and learned is not None:
        value = f"{with_unit('_per_s', learned)} or more"
    elif now is not None and learned is not None and abs(now - learned) > _SAME_RATIO * learned:
        note = f"table says {with_unit('_per_s', learned)}, now {value}; {note}"
    return Row(name=f"{number(known(present))} now", value=value, note=note)


def _fullest(recorded: RecordedDecision) -> list[Row]:
    """The load at which the fullest worker fell behind."""
    ratio = recorded.number("policy_input.fullest_ratio")
    note = "of its capacity was in use when it fell behind"
    return [Row(name="fullest worker", value=with_unit("_ratio", ratio), note=note)] if ratio is not None else []


def _rescale(recorded: RecordedDecision) -> Iterator[Row]:
    """What a rescale costs, where each number comes from, and what follows, for a policy that measures it."""
    if not policy_of(recorded.decision.policy).waits_until_warm:
        return
    for name, setting, shown_by, unset in _COSTS:
        shown = recorded.number(f"workload_status.{shown_by}") or 0.0
        note = "as configured"
        if _is_measured(recorded, unset):
            note = f"{counted(shown, 'rescale')} measured{_cost_origin(recorded, setting, shown)}"
        yield Row(name=name, value=time_text(recorded.rule(setting)), note=note)
    if recorded.rule("measures_target") == 1:
        note = "of the backlog time; it follows from these costs while it is unset"
        yield Row(name="target", value=time_text(recorded.rule("backlog_time_target_s")), note=note)


def _is_measured(recorded: RecordedDecision, unset: str) -> bool:
    """Whether the policy measures a cost of a rescale, in place of its setting."""
    return policy_of(recorded.decision.policy).waits_until_warm and (not unset or recorded.rule(unset) == 1)


def _cost_origin(recorded: RecordedDecision, setting: str, shown: float) -> str:
    """The origin of a cost. shown: how many rescales have shown it."""
    if shown >= LEAST_RESCALES:
        return ""
    is_default = recorded.rule(setting) == known(getattr(_defaults(recorded), setting))
    pauses = recorded.number("workload_status.measured_pauses") or 0.0
    if setting == "metric_delay_s" and pauses >= LEAST_RESCALES and recorded.rule("rescale_pause_s") == 0:
        return f"; {'the default' if is_default else 'an earlier measurement'} counts while most rescales show no pause"
    until = f"is used until {LEAST_RESCALES} are measured"
    if setting in ("metric_delay_s", "worker_start_s"):  # count from the first rescale on
        origin = "the default is used until one is measured" if is_default else "an earlier measurement counts"
        return f"; the longest {until}" if shown else f"; {origin}"
    early = "the setting or longer" if setting == "rescale_pause_s" else "the configured"
    return f"; {'the default' if is_default else early} {until}"


def _entry(recorded: RecordedDecision, size: float, rate: float, confidence: float, seen_at_s: float) -> Row:
    if confidence == PRIOR:  # the entry is beyond all sizes
        each, configured = rate / size, recorded.rule("worker_capacity_records_per_s")
        note = "as configured" if each == configured else f"as carried, {with_unit('_per_s', configured)} configured"
        return Row(name="each worker", value=with_unit("_per_s", each), note=note)
    note = f"{CONFIDENCE[int(confidence)]}, in use {ago(recorded.decision.at_s - seen_at_s)}"
    return Row(name=workers(size), value=with_unit("_per_s", rate), note=note)


def _what_if(recorded: RecordedDecision) -> list[Row]:
    ahead = recorded.result.policy_result.outlook
    behind_s = known(ahead.change_behind_s)
    if behind_s is None:
        return []
    current, other = workers(recorded.number("policy_input.workers")), workers(known(ahead.change_workers))
    kept_s, after_s, end_s = known(ahead.keep_behind_s), known(ahead.keep_after_s), known(ahead.caught_up_s)
    caught_up = f"caught up in {time_text(end_s)}" if end_s is not None and end_s < HORIZON_S else "not caught up"
    when = f"in {time_text(after_s)}" if after_s else "now"
    kept = Row(name=f"with {current}", value=f"{time_text(kept_s)} behind", note=when)
    changed = Row(name=f"with {other}", value=f"{time_text(behind_s)} behind", note=f"at most; {caught_up}")
    return [kept] if other == current else [kept, changed]  # a change to the same size is none


def _size(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.2f}".replace(",", " ").removesuffix(".00")


def _set(name: str, value: float | None) -> str:
    if value is None:
        return "unset"
    return str(CHOICES[name][int(value)]) if name in CHOICES else exact("", value)
