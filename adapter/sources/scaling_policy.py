"""A stream as Pravega's controller describes it -> its scaling policy as text. Pure."""

import msgspec

from adapter.core.formatting import counted


class _Fixed(msgspec.Struct, frozen=True, rename="camel", tag_field="type", tag="FIXED_NUM_SEGMENTS"):
    min_segments: int


class _ByEvents(msgspec.Struct, frozen=True, rename="camel", tag_field="type", tag="BY_RATE_IN_EVENTS_PER_SEC"):
    target_rate: int  # of one segment
    scale_factor: int  # parts into which a segment is split
    min_segments: int


class _ByBytes(_ByEvents, frozen=True, rename="camel", tag_field="type", tag="BY_RATE_IN_KBYTES_PER_SEC"):
    pass


class _Stream(msgspec.Struct, frozen=True, rename="camel"):
    scaling_policy: _Fixed | _ByEvents | _ByBytes


def policy_text(body: bytes) -> str:
    """The scaling policy in a controller's description of a stream. Raises ValueError for anything else."""
    try:
        policy = msgspec.json.decode(body, type=_Stream).scaling_policy
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"no scaling policy that this release knows: {error}") from error
    segments = counted(policy.min_segments, "segment")
    if isinstance(policy, _Fixed):
        return f"fixed, {segments}"
    rate = f"{policy.target_rate} {'KB' if isinstance(policy, _ByBytes) else 'events'}/s a segment"
    return f"by rate, target {rate}, factor {policy.scale_factor}, at least {segments}"
