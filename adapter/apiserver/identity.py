"""The user behind a request."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class Identity:
    """A user as the cluster knows them, hashable. extra: further facts for the access review, by lower-case key."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Every request looks an identity up, so the hash is computed once.
        whole = (self.user, self.groups, self.uid, frozenset(self.extra.items()))
        object.__setattr__(self, "_hash", hash(whole))

    def __hash__(self) -> int:
        return self._hash

    @property
    def texts(self) -> Iterator[str]:
        """Every string of it."""
        yield self.user
        yield self.uid
        yield from self.groups
        for key, values in self.extra.items():
            yield key
            yield from values


ANONYMOUS = Identity("system:anonymous", (UNAUTHENTICATED,))
# The user of a server without authentication, which listens on loopback alone.
LOCAL = Identity("local", (MASTERS, AUTHENTICATED))


def add_authenticated(identity: Identity) -> Identity:
    """Add the group of every authenticated user, to which Kubernetes binds the rights to discovery."""
    decided = AUTHENTICATED in identity.groups or UNAUTHENTICATED in identity.groups
    if decided or identity.user == ANONYMOUS.user:
        return identity
    return replace(identity, groups=(*identity.groups, AUTHENTICATED))


def is_unauthenticated(identity: Identity) -> bool:
    """Whether no credential supports the identity."""
    return identity.user == ANONYMOUS.user or UNAUTHENTICATED in identity.groups
