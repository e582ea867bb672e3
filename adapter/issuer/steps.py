"""The state of the cluster's objects and the time -> the next step of a rotation. Pure.

The order keeps every request working: a CA is made and published, then there is a pause in which all clients learn it,
then leaves are issued from it. The CA before it stays published for the life of a leaf, so that no leaf outlives it.
Every step can be repeated, and none depends on which replica took the step before it, so any replica can continue.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cryptography import x509

from adapter.apiserver.certificates import has_signed
from adapter.issuer.keys import KeyPair, ends_s

# In a bundle. Another writer that empties the Secret again and again must not fill the APIServices.
MOST_AUTHORITIES = 8

Bundle = tuple[x509.Certificate, ...]


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long certificates are valid, and how long a CA is published before it is used. A CA outlives three leaves."""

    leaf_s: float
    authority_s: float
    publish_s: float


@dataclass(frozen=True, slots=True)
class CertificateState:
    """The CA, the certificates and the published bundles, as read from the cluster."""

    authority: KeyPair | None  # the CA that signs; None if it is missing or unreadable
    trusted: Bundle  # the CA that signs and those before it
    leaves: Mapping[str, KeyPair | None]  # by host
    published: Mapping[str, Bundle]  # by the path of the object where clients read it
    published_for_s: float  # how long all these objects have had `trusted`


@dataclass(frozen=True, slots=True)
class MakeAuthority:
    """Make a CA, and keep these trusted."""

    keep: Bundle


@dataclass(frozen=True, slots=True)
class Trust:
    """Trust exactly these CAs."""

    bundle: Bundle


@dataclass(frozen=True, slots=True)
class Publish:
    """Write the trusted CAs to these paths."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IssueLeaf:
    """Issue a certificate for a host."""

    host: str


Step = MakeAuthority | Trust | Publish | IssueLeaf


def next_step(state: CertificateState, lifetimes: Lifetimes, now_s: float) -> Step | None:
    """The next step; None if there is nothing to do now."""
    authority = state.authority
    if authority is None or authority.is_due(now_s):
        return MakeAuthority(_drop_expired(_known(state), now_s)[: MOST_AUTHORITIES - 1])
    trusted = _trusted_cas(authority, state.trusted, lifetimes, now_s)
    if trusted != state.trusted:
        return Trust(trusted)
    paths = tuple(name for name, bundle in state.published.items() if bundle != trusted)
    if paths:
        return Publish(paths)
    # While only this CA is trusted, no client has another certificate to lose.
    if len(trusted) > 1 and state.published_for_s < lifetimes.publish_s:
        return None
    due = (host for host, leaf in state.leaves.items() if _is_due(leaf, host, authority, now_s))
    return next((IssueLeaf(host) for host in due), None)


def _known(state: CertificateState) -> Bundle:
    """The CAs that clients trust now, the newest first: servers may still have certificates of them."""
    published = [each for bundle in state.published.values() for each in bundle]
    known = dict.fromkeys([*state.trusted, *published])
    return tuple(sorted(known, key=lambda each: each.not_valid_before_utc, reverse=True))


def _drop_expired(bundle: Bundle, now_s: float) -> Bundle:
    return tuple(each for each in bundle if ends_s(each) > now_s)


def _trusted_cas(authority: KeyPair, bundle: Bundle, lifetimes: Lifetimes, now_s: float) -> Bundle:
    """The CA, and those before it until every leaf of theirs has expired."""
    ours = authority.certificate
    if now_s >= authority.issued_s + lifetimes.publish_s + lifetimes.leaf_s:
        return (ours,)
    return (ours, *(each for each in _drop_expired(bundle, now_s) if each != ours))


def _is_due(leaf: KeyPair | None, host: str, authority: KeyPair, now_s: float) -> bool:
    if leaf is None or not leaf.covers(host) or leaf.is_due(now_s):
        return True
    return not has_signed(authority.certificate, leaf.certificate)
