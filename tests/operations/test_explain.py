"""The explanation as text."""

import re
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import pytest
from builders import TICK_S, book, counts, flow, job, steady, tick
from records import growing, record_of

from adapter.core.decisions import Bound, Reason
from adapter.core.rules import MEANINGS, POLICIES
from adapter.operations.explain import explain, lines
from adapter.operations.recorded_decision import replay
from adapter.operations.rows import COLUMNS
from adapter.operations.tables import bound_table, gate_table

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "growing.txt"


def section(record, title):
    """The lines of one section."""
    text = "\n".join(lines(explain(record)))
    return next(part for part in text.split("\n\n") if part.startswith(title))


def test_the_running_example_is_explained_word_for_word():
    """Review an intended change as a diff of the golden file."""
    assert lines(explain(growing(max_workers=20))) == GOLDEN.read_text("utf-8").splitlines()


def test_the_sentence_comes_first():
    record = growing()
    assert record.sentence.startswith(lines(explain(record))[0])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("signals", [{}, {"running": 0.0}, {"backlog": 10.0**15}])
def test_no_line_is_wider_than_the_limit(policy, signals):
    stream = {"throughput": 1000, "growth": 200, "backlog": 5000, "partitions": 48} | signals
    record = record_of(steady(120, **stream), book(policy=policy, min_spare_workers=2))
    assert max(map(len, lines(explain(record)))) <= COLUMNS


def test_the_deciding_gate_is_marked_with_what_opens_it():
    record = growing({"running": 0.0, "pause_up": 1.0, "pause_down": 1.0})
    gates = section(record, "Gates").splitlines()
    assert [line.split()[1] for line in gates if line.startswith(">")] == [Reason.PAUSED]
    assert "NotRunning            also closed" in "\n".join(gates)
    changing = section(record, "What would change")
    assert "> decided by      Paused" in changing
    assert "the gate opens " in changing
    assert "when the pause ends or is removed" in changing
    assert "NotRunning would hold it" in changing


@pytest.mark.parametrize(
    ("signals", "rules", "expected"),
    [
        ({"pause_up": 1.0, "pause_down": 1.0}, {}, "scale-ups and scale-downs are paused by the annotation "
         "backlog-adapter/pause of the HPA"),
        ({}, {"pause_up_until_s": inf}, "scale-ups are paused by `pause` in the configuration without an end, "
         "scale-downs are not paused"),
        ({"pause_up": 1.0}, {"pause_up_until_s": 300.0, "pause_down_until_s": 7200.0}, "scale-ups are paused by the "
         "annotation backlog-adapter/pause of the HPA, scale-downs are paused by `pause` in the configuration until "
         "1970-01-01T02:00:00Z"),
    ],
)  # fmt: skip
def test_a_pause_has_its_origin_and_its_end(signals, rules, expected):
    assert expected in " ".join(section(growing(signals, **rules), "Gates").split())


def test_a_workload_without_any_sample_has_unknown_workers_and_no_number():
    unknown = dict.fromkeys(("throughput", "workers", "spec_workers", "ready_workers"), nan)
    record = record_of(steady(60, **unknown), book(policy="drain"))
    assert "workers unknown, not changed yet, in_flight_timeout_s 10 min" in section(record, "Gates")
    assert "there would still be no number, because of WorkersUnknown" in section(record, "What would change")


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "segments"])
def test_no_gate_is_the_cause_of_what_happens_without_it(policy):
    record = record_of(steady(1, throughput=1000, growth=200, backlog=5000, partitions=48), book(policy=policy))
    changing = section(record, "What would change")
    assert "> decided by         NoDataYet" in changing
    assert "without NoDataYet             the policy could not decide either: its inputs are unknown" in changing


def test_gates_and_bounds_stand_in_their_order_and_lead_to_the_target():
    recorded = replay(growing(max_workers=12, max_step_up_workers=4))
    gates, bounds = gate_table(recorded), bound_table(recorded)
    assert [gate.name for gate in gates][:3] == [Reason.PAUSED, Reason.EXCLUDED, Reason.NO_DATA]
    assert not any(gate.closed for gate in gates)
    cut = [(step.name, step.before, step.after) for step in bounds if step.before != step.after]
    assert cut == [(Bound.STEP, growing().decision.required_workers, 14), (Bound.MAX, 14, 12)]
    assert [step.name for step in bounds] == [bound for bound in Bound if bound is not Bound.NONE]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("workers", [3, 60])
