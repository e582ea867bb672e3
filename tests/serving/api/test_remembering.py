"""What is remembered of what callers send: the short, so many of them, and in all no more than a few megabytes."""

import gc
import tracemalloc
from functools import lru_cache

import pytest
from serving_builders import local_api

from adapter.serving.api.external import GROUP_VERSION
from adapter.serving.api.remembering import FEW_PARTS, remembered
from adapter.serving.api.request import Request
from adapter.serving.snapshots.store import SnapshotStore

MOST_MIB = 32  # for all memories together
SOME = 256  # of what each holds, to tell the rest by
_MEMORY = type(lru_cache(len))


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [("a" * 9, True), ("a" * 10, True), ("a" * 11, False), ("," * (FEW_PARTS - 1), True), ("," * FEW_PARTS, False)],
    ids=["short", "as long as may be", "longer", "few parts", "many parts"],
)
def test_what_was_made_of_a_short_text_of_few_parts_is_made_once(text: str, is_kept: bool) -> None:
    made: list[tuple[str, int]] = []

    @remembered(most=4, longest=10, parts=",")
    def make(text: str, number: int) -> int:
        made.append((text, number))
        return number

    assert [make(text, 1), make(text, 1), make(text, 2)] == [1, 1, 2]
    assert len(made) == (2 if is_kept else 3)


def test_an_error_is_made_each_time() -> None:
    asked: list[str] = []

    @remembered(most=4, longest=10)
    def fail(text: str) -> None:
        asked.append(text)
        raise ValueError(text)

    for _ in range(2):
        with pytest.raises(ValueError, match="a"):
            fail("a")
    assert asked == ["a", "a"]


def test_a_stranger_who_fills_every_memory_with_the_largest_costs_a_few_megabytes() -> None:
    api = local_api(SnapshotStore())
    memories = [each for each in gc.get_objects() if isinstance(each, _MEMORY)]
    ours = [each for each in memories if each.__module__.startswith("adapter.serving.api.")]
    for memory in ours:
        memory.cache_clear()
    tracemalloc.start()
    try:
        for number in range(SOME):
            api.respond(_largest(number))
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    filled = [memory for memory in ours if memory.cache_info().currsize >= SOME]
    most = max(memory.cache_info().maxsize for memory in filled)
    for memory in ours:
        memory.cache_clear()
    assert len(filled) >= 7
    assert held_bytes * most / SOME < MOST_MIB * 2**20


def _largest(number: int) -> Request:
    """As much of everything as is remembered."""
    told = f"{number:04}"
    root = f"/apis/{GROUP_VERSION}/namespaces/{told}/"
    path = root + "m" * (200 - len(root))
    terms = ",".join(f"{letter}{told}{'k' * 12}={'v' * 12}" for letter in "abcdefgh")
    query = f"?labelSelector={terms}"
    more = "&p=" * (FEW_PARTS - 1)
    uri = path + query + more + "q" * (512 - len(path + query + more))
    accept = f"application/json;q=0.{told},"
    return Request.of("GET", uri, [("accept", accept + "x" * (512 - len(accept)))])
