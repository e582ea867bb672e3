"""The streaming query: sources -> shards -> fold -> publish."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from adapter.config import Config
from adapter.core.rule_book import RuleBook
from adapter.pipeline.datasource import SamplesSource
from adapter.pipeline.fold import DECISIONS, Fold
from adapter.pipeline.source_runner import serialize

OPENER = "adapter.sources.factory:open_source"


@dataclass(frozen=True, kw_only=True)
class QueryPlan:
    """Configuration and rules of the streaming query."""

    config: Config
    rules: RuleBook
    opener: str  # "module:function" that opens a source by name in a Spark worker


def start_query(
    session: SparkSession, plan: QueryPlan, checkpoint: str, publish: Callable[[DataFrame, int], None]
) -> StreamingQuery:
    """Start the query, from its checkpoint if it exists, with one micro-batch a tick."""
    session.dataSource.register(SamplesSource)
    rows = (
        session.readStream.format(SamplesSource.name())
        .option("config", serialize(plan.config))
        .option("opener", plan.opener)
        .load()
    )
    decisions = rows.groupBy("shard").transformWithState(Fold(plan.rules), DECISIONS, "Update", "None")
    return (
        decisions.writeStream.outputMode("update")
        .option("checkpointLocation", checkpoint)
        .foreachBatch(publish)
        .trigger(processingTime=f"{plan.config.timing.tick_s} seconds")
        .start()
    )
