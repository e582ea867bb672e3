"""What is made anew for every request."""

import msgspec


class Value(msgspec.Struct, frozen=True):
    """Immutable, and equal to what holds the same. A frozen dataclass is that too, and takes much longer to make."""
