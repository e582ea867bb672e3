"""Who asks."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class Identity:
    """A user as the cluster knows him. extra: what an access review is told besides, by lower-case key."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


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
    """Whether nobody vouches for him."""
    return identity.user == ANONYMOUS.user or UNAUTHENTICATED in identity.groups