@pytest.mark.parametrize("rules", [{}, {"max_workers": 12}, {"max_step_down_workers": 2, "cooldown_up_s": 900.0}])
def test_the_bounds_lead_from_the_size_of_the_policy_to_the_target(policy, workers, rules):
    ticks = steady(120, throughput=1000, growth=20, backlog=50, workers=workers, spec_workers=workers,
                   ready_workers=workers, partitions=48)  # fmt: skip
    record = record_of(ticks, book(policy=policy, **rules))
    assert bound_table(replay(record))[-1].after == record.decision.required_workers


def test_only_rules_that_differ_from_the_defaults_of_the_policy_are_shown():
    record = section(growing(max_workers=12, down_window_s=60.0, quanta="divisors"), "Rules")
    assert [line.split()[0] for line in record.splitlines()[1:] if line.startswith("  ") and line[2] != " "] == [
        "quanta",
        "down_window_s",
        "max_workers",
    ]
    assert max(map(len, record.splitlines())) <= COLUMNS
    assert "divisors, default relative" in record
    assert "60, default 3 600" in record


def test_the_first_screen_shows_the_target_its_reason_its_changes_and_the_hpa():
    for policy in POLICIES:
        text = lines(explain(growing(policy=policy)))
        first = "\n".join(text[:25])
        assert "  required workers " in first
        assert "\nWhat would change" in first
        assert '\n  tolerance "0"' in first


def test_a_rule_that_is_not_the_default_is_shown_with_its_whole_meaning():
    shown = section(growing(target_utilization_ratio=0.75, warm_up_s=60.0, max_workers=12), "Rules").splitlines()[1:]
    names = {line.split()[0] for line in shown if line[2:3].strip()}
    assert names == {"target_utilization_ratio", "warm_up_s", "max_workers"}
    assert f"warm_up_s 60, default 120 {MEANINGS['warm_up_s']}" in " ".join(" ".join(shown).split())


@pytest.mark.parametrize(
    ("policy", "row"),
    [
        ("drain", "  backlog time         125 s       less than 15 s counts as none"),  # the time between two ticks
        ("dataflow", "  backlog time         125 s"),
    ],
)
def test_a_backlog_that_counts_as_none_is_shown_where_the_ticks_lengthen_it(policy, row):
    record = growing(policy=policy)
    assert row in section(record, "Signals").splitlines()
    assert "short_backlog_time_s" not in "\n".join(lines(explain(record)))


def test_a_configured_backlog_that_counts_as_none_is_a_rule():
    record = growing(short_backlog_time_s=45.0)
    assert "less than 45 s counts as none" in section(record, "Signals")
    assert "  short_backlog_time_s  45, default 10  " in section(record, "Rules")


def test_a_cost_that_the_policy_measures_is_no_rule():
    record = "\n".join(lines(explain(growing(rescale_pause_s=20.0, max_workers=12))))
    assert "default 30" not in record
    assert "default 30" in "\n".join(lines(explain(growing(policy="dataflow", rescale_pause_s=20.0))))


@pytest.mark.parametrize(
    ("signals", "rules", "range_", "by"),
    [
        ({}, {"max_workers": 12}, "min_workers to max_workers", "max workers"),
        ({"max_workers": 12}, {}, "min_workers to the HPA's maxReplicas", "the HPA's maxReplicas"),
        ({"max_workers": 12}, {"max_workers": 12}, "min_workers to max_workers", "max workers"),
        ({"partitions": 12}, {}, "min_workers to the partitions", "partitions"),
        ({"min_workers": 30}, {"latch_s": 0.0}, "the HPA's minReplicas to the partitions", "the HPA's minReplicas"),
        ({}, {"min_workers": 30, "latch_s": 0.0}, "min_workers to the partitions", "min workers"),
        ({"max_workers": 9}, {"min_workers": 20}, "the maximum to the HPA's maxReplicas", "the HPA's maxReplicas"),
        (
            {"partitions": 120, "max_workers": 70},
            {"max_partitions_per_worker": 2, "latch_s": 0.0},
            "max_partitions_per_worker to the HPA's maxReplicas",
            "memory",
        ),
    ],
)
def test_an_end_of_the_range_names_its_origin(signals, rules, range_, by):
    record = growing(signals, **rules)
    assert range_ in section(record, "shop/orders")
    decided = section(record, "What would change").splitlines()[1]
    assert decided.removeprefix("> decided by").strip().startswith(by)


def test_a_maximum_of_the_hpa_is_named_as_such():
    assert "at most 12: not above the HPA's maxReplicas" in section(growing({"max_workers": 12}), "Bounds")
    assert "at most 12: not above max_workers" in section(growing(max_workers=12), "Bounds")
    assert "1 to 100  min_workers to the default maximum" in section(growing({"partitions": 720.0}), "shop/orders")


