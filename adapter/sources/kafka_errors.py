"""Error names of the Kafka protocol and of librdkafka, by their consequence, and the faults of groups and topics."""

# No connection to any broker, or none that accepts the credentials.
UNREACHABLE = frozenset(
    [
        "_TIMED_OUT",
        "_TIMED_OUT_QUEUE",
        "_TRANSPORT",
        "_ALL_BROKERS_DOWN",
        "_RESOLVE",
        "_SSL",
        "_AUTHENTICATION",
        "_WAIT_COORD",
        "CLUSTER_AUTHORIZATION_FAILED",
    ]
)
# Ends when the client has learned the new leaders and coordinators.
TRANSIENT = frozenset(
    [
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "NOT_LEADER_FOR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "OFFSET_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "NETWORK_EXCEPTION",
    ]
)
_NO_TOPIC = frozenset(["UNKNOWN_TOPIC_OR_PART", "TOPIC_EXCEPTION", "_NOENT"])


def group_fault(group: str, name: str, text: str) -> str:
    """The message for a group whose committed offsets are unknown."""
    fix = ": allow the adapter to Describe the group" if name == "GROUP_AUTHORIZATION_FAILED" else ""
    return f"group {group}: {text}{fix}"


def other_group_fault(group: str) -> str:
    """The message for a group that is no consumer group and has no committed offsets."""
    return (
        f"group {group} has no committed offset and is no consumer group: a streams group (KIP-1071) is read after its "
        "first commit; a share group (KIP-932) is not supported, because librdkafka cannot read its progress"
    )


def topic_fault(topic: str, name: str, text: str) -> str:
    """The message for a topic whose partitions are unknown."""
    if name in _NO_TOPIC:
        return f"topic {topic} does not exist"
    fix = ": allow the adapter to Describe the topic" if name == "TOPIC_AUTHORIZATION_FAILED" else ""
    return f"topic {topic}: {text}{fix}"
