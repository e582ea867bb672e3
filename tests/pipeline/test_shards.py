import pickle
from collections import Counter

from adapter.config.patterns import WorkloadMatch
from adapter.core.rule_book import MatchedRules, RuleBook
from adapter.core.rules import Rules
from adapter.pipeline.fold import by_shard
from adapter.pipeline.shards import SHARD_KEYS, shard_of


def test_a_workload_never_changes_its_shard() -> None:
    # Part of the checkpoint's format: state is found again only under the same key.
    expected = {"default/orders": 2, "shop/orders": 35, "shop/payments": 16, "a/b": 25}
    assert {workload: shard_of(workload) for workload in expected} == expected


def test_workloads_spread_over_all_shards() -> None:
    found = Counter(shard_of(f"team-{number % 7}/job-{number}") for number in range(16_000))
    assert set(found) == set(SHARD_KEYS)
    assert max(found.values()) < 1.25 * min(found.values())


def test_the_rules_of_a_shard_are_those_of_its_own_workloads() -> None:
    names = [f"shop/{number}" for number in range(100)]
    books = by_shard(RuleBook(by_workload={name: Rules() for name in names}, by_fleet=(Rules(min_workers=3),)))
    assert sorted(name for book in books.values() for name in book.by_workload) == sorted(names)
    assert all(shard_of(name) == key for key, book in books.items() for name in book.by_workload)
    assert all(book.by_fleet == (Rules(min_workers=3),) for book in books.values())


def test_the_rules_of_a_match_reach_the_workers_of_spark() -> None:
    matched = ((MatchedRules(WorkloadMatch(None, "a.*"), Rules(min_workers=4)),),)
    books = by_shard(RuleBook(by_workload={}, by_fleet=(Rules(),), by_match=matched))
    sent = pickle.loads(pickle.dumps(books))  # noqa: S301 - as the plan does
    assert sent == books
    assert sent[0].of("shop/ab", 0).min_workers == 4