def test_workers_that_later_stages_keep_are_no_maximum():
    behind, later = {"growth": 300, "backlog": 20_000}, {"throughput_records_per_s": 700, "utilization_ratio": 0.2}
    ticks = [
        tick(at_s, job(stage="Source", **counts() | flow(at_s, **behind), partitions=6), job(stage="Map", **later))
        for at_s in range(0, 601, TICK_S)
    ]
    shown = section(record_of(ticks, book(policy="drain")), "shop/orders")
    assert "required workers  10" in shown
    assert "1 to 6  min_workers to the partitions; later stages keep more; 6 partitions" in shown


def test_the_maximum_of_a_target_that_a_gate_holds_is_not_that_of_the_partitions():
    record = growing({"partitions": 2.0, "max_workers": 5.0, "pause_up": 1.0, "pause_down": 1.0})
    assert record.sentence.endswith("; the maximum is 5 workers")
    assert "1 to 5  min_workers to the HPA's maxReplicas; 2 partitions" in section(record, "shop/orders")
    assert "at most 5: not above the HPA's maxReplicas" in section(record, "Bounds")
    changes = section(record, "What would change")
    assert re.search("the HPA's maxReplicas +5 +6 workers at 6, 4 workers at 4", changes)


def test_s1_13_a_lag_change_below_its_threshold_is_shown_as_such():
    record = section(growing(policy="varga", lag_threshold_records=10.0**9), "Signals")
    assert "below the threshold" in next(line for line in record.splitlines() if "relative lag change" in line)


@pytest.mark.parametrize(
    ("now", "words"),
    [(None, "1 000/s or more"), (120.0, "table says 1 000/s, now 120/s"), (1010.0, "1 010/s  confidence")],
    ids=["a lower bound", "other", "nearly the same"],
)
def test_the_present_capacity_stands_beside_the_learned_one_if_they_differ(now, words):
    record = growing()
    decision = replace(record.decision, capacity_records_per_s=now)
    at_work = section(replace(record, decision=decision), "Capacity").splitlines()[-1]
    assert words in at_work


@pytest.mark.parametrize(("workers", "noted"), [(10, False), (12, True)])
def test_a_capacity_that_follows_from_other_sizes_is_named_as_such(workers, noted):
    """Twelve workers have just started, and only ten were observed."""
    stream = {"throughput": 1000, "growth": 200, "backlog": 5000}
    ticks = [*steady(600, **stream), *steady(630, 615, **stream, **counts(workers))]
    at_work = section(record_of(ticks, book(policy="drain")), "Capacity").splitlines()[-1]
    assert ("confidence: observed at other sizes" in at_work) == noted


def costs(record, name):
    """The lines of one cost of a rescale."""
    return [line for line in section(record, "Capacity").splitlines() if f"  {name} " in line]


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (0.0, "0 rescales measured; the default is used until "),
        (1.0, "1 rescale measured; {early} is used until 3 are measured"),
        (4.0, "4 rescales measured"),
    ],
    ids=["none", "too few", "enough"],
)
@pytest.mark.parametrize(
    ("name", "counted", "early"),
    [
        ("start", "starts", "the longest"),
        ("pause", "pauses", "the default"),
        ("delay", "delays", "the longest"),
        ("warm up", "warm_ups", "the default"),
    ],
)
def test_the_cost_of_a_rescale_is_shown_with_its_origin(name, counted, early, measured, words):
    record = growing(policy="drain")
    columns = {**record.record, f"workload_status.measured_{counted}": measured}
    (shown,) = costs(replace(record, record=columns), name)
    assert words.format(early=early) in shown


@pytest.mark.parametrize(("delay_s", "origin"), [(0.0, "the default"), (30.0, "an earlier measurement")])
def test_a_delay_that_does_not_count_is_not_named_as_measured(delay_s, origin):
    record = growing(policy="drain", rescale_pause_s=0.0)
    seen = {"workload_status.measured_pauses": 4.0, "workload_status.measured_delays": 1.0}
    columns = {**record.record, **seen, "rules.metric_delay_s": delay_s}
    (shown,) = costs(replace(record, record=columns), "delay")
    assert f"1 rescale measured; {origin} counts while most rescales show no" in shown


@pytest.mark.parametrize(("start_s", "origin"), [(30.0, "the default is used until"), (45.0, "an earlier measurement")])
def test_a_start_counts_after_the_rescales_that_have_shown_it(start_s, origin):
    record = growing(policy="drain")
    (shown,) = costs(replace(record, record={**record.record, "rules.worker_start_s": start_s}), "start")
    assert f"0 rescales measured; {origin}" in shown


