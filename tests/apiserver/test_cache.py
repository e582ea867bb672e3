"""A cache is bounded in bytes, and drops its oldest entry first."""

from hypothesis import given
from hypothesis import strategies as st

from adapter.apiserver.cache import LONGEST_TEXT, ByteCache, weight

MOST = 10


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, MOST + 1)), max_size=40))
def test_the_newest_entries_that_fit_are_kept(puts: list[tuple[str, int]]) -> None:
    cache: ByteCache[str, int] = ByteCache(MOST)
    room: dict[str, tuple[int, int]] = {}
    for number, (key, size) in enumerate(puts):
        cache.put(key, number, size)
        if 0 < size <= MOST:
            room.pop(key, None)
            while sum(taken for _, taken in room.values()) + size > MOST:
                del room[next(iter(room))]
            room[key] = number, size
        assert {each: cache.get(each) for each in "abcdef"} == {each: room.get(each, (None,))[0] for each in "abcdef"}


def test_an_entry_with_a_very_long_text_has_no_weight() -> None:
    assert weight(["a" * (LONGEST_TEXT + 1), "b"]) == 0
    assert 0 < weight([]) < weight(["a"]) < weight(["a", "b"]) < weight(["a" * LONGEST_TEXT])
