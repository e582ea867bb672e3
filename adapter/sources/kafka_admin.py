"""The few calls of confluent_kafka's AdminClient that are used, as a protocol; whoever answers them is a cluster."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from adapter.config import KafkaSource


class Admin(Protocol):
    """Every call takes request_timeout, in seconds, and returns at once; a future raises KafkaException."""

    def describe_cluster(self, **settings: Any) -> Future[Any]:
        """Any answer shows that a broker is there."""

    def list_consumer_groups(self, **settings: Any) -> Future[Any]:
        """Names of all groups."""

    def describe_consumer_groups(self, groups: list[str], **settings: Any) -> Mapping[str, Future[Any]]:
        """State of each group, told by its coordinator."""

    def list_consumer_group_offsets(self, request: Any, **settings: Any) -> Mapping[str, Future[Any]]:
        """Committed offsets of one group."""

    def describe_topics(self, topics: Any, **settings: Any) -> Mapping[str, Future[Any]]:
        """Partitions of topics."""

    def list_offsets(self, partitions: Any, **settings: Any) -> Mapping[Any, Future[Any]]:
        """First or end offsets of partitions; the offset -1001 when that timed out."""

    def poll(self, timeout_s: float) -> int:
        """Run the callbacks that wait, in this thread."""


Open = Callable[[str, KafkaSource, Callable[[Any], None]], Admin]  # name, settings, what to do with an error -> Admin
