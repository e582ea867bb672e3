"""A Kafka broker of one node on loopback, with consumer groups that have committed."""

import base64
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka import admin as client

from bench.processes import free_port, running, wait_until
from bench.tool_folder import tools

_NewTopic: Any = client.NewTopic  # type: ignore[attr-defined]  # public, but not exported to type checkers
TOPIC, PARTITIONS = "orders", 4
BUILD = "make tools"
_STARTS_WITHIN_S, _COMMITS_WITHIN_S = 120.0, 60.0
_END = 2_000  # characters of a failed program's output
_AT_ONCE = 500  # requests of the preparation
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
"""


def libraries() -> Path | None:
    """The folder with the broker's jars; None if it is missing."""
    return next(iter(sorted(tools().glob("kafka-*/libs"), reverse=True)), None)


@contextmanager
def broker(jars: Path, folder: Path) -> Iterator[str]:
    """The address of a broker while the block lasts. Raises RuntimeError with its output if it does not start."""
    port, settings, out = free_port(), folder / "server.properties", folder / "broker.out"
    settings.write_text(_SETTINGS.format(port=port, controller=free_port(), folder=folder))
    java = ["java", "-Xmx512m", "-cp", f"{jars}/*"]
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()
    _format([*java, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(settings)], out)
    address = f"127.0.0.1:{port}"
    with running([*java, "kafka.Kafka", str(settings)], out) as process:
        wait_until(lambda: _commits(address), process, out, _STARTS_WITHIN_S)
        yield address


def commit(address: str, groups: list[str]) -> None:
    """Commit an offset in every partition of TOPIC for each group."""
    admin = client.AdminClient({"bootstrap.servers": address})
    offsets = [TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)]
    for first in range(0, len(groups), _AT_ONCE):
        requests = [
            admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, offsets)])[group]
            for group in groups[first : first + _AT_ONCE]
        ]
        for request in requests:
            request.result(_COMMITS_WITHIN_S)


def _format(command: list[str], out: Path) -> None:
    """Run the storage tool. Raises RuntimeError with the end of its output if it fails."""
    with running(command, out) as process:
        if code := process.wait(_STARTS_WITHIN_S):
            raise RuntimeError(f"Kafka's storage tool failed with exit code {code}:\n{out.read_text()[-_END:]}")


def _commits(address: str) -> bool:
    """Whether the topic exists and a group can commit: the first commit creates __consumer_offsets."""
    admin = client.AdminClient({"bootstrap.servers": address, "log_level": 0})
    with suppress(KafkaException, TimeoutError):
        admin.create_topics([_NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(10)
    consumer = Consumer({"bootstrap.servers": address, "group.id": "first", "log_level": 0})
    try:
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 0)], asynchronous=False)
    except KafkaException:
        time.sleep(1)
        return False
    finally:
        consumer.close()
    return True
