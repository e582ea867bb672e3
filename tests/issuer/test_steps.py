"""The order of a rotation: which step follows from what the cluster holds."""

from dataclasses import replace

import pytest
from cryptography import x509
from issuer_builders import HOST, LIVES, NOW_S, PEER_HOST

from adapter.issuer.keys import KeyPair, new_authority, new_leaf
from adapter.issuer.steps import (
    MOST_AUTHORITIES,
    CertificateState,
    IssueLeaf,
    MakeAuthority,
    Publish,
    Step,
    Trust,
    next_step,
)

FIRST = new_authority(NOW_S, LIVES.authority_s)
SECOND = new_authority(NOW_S + 2400, LIVES.authority_s)
A, B = FIRST.certificate, SECOND.certificate


def leaf(authority: KeyPair = FIRST, host: str = HOST, at_s: float = NOW_S) -> KeyPair:
    return new_leaf(authority, host, at_s, LIVES.leaf_s)


STEADY = CertificateState(
    authority=FIRST,
    trusted=(A,),
    leaves={HOST: leaf(), PEER_HOST: leaf(host=PEER_HOST)},
    published={"secret": (A,), "api service": (A,)},
    published_for_s=0.0,
)
EMPTY = CertificateState(None, (), {HOST: None, PEER_HOST: None}, {"secret": (), "api service": ()}, 0.0)
# A second CA, 2400 s later: published, and the leaves are still those of the first.
OVERLAP = replace(
    STEADY,
    authority=SECOND,
    trusted=(B, A),
    leaves={HOST: leaf(at_s=NOW_S + 2300), PEER_HOST: leaf(host=PEER_HOST, at_s=NOW_S + 2300)},
    published={"secret": (B, A), "api service": (B, A)},
)
SWITCHED = replace(OVERLAP, leaves={host: leaf(SECOND, host, NOW_S + 2500) for host in (HOST, PEER_HOST)})
# A CA that replaced the first one early, after its key was lost.
REPAIR = new_authority(NOW_S + 100, LIVES.authority_s)
C = REPAIR.certificate
REPAIRED = replace(
    STEADY,
    authority=REPAIR,
    trusted=(C, A),
    leaves={host: leaf(REPAIR, host, NOW_S + 900) for host in (HOST, PEER_HOST)},
    published={"secret": (C, A), "api service": (C, A)},
)


@pytest.mark.parametrize(
    ("found", "after_s", "expected"),
    [
        pytest.param(EMPTY, 0, MakeAuthority(()), id="nothing yet: a CA"),
        pytest.param(
            replace(EMPTY, authority=FIRST, trusted=(A,)),
            0,
            Publish(("secret", "api service")),
            id="a CA is published before it signs",
        ),
        pytest.param(replace(STEADY, leaves=EMPTY.leaves), 0, IssueLeaf(HOST), id="the first certificate at once"),
        pytest.param(STEADY, 0, None, id="all is well"),
        pytest.param(STEADY, 799, None, id="a certificate before two thirds of its life"),
        pytest.param(STEADY, 800, IssueLeaf(HOST), id="a certificate after two thirds of its life"),
        pytest.param(
            replace(STEADY, leaves={HOST: leaf(at_s=NOW_S + 301)}), 0, IssueLeaf(HOST), id="a certificate of the future"
        ),
        pytest.param(STEADY, -300, None, id="certificates of a clock that was a little ahead are valid"),
        pytest.param(STEADY, -301, MakeAuthority((A,)), id="a CA of the future, which stays trusted"),
        pytest.param(STEADY, 2399, IssueLeaf(HOST), id="a CA before two thirds of its life"),
        pytest.param(STEADY, 2400, MakeAuthority((A,)), id="a CA after two thirds of its life, which stays trusted"),
        pytest.param(
            replace(OVERLAP, published={"secret": (B, A), "api service": (A,)}),
            2400,
            Publish(("api service",)),
            id="a new CA is published where it is missing",
        ),
        pytest.param(OVERLAP, 2459, None, id="a new CA is not used before all clients know it"),
        pytest.param(replace(OVERLAP, published_for_s=59), 2459, None, id="nor a second too early"),
        pytest.param(replace(OVERLAP, published_for_s=60), 2460, IssueLeaf(HOST), id="a new CA is used"),
        pytest.param(SWITCHED, 2600, None, id="the CA before stays trusted"),
        pytest.param(SWITCHED, 3600, Trust((B,)), id="an expired CA is not trusted"),
        pytest.param(REPAIRED, 100 + 60 + 1199, None, id="the CA before stays trusted for the life of a certificate"),
        pytest.param(REPAIRED, 100 + 60 + 1200, Trust((C,)), id="and not longer, although it has not expired"),
        pytest.param(
            replace(STEADY, published={"secret": (A,), "api service": (B,)}),
            0,
            Publish(("api service",)),
            id="another writer's CA is replaced",
        ),
        pytest.param(
            replace(STEADY, leaves={**STEADY.leaves, PEER_HOST: leaf(host="another.svc")}),
            0,
            IssueLeaf(PEER_HOST),
            id="a certificate for another host",
        ),
        pytest.param(
            replace(STEADY, leaves={**STEADY.leaves, PEER_HOST: leaf(SECOND, PEER_HOST)}),
            0,
            IssueLeaf(PEER_HOST),
            id="a certificate of another CA",
        ),
        pytest.param(
            replace(EMPTY, published={"secret": (), "api service": (A,)}),
            0,
            MakeAuthority((A,)),
            id="a lost Secret: what clients trust stays trusted",
        ),
        pytest.param(
            replace(EMPTY, published={"secret": (), "api service": (A,)}),
            3600,
            MakeAuthority(()),
            id="a lost Secret: an expired CA does not",
        ),
        pytest.param(
            replace(STEADY, published={}, authority=SECOND, trusted=(B, A)),
            2410,
            None,
            id="without an API service the replicas learn the CA in the same time",
        ),
    ],
)
def test_each_step_follows_from_what_the_cluster_holds(
    found: CertificateState, after_s: float, expected: Step | None
) -> None:
    assert next_step(found, LIVES, NOW_S + after_s) == expected


def test_a_secret_that_is_emptied_again_and_again_does_not_fill_the_bundles() -> None:
    many: tuple[x509.Certificate, ...] = tuple(
        new_authority(NOW_S + each, LIVES.authority_s).certificate for each in range(MOST_AUTHORITIES + 5)
    )
    step = next_step(replace(EMPTY, published={"api service": many}), LIVES, NOW_S + 100)
    assert isinstance(step, MakeAuthority)
    assert step.keep == tuple(reversed(many))[: MOST_AUTHORITIES - 1], "the newest"
