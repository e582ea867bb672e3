"""Packed samples of a shard -> packed decisions, with the state in Spark's state store."""

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from adapter.core import engine
from adapter.core.decisions import Decisions
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.samples import EVERY, Samples
from adapter.core.state import EMPTY, VERSION, State, decode, encode_fast, encode_slow
from adapter.failure_logger import TracebackLogger
from adapter.pipeline.packing import pack_decisions, unpack
from adapter.pipeline.shards import SHARD_KEYS, shard_of

DECISIONS = "shard int, at long, decisions binary, faults int"
BLOB = "version int, blob binary"
Advance = Callable[[State, Samples, RuleBook], tuple[State, Decisions]]

logger = logging.getLogger(__name__)
_tracebacks = TracebackLogger(logger)


class Fold(StatefulProcessor):
    """Folds the samples of one shard. Each batch writes the fast state; the slow state is written if it changes."""

    def __init__(self, rules: RuleBook) -> None:
        self._books = pickle.dumps(by_shard(rules))

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state. Spark defines the names and signatures of these methods."""
        self._fast = handle.getValueState("fast", BLOB)
        self._slow = handle.getValueState("slow", BLOB)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's
        """Fold the ticks of a batch, oldest first, and yield one row for the newest. Missed ticks come in one batch."""
        ticks = unpack((row.at, bytes(row.samples)) for row in rows)
        fast, slow = self._fast.get(), self._slow.get()
        before, fault = decode_state(fast, slow)
        after = fold_ticks(before, ticks, _unpickle(self._books)[key[0]], fault)
        self._fast.update((VERSION, encode_fast(after.state)))
        changed = (VERSION, encode_slow(after.state))
        if slow is None or changed != (slow[0], bytes(slow[1])):
            self._slow.update(changed)
        packed = None if after.decisions is None else pack_decisions(after.decisions)
        yield Row(shard=key[0], at=after.at_s, decisions=packed, faults=after.faults)


@dataclass(frozen=True)
class FoldResult:
    """A shard after a batch."""

    at_s: int  # the newest tick
    state: State
    decisions: Decisions | None  # of the newest tick; None without workloads, or if that tick failed even without state
    faults: int  # ticks that raised, plus one if the stored state could not be decoded


def fold_ticks(
    state: State, ticks: Iterable[Samples], book: RuleBook, fault: str = "", advance: Advance = engine.advance
) -> FoldResult:
    """Fold ticks. fault: the reason for workloads without a sample in the first tick, "" without one."""
    after = FoldResult(0, state, None, int(bool(fault)))
    for samples in ticks:
        state, decisions, failed = _advance(advance, after.state, _with_fault(samples, fault), book)
        after = FoldResult(int(samples.at_s), state, decisions, after.faults + failed)
        fault = ""
    return after


def decode_state(fast: tuple[Any, ...] | None, slow: tuple[Any, ...] | None) -> tuple[State, str]:
    """The state from two stored (version, blob). If it cannot be decoded: an empty state and the reason."""
    if fast is None or slow is None:
        return EMPTY, ""
    try:
        if fast[0] != slow[0]:
            raise ValueError(f"state of versions {fast[0]} and {slow[0]}")
        return decode(fast[0], bytes(fast[1]), bytes(slow[1])), ""
    except ValueError as error:
        logger.error("the stored state is dropped and its workloads warm up again: %s", error)
        return EMPTY, f"the stored state could not be decoded ({error}): warming up again"


def _advance(advance: Advance, state: State, samples: Samples, book: RuleBook) -> tuple[State, Decisions | None, bool]:
    """Fold one tick, and return whether it failed. A tick that raises would stop the query again after each restart.

    So a tick that raises is folded again without its samples, and if that fails, also without the state. If that fails
    too, the state is lost and there is no decision.
    """
    fault = ""
    for before, seen in ((state, samples), (state, None), (EMPTY, None)):
        try:
            after, decisions = advance(before, seen or Samples(at_s=samples.at_s, faults={EVERY: fault}), book)
            return after, decisions if decisions.text else None, seen is None
        except Exception as error:  # an error in one shard must not stop the others
            tried = "with samples" if seen else "without samples"
            _tracebacks.log(error, "the fold failed at %s, %s", samples.at_s, tried)
            fault = fault or f"the samples of this tick could not be used ({type(error).__name__}: {error})"
    return EMPTY, None, True


def _with_fault(samples: Samples, fault: str) -> Samples:
    if not fault:
        return samples
    return replace(samples, faults={EVERY: fault} | dict(samples.faults))


def by_shard(rules: RuleBook) -> dict[int, RuleBook]:
    """The rule book of each shard. Equal rules are one object, so that the pickled books stay small."""
    same: dict[Rules, Rules] = {}
    by_key: dict[int, dict[str, Rules]] = {key: {} for key in SHARD_KEYS}
    for workload, workload_rules in rules.by_workload.items():
        by_key[shard_of(workload)][workload] = same.setdefault(workload_rules, workload_rules)
    return {key: replace(rules, by_workload=workloads) for key, workloads in by_key.items()}


@lru_cache(maxsize=2)
def _unpickle(books: bytes) -> Mapping[int, RuleBook]:
    """Cached, so that each worker process unpickles the books once."""
    loaded: dict[int, RuleBook] = pickle.loads(books)  # noqa: S301 - our own bytes, from our own plan
    return loaded
