"""A Kafka broker (KRaft), alone or beside another one."""

import base64
import uuid
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from bench.tool_folder import tools
from parts.process import HOST, LOG4J, Process, free_port, until

_CLUSTER_ID = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
_SETTINGS = """\
process.roles={roles}
node.id={node}
controller.quorum.voters=1@{controller}
listeners={listeners}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
"""


class Broker(Process):
    """Restarts on the same ports and data."""

    def __init__(self, folder: Path, first: "Broker | None" = None) -> None:
        """first: the broker whose cluster this one joins."""
        port = free_port()
        self._node = 2 if first else 1
        self._controller: str = first._controller if first else f"{HOST}:{free_port()}"
        listeners = [f"PLAINTEXT://{HOST}:{port}", *([] if first else [f"CONTROLLER://{self._controller}"])]
        self.bootstrap_servers = f"{HOST}:{port}"
        folder.mkdir(parents=True)
        settings = folder / "server.properties"
        settings.write_text(
            _SETTINGS.format(
                roles="broker" if first else "broker,controller", node=self._node, controller=self._controller,
                listeners=",".join(listeners), host=HOST, port=port, folder=folder,
            )
        )  # fmt: skip
        (folder / "log4j2.properties").write_text(LOG4J.format(level="WARN"))
        jars = tools() / "kafka-4.3.1" / "libs" / "*"
        self._java = [
            "java", "-Xms128m", "-Xmx384m", f"-Dlog4j2.configurationFile=file:{folder}/log4j2.properties", "-cp", jars,
        ]  # fmt: skip
        # One client for all requests: librdkafka crashes the process when a client is freed during a request.
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        self._observers: dict[str, Consumer] = {}
        super().__init__("broker", [*self._java, "kafka.Kafka", settings], folder)

    def _format(self) -> None:
        settings = self.folder / "server.properties"
        # With `=`, because the name of one cluster in 64 begins with a hyphen.
        arguments = ["kafka.tools.StorageTool", "format", f"--cluster-id={_CLUSTER_ID}", "-c", settings]
        with Process("format", [*self._java, *arguments], self.folder) as process:
            assert process.child.wait(180) == 0, process.log.read_text()

    def start(self) -> None:
        """Formats the storage once, and returns when the broker and those before it are in the cluster."""
        if not (self.folder / "data").is_dir():
            self._format()
        super().start()
        self.ready(lambda: len(self._admin.list_topics(timeout=2).brokers) >= self._node)

    def create_topic(self, topic: str, partitions: int) -> None:
        """Returns when the topic exists."""
        self._admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)
        until(lambda: len(self.end_offsets(topic)) == partitions, 60, f"every partition of {topic} has a leader")

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Partition -> log end offset."""
        partitions = self._admin.list_topics(topic, timeout=10).topics[topic].partitions
        ends = self._admin.list_offsets({TopicPartition(topic, number): OffsetSpec.latest() for number in partitions})
        return {key.partition: future.result().offset for key, future in ends.items()}

    def committed_offsets(self, group: str, topic: str) -> dict[int, int]:
        """Partition -> committed offset; partitions without a commit are absent."""
        if group not in self._observers:
            self._observers[group] = observer(self.bootstrap_servers, group)
        partitions = [TopicPartition(topic, number) for number in self.end_offsets(topic)]
        found = self._observers[group].committed(partitions, timeout=15)
        return {item.partition: item.offset for item in found if item.offset >= 0}

    def backlog_records(self, group: str, topic: str) -> int:
        """The consumer lag; a partition without a commit counts from offset 0."""
        committed = self.committed_offsets(group, topic)
        return sum(end - committed.get(number, 0) for number, end in self.end_offsets(topic).items())

    def __exit__(self, *error: object) -> None:
        for each in self._observers.values():
            each.close()
        self.stop()


def observer(bootstrap_servers: str, group: str) -> Consumer:
    """Reads the committed offsets of a group without joining it.

    AdminClient.list_consumer_group_offsets of librdkafka 2.16 crashes the process when the broker answers
    NOT_COORDINATOR, as it does while it creates __consumer_offsets.
    """
    return Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group, "log_level": 0})
