"""What an HPA's annotations ask for, however they are written."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.parameters import allowed
from adapter.core.rules import POLICIES, QUANTA
from adapter.sources.annotations import (
    FAILOVER,
    PAUSE,
    PAUSE_UNTIL,
    POLICY,
    PREFIX,
    RULES,
    RULES_UNTIL,
    HpaAnnotations,
    parse,
)

NEW_YEAR_S = 1_893_456_000  # 2030-01-01T00:00:00Z
OURS = [PAUSE, PAUSE_UNTIL, FAILOVER, POLICY, RULES_UNTIL, f"{RULES}min_workers", f"{RULES}settle_s", f"{RULES}x"]


def test_annotations_of_other_programs_have_no_effect() -> None:
    assert parse({"kubectl.kubernetes.io/last-applied-configuration": "{}"}) == HpaAnnotations()
    assert parse({"metrics-adapter/pause": "up", "example.com/backlog-adapter": "up"}) == HpaAnnotations()
    assert parse({}) == HpaAnnotations()


def test_all_annotations_apply_together() -> None:
    found = parse(
        {
            PAUSE: "down",
            PAUSE_UNTIL: "2030-01-01T00:00:00Z",
            FAILOVER: "true",
            POLICY: "netflix",
            f"{RULES}catch_up_s": "300",
            f"{RULES}quanta": "none",
            f"{RULES}max_step_up_workers": "50",  # S4-29
            RULES_UNTIL: "2030-01-01T01:00:00+01:00",
        }
    )
    assert found == HpaAnnotations(
        pause_down=True,
        pause_until_s=NEW_YEAR_S,
        failover=True,
        rules={
            "policy": POLICIES.index("netflix"),
            "catch_up_s": 300,
            "quanta": QUANTA.index("none"),
            "max_step_up_workers": 50,
        },
        rules_until_s=NEW_YEAR_S,
    )


@pytest.mark.parametrize("text", ["3", "3.0", " 3", "3e0"])
def test_a_whole_number_may_be_written_in_several_ways(text: str) -> None:
    assert parse({f"{RULES}min_workers": text}) == HpaAnnotations(rules={"min_workers": 3})


@pytest.mark.parametrize("text", ["true", "True", "TRUE"])
def test_s4_30_failover_is_true_in_any_case(text: str) -> None:
    assert parse({FAILOVER: text}) == HpaAnnotations(failover=True)


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        pytest.param(FAILOVER, "yes", "expected true or false, got 'yes'; it is ignored", id="yes"),
        pytest.param(FAILOVER, "", "expected true or false, got ''; it is ignored", id="an empty claim"),
        pytest.param(POLICY, "netflex", "got 'netflex'; did you mean netflix?; it is ignored", id="a misspelt policy"),
        pytest.param(POLICY, "1", "expected one of drain, dataflow,", id="the number of a policy"),
        pytest.param(f"{RULES}quanta", "all", "expected one of relative, divisors, none, got 'all'", id="no choice"),
        pytest.param(f"{RULES}min_workers", "two", "expected a number, got 'two'; it is ignored", id="a word"),
        pytest.param(f"{RULES}min_workers", "", "expected a number, got ''", id="nothing"),
        pytest.param(f"{RULES}min_workers", "2.5", "expected a whole number at least 0 and at most 100000", id="2.5"),
        pytest.param(f"{RULES}min_workers", "-1", "expected a whole number at least 0", id="a negative count"),
        pytest.param(f"{RULES}min_workers", "nan", "expected a whole number at least 0", id="not a number"),
        pytest.param(f"{RULES}min_workers", "1_0", "expected a number, got '1_0'; it is ignored", id="not 10"),
        pytest.param(f"{RULES}settle_s", "inf", "expected a number at least 0 and at most 86400, got", id="infinity"),
        pytest.param(f"{RULES}settle_s", "45s", "got '45s'; write 45, the seconds without a unit; it is", id="a unit"),
        pytest.param(f"{RULES}settle_s", "PT48H", "expected a number, got 'PT48H'; it is ignored", id="too many hours"),
        pytest.param(f"{RULES}catch_up_s", "0", "expected a number more than 0 and at most 86400", id="a bound"),
        pytest.param(f"{RULES}settle_s", "9" * 400, "at most 86400, got '999", id="a very long number"),
        pytest.param(RULES_UNTIL, "soon", "got 'soon'; the rules have no end", id="no time"),
        pytest.param(RULES_UNTIL, "2030-01-01T00:00:00", "a time with its zone", id="a time without zone"),
        pytest.param(RULES_UNTIL, "0001-01-01T00:00:00+14:00", "", id="a time before all times"),
    ],
)
def test_an_invalid_annotation_is_ignored_and_reported_and_the_others_apply(key: str, text: str, sentence: str) -> None:
    found = parse({key: text, f"{RULES}max_workers": "9"})
    assert found.rules == {"max_workers": 9}
    assert not found.failover
    if sentence:
        [complaint] = found.faults
        assert complaint.startswith(f"annotation {key}: ")
        assert sentence in complaint
        assert len(complaint) < 300


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        pytest.param("backlog-adapter/pase", "; did you mean backlog-adapter/pause?", id="a letter too few"),
        pytest.param(
            "backlog-adapter/rules.min_worker", "; did you mean backlog-adapter/rules.min_workers?", id="rule"
        ),
        pytest.param("backlog-adapter/rules.policy", "; did you mean backlog-adapter/policy?", id="a policy as a rule"),
        pytest.param("backlog-adapter/rules.pause_up_until_s", " is unknown", id="a hidden parameter"),
        pytest.param("backlog-adapter.io/pause", "; did you mean backlog-adapter/pause?", id="a domain"),
        pytest.param("backlogadapter/pause", "; did you mean backlog-adapter/pause?", id="a prefix without its hyphen"),
        pytest.param(
            "backlog_adapter/rules.min_workers", "; did you mean backlog-adapter/rules.min_workers?", id="an underscore"
        ),
        pytest.param("backlog-adapter.pause", "; expected backlog-adapter/pause,", id="no slash"),
        pytest.param("backlog-adapter/", "; expected backlog-adapter/pause,", id="no name"),
        pytest.param("backlog-adapter/rules.zzzzzzzz", " or backlog-adapter/rules.<parameter>", id="no such rule"),
    ],
)
def test_an_unknown_annotation_is_reported_with_the_nearest_name(key: str, hint: str) -> None:
    found = parse({key: "1"})
    [complaint] = found.faults
    assert complaint.startswith(f"annotation '{key}' is unknown")
    assert hint in complaint
    assert found == HpaAnnotations(faults=found.faults)


def test_every_invalid_annotation_has_one_fault() -> None:
    wrong = {FAILOVER: "maybe", POLICY: "x", "backlog-adapter/weather": "fine", PAUSE_UNTIL: "soon"}
    faults = parse({**wrong, f"{RULES}min_workers": "2"}).faults
    assert len(faults) == len(wrong)
    assert "\n" not in "".join(faults)


@pytest.mark.parametrize("name", ["rate_window_s", "stale_after_s", "error_after_s"])
def test_only_the_configuration_can_set_the_times_of_a_shard(name: str) -> None:
    assert parse({f"{RULES}{name}": "30"}) == HpaAnnotations(
        faults=(
            f"annotation backlog-adapter/rules.{name}: only the configuration can set it (in the rules of the file, of "
            "a workload or of a fleet); it is ignored",
        )
    )


@pytest.mark.parametrize(
    ("annotations", "complaint"),
    [
        pytest.param(
            {PAUSE_UNTIL: "2030-01-01T00:00:00Z", FAILOVER: "false"},
            "annotation backlog-adapter/pause-until: there is no backlog-adapter/pause for it to end; it is ignored",
            id="an end of no pause",
        ),
        pytest.param(
            {RULES_UNTIL: "2030-01-01T00:00:00Z", FAILOVER: "false"},
            "annotation backlog-adapter/rules-until: there is no backlog-adapter/policy or "
            "backlog-adapter/rules.<parameter> for it to end; it is ignored",
            id="an end of no rules, as failover has none",
        ),
        pytest.param({PAUSE_UNTIL: "soon"}, "there is no backlog-adapter/pause", id="no time and no pause"),
    ],
)
def test_an_expiry_without_anything_to_end_is_reported(annotations: dict[str, str], complaint: str) -> None:
    found = parse(annotations)
    assert complaint in "".join(found.faults)
    assert found == HpaAnnotations(faults=found.faults)
    assert len(found.faults) == 1


@given(st.dictionaries(st.sampled_from(OURS) | st.text(max_size=9), st.text(max_size=12) | st.floats().map(str)))
def test_any_text_is_parsed_or_reported(annotations: dict[str, str]) -> None:
    found = parse(annotations)
    assert not math.isnan(found.pause_until_s + found.rules_until_s)
    assert len(found.faults) <= sum(key.startswith(PREFIX) for key in annotations)
    for parameter, value in found.rules.items():
        assert allowed(parameter, np.array([value])).all()