@pytest.mark.parametrize(
    ("name", "setting", "origin"),
    [
        ("start", "worker_start_s", "as configured"),
        (
            "pause",
            "rescale_pause_s",
            "0 rescales measured; the setting or longer is used until 3 are measured",
        ),
        ("delay", "metric_delay_s", "as configured"),
        ("warm up", "warm_up_s", "as configured"),
    ],
)
def test_a_configured_cost_of_a_rescale_is_named_as_such(name, setting, origin):
    (shown,) = costs(growing(policy="drain", **{setting: 45.0}), name)
    assert re.fullmatch(f" *{name} +45 s +{origin}", shown)


@pytest.mark.parametrize(("rules", "shown"), [({}, 1), ({"backlog_time_target_s": 90.0}, 0)])
def test_a_target_that_follows_from_the_costs_is_no_rule(rules, shown):
    record = growing(policy="drain", rescale_pause_s=60.0, **rules)
    assert [re.sub(" +", " ", line) for line in costs(record, "target")] == [
        " target 90 s of the backlog time; it follows from these costs while it is unset"
    ] * shown
    assert "\n".join(lines(explain(record))).count("backlog_time_target_s  90, default 60") == 1 - shown


def test_a_policy_that_measures_no_rescale_shows_no_cost():
    assert costs(growing(policy="varga"), "pause") == []


def test_the_load_at_which_the_fullest_worker_fell_behind_is_shown():
    record = growing(policy="drain")
    columns = {**record.record, "policy_input.fullest_ratio": 0.875}
    assert "fullest worker" not in section(record, "Capacity")
    assert re.search("fullest worker +88 %", section(replace(record, record=columns), "Capacity"))


@pytest.mark.parametrize(("throughput", "sizes"), [(800, ["10"]), (400, ["10", "5"])])
def test_the_outlook_has_a_second_size_only_if_the_policy_considers_one(throughput, sizes):
    """Each of 10 workers carries 100/s, so 800/s need 10 at a utilization of 0.8."""
    stream = {"throughput": throughput, "utilization_ratio": throughput / 1000}
    record = record_of(steady(60, **stream), book(policy="drain", min_spare_workers=0, rescale_pause_s=0.0))
    assert re.findall(r"with (\d+) workers", section(record, "Terms")) == sizes


def test_a_size_that_is_tried_is_below_the_one_that_is_known_to_keep_up():
    record = record_of(steady(600, throughput=550, partitions=12, **counts(6)), book(policy="drain"))
    terms = section(record, "Terms")
    assert re.search(r"to keep up +7.50 +or fewer: a smaller size is tried", terms)
    assert re.search(r"needed +4 +rounded down from 5", terms)
    assert record.sentence.endswith(", capacity unknown; a smaller size is tried, to learn the capacity")


def test_unknown_columns_of_a_record_are_ignored():
    record = growing()
    assert lines(explain(replace(record, record={**record.record, "policy_input.mood": 1.0}))) == lines(explain(record))


def test_a_configured_capacity_of_one_worker_is_shown():
    ticks = steady(60, throughput=1000, partitions=48)
    record = record_of(ticks, book(policy="drain", worker_capacity_records_per_s=150.0))
    assert "each worker" in section(record, "Capacity")
    assert "as configured" in section(record, "Capacity")
    assert "1 048 576" not in "\n".join(lines(explain(record))), "the internal size of a configured capacity is hidden"


@pytest.mark.parametrize(
    ("partitions", "needed"),
    [(12.0, "6     rounded up from 5: spreads 12 partitions evenly"), (None, "5")],
    ids=["an even spread takes one more", "unknown"],
)
def test_rounding_to_the_partitions_is_explained(partitions, needed):
    ticks = steady(120, throughput=1000, growth=20, backlog=50, workers=4, spec_workers=4, ready_workers=4,
                   partitions=partitions)  # fmt: skip
    terms = section(record_of(ticks, book(policy="netflix")), "Terms").splitlines()
    assert next(line for line in terms if "needed" in line).split(maxsplit=1) == ["needed", needed]


def test_a_policy_without_an_outlook_gives_no_cause():
    ticks = steady(120, throughput=1000, growth=20, backlog=50, **counts(4))
    terms = section(record_of(ticks, book(policy="netflix")), "Terms").splitlines()
    assert [line.split() for line in terms if "wanted" in line] == [["wanted", "4", "the", "present", "size"]]


def test_a_wanted_size_other_than_the_needed_one_is_explained():
    """10 workers carry 1 000/s without headroom."""
    ticks = steady(600, throughput=950, partitions=48.0)
    rules = book(policy="drain", worker_capacity_records_per_s=100.0)
    terms = section(record_of(ticks, rules), "Terms")
    assert "wanted 10 the present size: the backlog time stays below 60 s without a rescale" in " ".join(terms.split())
