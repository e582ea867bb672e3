"""What a request costs the others: a bounded time however long it is, and no memory that stays."""

import gc
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from urllib.parse import quote

import pytest
from fuzz_asking import asked, sound
from fuzz_inputs import Sent, joined
from fuzz_lengths import LONG, examples
from fuzz_long_inputs import METRICS, PATHS, PIECES, PLACES, long
from fuzz_servers import api, large_fleet
from fuzz_words import SELECTORS
from hypothesis import given
from hypothesis import strategies as st

from adapter.serving.api.metrics_api import MetricsApi
from conformance.cluster import Cluster

_MEMORY = type(lru_cache(len))
KB_4 = 4 * 1024
MANY = max(LONG, 600)
# Of those that keep something on purpose: lists of pods.
FEW = 500


@examples(200)
@given(
    st.sampled_from(PIECES) | st.text(min_size=1, max_size=4),
    st.sampled_from(PLACES),
    st.sampled_from(PATHS),
    st.sampled_from(("proxy", "admin")),
)
def test_what_is_long_is_answered_as_soon(  # noqa: PLR0913 - as many as a request has parts
    cluster_s: MetricsApi, held: Mapping[str, bytes], piece: str, place: str, path: str, who: str
) -> None:
    sound(cluster_s, replace(long(piece, place, path), certificate=held[who]))


@pytest.fixture(scope="module")
def crowd_s() -> MetricsApi:
    return api(large_fleet(5_000))


@examples(60)
@given(st.sampled_from(PIECES), st.sampled_from(("labelSelector", "metricLabelSelector")), st.sampled_from(METRICS))
def test_what_is_long_is_answered_as_soon_where_many_could_be_meant(
    crowd_s: MetricsApi, piece: str, place: str, path: str
) -> None:
    sound(crowd_s, long(piece, place, path))


@examples(100)
@given(joined(SELECTORS, 12), st.sampled_from(("labelSelector", "metricLabelSelector")), st.sampled_from(METRICS))
def test_any_selector_is_answered_as_soon_where_many_could_be_meant(
    crowd_s: MetricsApi, selector: str, place: str, path: str
) -> None:
    sound(crowd_s, Sent("GET", path.encode(), f"{place}={quote(selector)}".encode(), ()))


@pytest.mark.parametrize("place", PLACES)
def test_what_is_long_is_not_remembered(
    cluster_s: MetricsApi, cluster: Cluster, held: Mapping[str, bytes], place: str
) -> None:
    def ask(*numbers: int) -> None:
        for number, path in product(numbers, METRICS):
            sending = long(f"x{number:07}", place, path, KB_4)
            asked(cluster_s, replace(sending, certificate=held["proxy"]))
        cluster.reviews.clear()

    ask(0)
    assert _kept_bytes(partial(ask, *range(1, 31))) < 30 * KB_4 / 2


def _kept_bytes(act: Callable[[], object]) -> int:
    """How much more memory is held when it was done."""
    gc.freeze()  # what was there before is not looked through again and again
    tracemalloc.start()
    try:
        act()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.unfreeze()


def test_of_many_requests_that_differ_few_are_remembered(everybody_s: MetricsApi) -> None:
    """No container grows by each of them, but for memories of a stated size."""
    before = _sizes()
    for number in range(MANY):
        for sending in _different(number):
            asked(everybody_s, sending)
    grown = [size - before.get(key, 0) for key, size in _sizes().items()]
    assert max(grown) <= FEW


def _different(number: int) -> Iterator[Sent]:
    told = f"n{number}".encode()
    names = (b"audit-id", b"if-none-match", b"user-agent", b"accept-encoding")
    headers = [(b"accept", b"application/json;q=0.%d" % number), *((name, told) for name in names)]
    query = b"labelSelector=workload%%3D%b&%b=1&exclude=%b&fieldSelector=metadata.name%%3D%b" % ((told,) * 4)
    for path in map(str.encode, PATHS):
        yield Sent("GET", path, query, headers)
        yield Sent("GET", path.replace(b"shop", told), query, headers)
        yield Sent("GET", b"%b/%b" % (path, told), query, headers)


def _sizes() -> Mapping[int, int]:
    """The number of things in each container that is not a memory of a stated size."""
    everything = gc.get_objects()
    memories = [each for each in everything if isinstance(each, _MEMORY)]
    inside = {id(part) for memory in memories for part in gc.get_referents(memory)}
    containers = (each for each in everything if isinstance(each, dict | set | list | deque) and each is not everything)
    return {id(each): len(each) for each in containers if id(each) not in inside}


def test_every_memory_of_ours_has_a_size() -> None:
    """But for those of documents that nobody chooses."""
    ours = [
        each
        for each in gc.get_objects()
        if isinstance(each, _MEMORY) and each.__module__.startswith("adapter.serving.")
    ]
    without = [each for each in ours if each.cache_info().maxsize is None]
    assert ours
    assert [each.__wrapped__.__code__.co_argcount for each in without] == [0] * len(without)
