"""A memory holds so many bytes and no more; the oldest goes first."""

from hypothesis import given
from hypothesis import strategies as st

from adapter.apiserver.cache import LONGEST_TEXT, ByteCache, weight

MOST = 10


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, MOST + 1)), max_size=40))
def test_the_newest_are_remembered_as_many_as_have_room(puts: list[tuple[str, int]]) -> None:
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


def test_a_text_that_is_too_long_is_not_to_be_remembered_and_all_others_count() -> None:
    assert weight(["a" * (LONGEST_TEXT + 1), "b"]) == 0
    assert 0 < weight([]) < weight(["a"]) < weight(["a", "b"]) < weight(["a" * LONGEST_TEXT])
