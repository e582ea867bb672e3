"""A Kafka exporter: the offsets of the broker under the metric names of kafka-exporter.

A program of its own: exporter.py HOST PORT BOOTSTRAP_SERVERS
"""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily

from parts.broker import observer
from parts.process import HOST, Process, free_port

_TIMEOUT_S = 2.0


class Exporter(Process):
    """Serves the current offsets at `address`."""

    def __init__(self, folder: Path, bootstrap_servers: str) -> None:
        port = free_port()
        self.address = f"{HOST}:{port}"
        env = {"PYTHONPATH": str(Path(__file__).parent.parent)}
        super().__init__("exporter", [sys.executable, __file__, HOST, str(port), bootstrap_servers], folder, env)

    def start(self) -> None:
        """Returns when the exporter answers."""
        super().start()
        self.ready(lambda: httpx.get(f"http://{self.address}/metrics", timeout=5).is_success)


class Offsets:
    """Collects on every scrape. Without an answer of the broker there are no series, as in the real exporter."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._observers: dict[str, Consumer] = {}
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The three metric families."""
        ends = GaugeMetricFamily("kafka_topic_partition_current_offset", "Log end.", labels=["topic", "partition"])
        by_group = ["consumergroup", "topic", "partition"]
        committed = GaugeMetricFamily("kafka_consumergroup_current_offset", "Committed offset.", labels=by_group)
        lag = GaugeMetricFamily("kafka_consumergroup_lag", "Records not committed yet.", labels=by_group)
        try:
            found = self._ends()
            for (topic, number), end in found.items():
                ends.add_metric([topic, str(number)], end)
            for group, topic, number, offset in self._committed([TopicPartition(*key) for key in found]):
                committed.add_metric([group, topic, str(number)], offset)
                lag.add_metric([group, topic, str(number)], found[topic, number] - offset)
        except KafkaException:
            return
        yield from (ends, committed, lag)

    def _ends(self) -> dict[tuple[str, int], int]:
        topics = self._admin.list_topics(timeout=_TIMEOUT_S).topics
        ends = self._admin.list_offsets(
            {
                TopicPartition(name, number): OffsetSpec.latest()
                for name, topic in topics.items()
                if not name.startswith("__")
                for number in topic.partitions
            },
            request_timeout=_TIMEOUT_S,
        )
        return {(key.topic, key.partition): future.result().offset for key, future in ends.items()}

    def _committed(self, partitions: list[TopicPartition]) -> Iterator[tuple[str, str, int, int]]:
        listed = self._admin.list_consumer_groups(request_timeout=_TIMEOUT_S).result()
        for group in (each.group_id for each in listed.valid):
            if group not in self._observers:
                self._observers[group] = observer(self._bootstrap_servers, group)
            for item in self._observers[group].committed(partitions, timeout=_TIMEOUT_S):
                if item.offset >= 0:
                    yield group, item.topic, item.partition, item.offset


if __name__ == "__main__":
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Offsets(sys.argv[3]))
    start_http_server(int(sys.argv[2]), addr=sys.argv[1], registry=registry)
    threading.Event().wait()
