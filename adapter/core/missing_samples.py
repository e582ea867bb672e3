"""One decision -> what its sentence says of samples that are missing: which, since when, and where to look."""

from adapter.core.decisions import Decision, Reason
from adapter.core.formatting import count, seconds
from adapter.core.policies import POLICIES, policy_of

_BY_PARTITIONS = " or ".join(policy.name for policy in POLICIES if policy.follows_partitions)
_LOOK = "check the source that counts them"


def unseen(d: Decision) -> str:
    """Of a workload of which that was never told by which it is decided."""
    if policy_of(d.policy).follows_partitions:
        return f"the segments of {d.workload} were never counted; {_LOOK}"
    if d.partitions is None:
        return f"no sample of {d.workload} yet; check its sources in the configuration"
    told = f"of {d.workload} only the {count(d.partitions)} partitions are told"
    return f"{told}; read what it processes and what waits, too, or set the policy {_BY_PARTITIONS}"


def stale(d: Decision) -> str:
    """Of a workload that this tick did not tell all of."""
    if policy_of(d.policy).follows_partitions and d.partitions_age_s:
        return f"the segments were last counted {seconds(d.partitions_age_s)} ago"
    return f"the last sample is {seconds(d.sample_age_s)} old"


def expired(d: Decision) -> str:
    """Of a workload whose samples are too old to decide by."""
    if policy_of(d.policy).follows_partitions:
        return f"the segments of {d.workload} were last counted {seconds(d.partitions_age_s)} ago; {_LOOK}"
    return f"no sample of {d.workload} for {seconds(d.sample_age_s)}; bring its sources back"


def uncounted(d: Decision) -> str:
    """Behind any reason: since when the partitions are unknown, where it does not say so of all samples."""
    if d.partitions is not None or d.partitions_age_s is None:
        return ""
    if d.reason is Reason.EXPIRED and d.partitions_age_s <= (d.decided_age_s or 0.0):
        return ""
    return f"; the partitions were last counted {seconds(d.partitions_age_s)} ago: {_LOOK}"
