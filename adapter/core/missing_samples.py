"""One decision -> the part of its sentence about missing samples: which, since when, and where to look."""

from adapter.core.decisions import Decision, Reason
from adapter.core.formatting import count, seconds
from adapter.core.policies import POLICIES, policy_of

_BY_PARTITIONS = " or ".join(policy.name for policy in POLICIES if policy.follows_partitions)
_CHECK = "check the source that counts them"


def unseen(d: Decision) -> str:
    """The signal that the policy needs has never been reported."""
    if policy_of(d.policy).follows_partitions:
        return f"The segments of {d.workload} were never counted; {_CHECK}"
    if d.partitions is None:
        return f"No sample of {d.workload} yet; check its sources in the configuration"
    known = f"Only the {count(d.partitions)} partitions of {d.workload} are known"
    return f"{known}; also read its throughput and backlog, or set the policy {_BY_PARTITIONS}"


def stale(d: Decision) -> str:
    """A sample that the policy needs is missing in this tick."""
    if policy_of(d.policy).follows_partitions and d.partitions_age_s:
        return f"the segments were last counted {seconds(d.partitions_age_s)} ago"
    return f"the last sample is {seconds(d.sample_age_s)} old"


def expired(d: Decision) -> str:
    """The samples are older than error_after_s."""
    if policy_of(d.policy).follows_partitions:
        return f"The segments of {d.workload} were last counted {seconds(d.partitions_age_s)} ago; {_CHECK}"
    return f"No sample of {d.workload} for {seconds(d.sample_age_s)}; check its sources"


def uncounted(d: Decision) -> str:
    """The age of the count of partitions, unless the sentence already states the age of all samples."""
    if d.partitions is not None or d.partitions_age_s is None:
        return ""
    if d.reason is Reason.EXPIRED and d.partitions_age_s <= (d.decided_age_s or 0.0):
        return ""
    return f"; the partitions were last counted {seconds(d.partitions_age_s)} ago: {_CHECK}"
