"""The calls of confluent_kafka's AdminClient that the reader uses, as a protocol that tests can implement."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from adapter.config import KafkaSource


class Admin(Protocol):
    """Every call but list_groups takes request_timeout, in seconds, and returns at once.

    The call list_groups, or the future of another one, raises KafkaException.
    """

    def describe_cluster(self, **settings: Any) -> Future[Any]:
        """Any answer shows that a broker is there."""

    def list_consumer_groups(self, **settings: Any) -> Future[Any]:
        """Names of all consumer groups, classic and next-generation."""

    def list_groups(self, *, timeout: float) -> list[Any]:
        """Every group with its state as a classic group. Deprecated, but the only call that sees share groups."""

    def describe_consumer_groups(self, groups: list[str], **settings: Any) -> Mapping[str, Future[Any]]:
        """State of each group, from its coordinator."""

    def list_consumer_group_offsets(self, request: Any, **settings: Any) -> Mapping[str, Future[Any]]:
        """Committed offsets of one group."""

    def describe_topics(self, topics: Any, **settings: Any) -> Mapping[str, Future[Any]]:
        """Partitions of topics."""

    def list_offsets(self, partitions: Any, **settings: Any) -> Mapping[Any, Future[Any]]:
        """Log start or log end offsets of partitions; the offset -1001 after a timeout."""

    def poll(self, timeout_s: float) -> int:
        """Run the pending callbacks in this thread."""


Open = Callable[[str, KafkaSource, Callable[[Any], None]], Admin]  # name, settings, error callback -> Admin
