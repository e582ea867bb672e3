"""Impersonate-* headers: what is asked for, and whom it makes. The expectations are those of Go's filter, run."""

import pytest
from access_builders import request
from hypothesis import given
from hypothesis import strategies as st

from adapter.serving.access.identity import AUTHENTICATED, UNAUTHENTICATED, Identity
from adapter.serving.access.impersonation import identity_of, wishes
from adapter.serving.access.review_spec import asked, spec

AUTHENTICATION = {"group": "authentication.k8s.io", "version": "v1"}
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:ns")
ACCOUNT = "system:serviceaccount:ns:name"


def user(name: str) -> dict[str, str]:
    return {"resource": "users", "name": name}


def group(name: str) -> dict[str, str]:
    return {"resource": "groups", "name": name} if name else {"resource": "groups"}


@pytest.mark.parametrize(
    ("headers", "reviewed", "identity"),
    [
        ({"user": "bob"}, [user("bob")], Identity("bob", (AUTHENTICATED,))),
        (
            {"user": ACCOUNT},
            [{"resource": "serviceaccounts", "namespace": "ns", "name": "name"}],
            Identity(ACCOUNT, (*GROUPS, AUTHENTICATED)),
        ),
        (
            {"user": ACCOUNT, "group": "g"},
            [{"resource": "serviceaccounts", "namespace": "ns", "name": "name"}, group("g")],
            Identity(ACCOUNT, ("g", AUTHENTICATED)),
        ),
        (
            {"user": "bob", "group": ["", "b"]},
            [user("bob"), group(""), group("b")],
            Identity("bob", ("", "b", AUTHENTICATED)),
        ),
        (
            {"user": "bob", "group": UNAUTHENTICATED},
            [user("bob"), group(UNAUTHENTICATED)],
            Identity("bob", (UNAUTHENTICATED,)),
        ),
        (
            {"user": "bob", "group": AUTHENTICATED},
            [user("bob"), group(AUTHENTICATED)],
            Identity("bob", (AUTHENTICATED,)),
        ),
        (
            {"user": "system:anonymous"},
            [user("system:anonymous")],
            Identity("system:anonymous", (UNAUTHENTICATED,)),
        ),
        (
            {"user": "system:anonymous", "group": AUTHENTICATED},
            [user("system:anonymous"), group(AUTHENTICATED)],
            Identity("system:anonymous", (AUTHENTICATED, UNAUTHENTICATED)),
        ),
        (
            {"user": "system:anonymous", "group": UNAUTHENTICATED},
            [user("system:anonymous"), group(UNAUTHENTICATED)],
            Identity("system:anonymous", (UNAUTHENTICATED,)),
        ),
        (
            {"user": "bob", "uid": "7", "extra_scopes%2ffoo": ["1", "2"]},
            [
                user("bob"),
                {"resource": "userextras", "subresource": "scopes/foo", "name": "1"} | AUTHENTICATION,
                {"resource": "userextras", "subresource": "scopes/foo", "name": "2"} | AUTHENTICATION,
                {"resource": "uids", "name": "7"} | AUTHENTICATION,
            ],
            Identity("bob", (AUTHENTICATED,), "7", {"scopes/foo": ("1", "2")}),
        ),
    ],
    ids=[
        "a user",
        "an account",
        "an account of other groups",
        "groups",
        "a user nobody vouches for",
        "the group itself",
        "anonymous",
        "anonymous with a group",
        "anonymous with the group of its own",
        "uid and extra",
    ],
)
def test_every_part_is_reviewed_by_itself_and_makes_one_user(
    headers: dict[str, str | list[str]], reviewed: list[dict[str, str]], identity: Identity
) -> None:
    wanted = wishes(request(**{f"impersonate_{name}": value for name, value in headers.items()}).headers)
    asks = [spec(asked(Identity("admin"), wish, {}))["resourceAttributes"] for wish in wanted]
    assert asks == [each | {"verb": "impersonate"} for each in reviewed]
    assert identity_of(wanted) == identity


@pytest.mark.parametrize(
    "name",
    [
        "system:serviceaccount:Ns:name",
        "system:serviceaccount:ns:a:b",
        "system:serviceaccount:x",
        f"{ACCOUNT}\n",
        f"system:serviceaccount:{'n' * 64}:name",
        f"system:serviceaccount:ns:{'n' * 254}",
    ],
)
def test_a_name_that_only_looks_like_an_account_is_a_user(name: str) -> None:
    assert wishes([("impersonate-user", name)])[0].resource == "users"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("impersonate-user", "")],
        [("impersonate-foo", "bob")],
        [("impersonate-user", ""), ("impersonate-user", "b")],
    ],
    ids=["nothing", "nobody", "an unknown header", "a header counts by its first line"],
)
def test_who_wants_to_be_nobody_stays_himself(headers: list[tuple[str, str]]) -> None:
    assert wishes(headers) == ()


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ([("impersonate-group", "g")], "requested [{Group  g    }] without impersonating a user"),
        (
            [("impersonate-uid", "u"), ("impersonate-group", "x"), ("impersonate-extra-a", "g")],
            "requested [{Group  x    } {UserExtra  g  authentication.k8s.io/v1  a} "
            "{UID  u  authentication.k8s.io/v1  }] without impersonating a user",
        ),
    ],
    ids=["imp-11015", "all"],
)
def test_to_be_something_of_nobody_is_an_error(headers: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(ValueError, match="without impersonating a user") as raised:
        wishes(headers)
    assert str(raised.value) == message


NAMES = ["impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-", "impersonate-extra-%2"]


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.text(st.characters(max_codepoint=255)))))
def test_whatever_is_taken_was_asked_for(headers: list[tuple[str, str]]) -> None:
    """Every group and every extra of the new user was reviewed, but for those that come with being one."""
    try:
        wanted = wishes(headers)
    except ValueError:
        return
    if wanted:
        found = identity_of(wanted)
        own = {AUTHENTICATED, UNAUTHENTICATED, *(group for group in found.groups if "serviceaccounts" in group)}
        assert set(found.groups) - own <= {wish.name for wish in wanted if wish.resource == "groups"}
        assert set(found.extra) == {wish.subresource for wish in wanted if wish.resource == "userextras"}
