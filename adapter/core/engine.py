"""Fold one tick: advance(state, samples, rules) -> (state, decisions). The pipeline, backtests and tests call it."""

from collections.abc import Iterable, Iterator

from adapter.core.decide import decide
from adapter.core.decision_input import decision_input
from adapter.core.decisions import Decisions
from adapter.core.estimates import update_estimates
from adapter.core.next_state import next_state
from adapter.core.observe import observe
from adapter.core.report import NO_DECISIONS, report
from adapter.core.rule_book import RuleBook
from adapter.core.samples import Samples
from adapter.core.state import EMPTY, State


def advance(state: State, samples: Samples, rules: RuleBook) -> tuple[State, Decisions]:
    """Fold one tick of one shard into the state, and decide for each of its workloads.

    A tick that is not newer than the last one changes nothing and decides nothing. Late and repeated samples therefore
    have no effect.
    """
    if state.fast.at_s.size and samples.at_s <= state.fast.at_s[-1]:
        return state, NO_DECISIONS
    tick = update_estimates(observe(state, samples, rules))
    inputs = decision_input(tick)
    result = decide(inputs)
    return next_state(tick, inputs, result), report(tick, inputs, result, samples)


def replay(ticks: Iterable[Samples], rules: RuleBook, state: State = EMPTY) -> Iterator[tuple[State, Decisions]]:
    """`advance` over many ticks, exactly as the live stream calls it."""
    for samples in ticks:
        state, decisions = advance(state, samples, rules)
        yield state, decisions
