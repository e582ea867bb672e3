"""Who asks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class Identity:
    """A user as the cluster knows them, comparable and a key. extra: what an access review is told besides, by
    lower-case key."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # A part of the key of every request: hashed once, and whole, for many may differ in `extra` alone.
        whole = (self.user, self.groups, self.uid, frozenset(self.extra.items()))
        object.__setattr__(self, "_hash", hash(whole))

    def __hash__(self) -> int:
        return self._hash

    @property
    def texts(self) -> Iterator[str]:
        """All that it consists of."""
        yield self.user
        yield self.uid
        yield from self.groups
        for key, values in self.extra.items():
            yield key
            yield from values


ANONYMOUS = Identity("system:anonymous", (UNAUTHENTICATED,))
# Who asks a server that admits everybody, which is one on loopback.
LOCAL = Identity("local", (MASTERS, AUTHENTICATED))


def authenticated(identity: Identity) -> Identity:
    """The identity with the group of everybody who showed a credential; the rights to discovery hang on it."""
    decided = AUTHENTICATED in identity.groups or UNAUTHENTICATED in identity.groups
    if decided or identity.user == ANONYMOUS.user:
        return identity
    return replace(identity, groups=(*identity.groups, AUTHENTICATED))


def is_stranger(identity: Identity) -> bool:
    """Whether nobody vouches for them."""
    return identity.user == ANONYMOUS.user or UNAUTHENTICATED in identity.groups
