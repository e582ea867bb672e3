"""Packed samples of a shard -> packed decisions: the core's fold, with its state in Spark's store."""

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from adapter.core.decisions import Decisions
from adapter.core.rules import RuleBook, Rules
from adapter.core.samples import EVERY, Samples
from adapter.pipeline.packing import pack_decisions, unpack
from adapter.pipeline.shards import SHARD_KEYS, shard_of

DECISIONS = "shard int, at long, decisions binary, faults int"
BLOB = "version int, blob binary"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Core:
    """The pure functions the stream carries; all of them importable, so that they cross processes by name."""

    advance: Callable[[Any, Samples, RuleBook], tuple[Any, Decisions]]
    empty: Any
    version: int
    encode_fast: Callable[[Any], bytes]
    encode_slow: Callable[[Any], bytes]
    decode: Callable[[int, bytes, bytes], Any]


class Fold(StatefulProcessor):
    """One shard a key. Its state is two blobs: the fast one written every batch, the slow one when its bytes change."""

    def __init__(self, core: Core, rules: RuleBook) -> None:
        self._core = core
        self._books = pickle.dumps(by_shard(rules))

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state; Spark's camelCase and signatures from here on."""
        self._fast = handle.getValueState("fast", BLOB)
        self._slow = handle.getValueState("slow", BLOB)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's
        """All ticks of a batch, oldest first; one row out, of the newest. A batch may hold ticks that were missed."""
        ticks = unpack((row.at, bytes(row.samples)) for row in rows)
        fast, slow = self._fast.get(), self._slow.get()
        before, fault = restored(self._core, fast, slow)
        after = folded(self._core, before, ticks, _loaded(self._books)[key[0]], fault)
        self._fast.update((self._core.version, self._core.encode_fast(after.state)))
        changed = (self._core.version, self._core.encode_slow(after.state))
        if slow is None or changed != (slow[0], bytes(slow[1])):
            self._slow.update(changed)
        packed = None if after.decisions is None else pack_decisions(after.decisions)
        yield Row(shard=key[0], at=after.at_s, decisions=packed, faults=after.faults)

    def close(self) -> None:
        """Nothing to release."""


@dataclass(frozen=True)
class Folded:
    """A shard after a batch.

    at_s: its newest tick. decisions: of that tick, None when there are none. faults: how many ticks the fold could
    not take.
    """

    at_s: int
    state: Any
    decisions: Decisions | None
    faults: int


def folded(core: Core, state: Any, ticks: Iterable[Samples], book: RuleBook, fault: str = "") -> Folded:
    """Fold ticks. fault, when not empty, is said at the first tick of everyone without a better one."""
    after = Folded(0, state, None, int(bool(fault)))
    for samples in ticks:
        state, decisions, poisoned = _stepped(core, after.state, _told(samples, fault), book)
        after = Folded(int(samples.at_s), state, decisions, after.faults + poisoned)
        fault = ""
    return after


def restored(core: Core, fast: tuple[Any, ...] | None, slow: tuple[Any, ...] | None) -> tuple[Any, str]:
    """The state of two stored (version, blob), and a fault sentence when it cannot be read: then it starts empty."""
    if fast is None or slow is None:
        return core.empty, ""
    try:
        if fast[0] != slow[0]:
            raise ValueError(f"state of versions {fast[0]} and {slow[0]}")
        return core.decode(fast[0], bytes(fast[1]), bytes(slow[1])), ""
    except ValueError as error:
        logger.error("the stored state is dropped, its workloads warm up again: %s", error)
        return core.empty, f"the stored state could not be read ({error}): warming up again"


def _stepped(core: Core, state: Any, samples: Samples, book: RuleBook) -> tuple[Any, Decisions | None, bool]:
    """One tick. A tick that the core cannot take would stop the query, and come again after every restart: it loses
    its samples and keeps its heartbeat; failing that the shard warms up again; failing that it decides nothing."""
    fault = ""
    for before, seen in ((state, samples), (state, None), (core.empty, None)):
        try:
            after, decisions = core.advance(before, seen or Samples(at_s=samples.at_s, faults={EVERY: fault}), book)
            return after, decisions if decisions.text else None, seen is None
        except Exception as error:  # whatever is wrong with one shard's tick must not stop all the others
            logger.exception("the fold failed at %s, %s", samples.at_s, "with samples" if seen else "without samples")
            fault = fault or f"the samples of this tick could not be used ({type(error).__name__}: {error})"
    return core.empty, None, True


def _told(samples: Samples, fault: str) -> Samples:
    if not fault:
        return samples
    return replace(samples, faults={EVERY: fault} | dict(samples.faults))


def by_shard(rules: RuleBook) -> dict[int, RuleBook]:
    """The rule book of each shard: only its own workloads, equal rules shared so that the book stays small."""
    same: dict[Rules, Rules] = {}
    mine: dict[int, dict[str, Rules]] = {key: {} for key in SHARD_KEYS}
    for workload, workload_rules in rules.by_workload.items():
        mine[shard_of(workload)][workload] = same.setdefault(workload_rules, workload_rules)
    return {key: RuleBook(by_workload=workloads, by_fleet=rules.by_fleet) for key, workloads in mine.items()}


@lru_cache(maxsize=2)
def _loaded(books: bytes) -> Mapping[int, RuleBook]:
    """Unpickled once a worker process, not once a shard and tick."""
    loaded: dict[int, RuleBook] = pickle.loads(books)  # noqa: S301 - our own bytes, from our own plan
    return loaded
