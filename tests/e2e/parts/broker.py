"""A Kafka broker (KRaft, one node)."""

import base64
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from parts.process import HOST, Process, free_port, tools, until

_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
"""
_LOGGING = """\
rootLogger.level=WARN
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d %p %c %m%n
"""


class Broker:
    """Starts, stops and starts again on the same ports and data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        port = free_port()
        self.bootstrap_servers = f"{HOST}:{port}"
        folder.mkdir(parents=True)
        settings = folder / "server.properties"
        settings.write_text(_SETTINGS.format(host=HOST, port=port, controller=free_port(), folder=folder))
        (folder / "log4j2.properties").write_text(_LOGGING)
        jars = tools() / "kafka-4.3.1" / "libs" / "*"
        self._java = [
            "java", "-Xms128m", "-Xmx384m", f"-Dlog4j2.configurationFile=file:{folder}/log4j2.properties", "-cp", jars,
        ]  # fmt: skip
        # One for all questions: a client that goes while an answer of its is under way takes the process with it.
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        self._observers: dict[str, Consumer] = {}
        self._process = Process("broker", [*self._java, "kafka.Kafka", settings], folder)

    def _format(self) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        arguments = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", self._folder / "server.properties"]
        with Process("format", [*self._java, *arguments], self._folder) as process:
            assert process.child.wait(180) == 0, process.log.read_text()

    def start(self) -> None:
        """Returns when the broker answers."""
        self._process.start()
        self._process.ready(self._answers)

    def _answers(self) -> bool:
        return bool(self._admin.list_topics(timeout=2).brokers)

    def stop(self) -> None:
        """Ends the broker; its data stay."""
        self._process.stop()

    def create_topic(self, topic: str, partitions: int) -> None:
        """Returns when the topic exists."""
        self._admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)
        until(lambda: len(self.end_offsets(topic)) == partitions, 60, f"{topic} has its leaders")

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Partition -> the offset the next record gets."""
        partitions = self._admin.list_topics(topic, timeout=10).topics[topic].partitions
        asked = self._admin.list_offsets({TopicPartition(topic, number): OffsetSpec.latest() for number in partitions})
        return {key.partition: future.result().offset for key, future in asked.items()}

    def committed_offsets(self, group: str, topic: str) -> dict[int, int]:
        """Partition -> what the group has committed; partitions without a commit are left out."""
        if group not in self._observers:
            self._observers[group] = observer(self.bootstrap_servers, group)
        asked = [TopicPartition(topic, number) for number in self.end_offsets(topic)]
        found = self._observers[group].committed(asked, timeout=15)
        return {item.partition: item.offset for item in found if item.offset >= 0}

    def backlog_records(self, group: str, topic: str) -> int:
        """Records the group has not committed yet; a partition without a commit counts whole."""
        done = self.committed_offsets(group, topic)
        return sum(end - done.get(number, 0) for number, end in self.end_offsets(topic).items())

    def __enter__(self) -> Self:
        self._format()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._observers.values():
            each.close()
        self.stop()


def observer(bootstrap_servers: str, group: str) -> Consumer:
    """Reads what a group has committed without joining it.

    Not AdminClient.list_consumer_group_offsets: librdkafka 2.16 was seen to crash the process there when the broker
    answers NOT_COORDINATOR, as it does while __consumer_offsets is made.
    """
    return Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group, "log_level": 0})
