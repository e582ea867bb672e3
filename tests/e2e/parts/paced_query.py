"""A Spark query that reads a topic and works for a fixed time on each record.

A program of its own: paced_query.py BOOTSTRAP_SERVERS NAME MILLISECONDS CHECKPOINT KEY=VALUE ...; the last are
settings of Spark.
"""

import json
import sys

from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)

# At most 750 records/s. Small micro-batches show their progress often; larger ones do not gain much here.
_BATCH_RECORDS, _EVERY = 1500, "2 seconds"


class OffsetCommitter(StreamingQueryListener):
    """Commits the end of each micro-batch to a consumer group, because Spark does not."""

    def __init__(self, bootstrap_servers: str, group: str) -> None:
        super().__init__()
        self._client = Consumer(
            {"bootstrap.servers": bootstrap_servers, "group.id": group, "enable.auto.commit": False}
        )

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  # Spark's name
        """endOffset is {topic: {partition: next offset}}, as JSON."""
        for source in event.progress.sources:
            ends = json.loads(source.endOffset)
            offsets = [TopicPartition(topic, int(n), end) for topic in ends for n, end in ends[topic].items()]
            self._client.commit(offsets=offsets, asynchronous=False)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing is processed yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """The last commit holds."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """The last commit holds."""


def main(bootstrap_servers: str, name: str, milliseconds: str, checkpoint: str, *settings: str) -> None:
    """Runs until the query fails or the process ends."""
    builder = SparkSession.builder.appName(name)
    for setting in settings:
        builder = builder.config(*setting.split("=", 1))
    spark = builder.getOrCreate()
    spark.streams.addListener(OffsetCommitter(bootstrap_servers, name))
    records = spark.readStream.format("kafka").options(**{
        "kafka.bootstrap.servers": bootstrap_servers, "subscribe": name, "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(_BATCH_RECORDS),
    }).load()  # fmt: skip
    # Sleeps on an executor: busy for Spark, without a load on the machine.
    worked = records.selectExpr(f"reflect('java.lang.Thread', 'sleep', {milliseconds}L)")
    output = worked.writeStream.format("noop").queryName("paced").option("checkpointLocation", checkpoint)
    output.trigger(processingTime=_EVERY).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
