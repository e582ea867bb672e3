"""What headers say is read once, and found again for exactly these headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.serving.access.frontproxy import FrontProxyHeaders, named_by
from adapter.serving.access.identity import AUTHENTICATED, Identity
from adapter.serving.access.said import Said, Sayings

NAMES = FrontProxyHeaders(user=("x-remote-user", "x-user"), uid=("x-remote-uid",))
HEADER = st.tuples(
    st.sampled_from(
        [
            *("x-remote-user", "x-user", "x-remote-uid", "x-remote-group", "x-remote-extra-a", "x-remote-extra-b"),
            *("x-remote-users", "x_remote_user", "impersonate-user", "impersonate-group", "accept", "host"),
        ]
    ),
    st.sampled_from(["", "a", "b", "a,b", "system:masters"]),
)


@given(st.lists(st.lists(HEADER, max_size=6), min_size=1, max_size=8))
def test_whatever_was_read_before_headers_say_what_they_say_alone(requests: list[list[tuple[str, str]]]) -> None:
    sayings = Sayings(NAMES)
    for headers in [*requests, *requests]:
        wanted = [pair for pair in headers if pair[0].startswith("impersonate-")]
        assert sayings.of(headers) == Said(named_by(NAMES, headers), wanted)


def test_headers_that_change_with_each_request_have_nothing_read_anew() -> None:
    sayings = Sayings(NAMES)
    first, second = (sayings.of([("audit-id", audit), ("x-remote-user", "alice")]) for audit in ("1", "2"))
    assert first is second
    assert first.named == Identity("alice", (AUTHENTICATED,))


@pytest.mark.parametrize(
    ("groups", "is_kept"),
    [(["6f3d6c1e-0f0b-4c57-8b5b-2f4a3c1d0e9f"] * 200, True), (["g" * 4_000], False)],
    ids=["200 groups of a directory", "one name that is none"],
)
def test_many_groups_are_remembered_and_a_long_text_is_not(groups: list[str], is_kept: bool) -> None:
    headers = [("x-remote-user", "alice"), *(("x-remote-group", group) for group in groups)]
    sayings = Sayings(NAMES)
    assert (sayings.of(headers) is sayings.of(headers)) is is_kept
