from typing import Any

import pytest
from builders import assemble

from adapter.core import engine
from adapter.core.decisions import Decisions
from adapter.core.report import rows
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.samples import EVERY, Samples
from adapter.core.state import EMPTY, VERSION, encode_fast, encode_slow
from adapter.failure_logger import MOST_CAUSES
from adapter.pipeline.fold import decode_state, fold_ticks

BOOK = RuleBook(by_workload={"shop/a": Rules(), "shop/poison": Rules()})


def tick(at_s: int, *names: str) -> Samples:
    return assemble(at_s, [(name, "", "backlog_records", 5.0) for name in names])


def advance(state: Any, samples: Samples, rules: RuleBook) -> tuple[Any, Decisions]:
    """The core with a bug: it cannot take a tick that holds shop/poison."""
    if "shop/poison" in samples.workloads:
        raise IndexError("index 3 is out of bounds")
    return engine.advance(state, samples, rules)


def brittle(state: Any, samples: Samples, rules: RuleBook) -> tuple[Any, Decisions]:
    """The core with a state it cannot take."""
    if state is not EMPTY:
        raise IndexError("index 3 is out of bounds")
    return engine.advance(state, samples, rules)


def test_a_tick_that_raises_is_folded_without_its_samples_and_with_a_fault() -> None:
    after = fold_ticks(EMPTY, [tick(1, "shop/a"), tick(2, "shop/a", "shop/poison")], BOOK, advance=advance)
    assert after.faults == 1
    assert after.decisions is not None
    by_name = {row.workload: row for row in rows(after.decisions)}
    assert by_name["shop/a"].at_s == 2
    assert (
        by_name["shop/a"].fault == "the samples of this tick could not be used (IndexError: index 3 is out of bounds)"
    )
    assert by_name["shop/a"].required_workers is None


def test_after_a_tick_that_raises_the_state_is_that_of_an_empty_tick() -> None:
    ticks = [tick(1, "shop/a"), tick(2, "shop/poison"), tick(3, "shop/a")]
    poisoned = fold_ticks(EMPTY, ticks, BOOK, advance=advance)
    empty = fold_ticks(EMPTY, [tick(1, "shop/a"), assemble(2, [], [(EVERY, "lost")]), tick(3, "shop/a")], BOOK)
    assert encode_fast(poisoned.state) == encode_fast(empty.state)
    assert poisoned.decisions is not None
    assert empty.decisions is not None
    assert rows(poisoned.decisions) == rows(empty.decisions)


def test_a_state_that_raises_is_dropped() -> None:
    after = fold_ticks(EMPTY, [tick(1, "shop/a"), tick(2, "shop/a")], BOOK, advance=brittle)
    assert after.faults == 1
    assert after.decisions is not None
    assert {row.fault != "" for row in rows(after.decisions)} == {True}


def test_a_shard_that_always_raises_decides_nothing_and_is_counted() -> None:
    def broken(state: Any, samples: Samples, rules: RuleBook) -> tuple[Any, Decisions]:
        raise IndexError("index 3 is out of bounds")

    after = fold_ticks(EMPTY, [tick(1, "shop/a")], BOOK, advance=broken)
    assert (after.at_s, after.decisions, after.faults) == (1, None, 1)


def test_a_fold_that_always_fails_logs_each_cause_once_and_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    causes = ["the same", "the same", *map(str, range(100))]

    def broken(state: Any, samples: Samples, rules: RuleBook) -> tuple[Any, Decisions]:
        raise LookupError(causes[int(samples.at_s)])

    fold_ticks(EMPTY, [tick(0), tick(1)], BOOK, advance=broken)
    assert len(caplog.records) == 1
    fold_ticks(EMPTY, [tick(at_s) for at_s in range(2, len(causes))], BOOK, advance=broken)
    assert 1 < len(caplog.records) <= MOST_CAUSES


def test_a_stored_state_is_decoded() -> None:
    state = fold_ticks(EMPTY, [tick(1, "shop/a")], BOOK).state
    fast, slow = (VERSION, encode_fast(state)), (VERSION, encode_slow(state))
    again, fault = decode_state(fast, slow)
    assert (encode_fast(again), encode_slow(again), fault) == (fast[1], slow[1], "")


def test_a_shard_without_a_stored_state_starts_empty_without_a_fault() -> None:
    assert decode_state(None, None) == (EMPTY, "")


@pytest.mark.parametrize(
    ("fast_version", "slow_version"),
    [
        pytest.param(99, 99, id="a version from the future"),
        pytest.param(VERSION, 99, id="two groups of different versions"),
    ],
)
def test_a_state_of_another_version_is_dropped_with_a_fault(fast_version: int, slow_version: int) -> None:
    state, fault = decode_state((fast_version, b"?"), (slow_version, b"?"))
    assert state is EMPTY
    assert "version" in fault
    after = fold_ticks(state, [tick(1)], BOOK, fault)
    assert after.decisions is not None
    assert {row.fault for row in rows(after.decisions)} == {fault}
    assert "warming up again" in fault
