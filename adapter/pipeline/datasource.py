"""The sources as one Spark data source: an offset is a time, a row has the packed samples of a source."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
from pydantic import BaseModel
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from adapter.config import Config, Timing
from adapter.errors import SourceError
from adapter.pipeline.packing import pack
from adapter.pipeline.source_runner import SourceRunner, deserialize, fault_table, runner_of
from adapter.pipeline.ticks import NO_OFFSET, check_clock, next_offset, ticks_between
from adapter.sources.precedence import with_source, workloads_of

Packed = tuple[int, int, bytes]


@dataclass(frozen=True)
class Batch(InputPartition):
    """The ticks of a batch, after start_s and up to end_s."""

    start_s: int  # or NO_OFFSET
    end_s: int


class Schedule(BaseModel):
    """The part of a configuration that the driver plans with. All workloads of a large fleet take 150 MB."""

    timing: Timing


@lru_cache(maxsize=1)
def schedule(config_json: str) -> Schedule:
    """The schedule of a configuration, read once a process."""
    return Schedule.model_validate_json(config_json)


class SamplesSource(DataSource):
    """The format "samples". Options: config (Config as JSON), opener ("module:function" that opens a source)."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "samples"

    def schema(self) -> str:
        """One row for each shard, tick and source. samples is an Arrow stream from packing.pack."""
        return "shard int, at long, samples binary"

    def streamReader(self, schema: Any) -> "Reader":  # noqa: N802 - Spark's name
        """The reader of a query."""
        return Reader(self.options["config"], self.options["opener"])


class Reader(DataSourceStreamReader):
    """Plans on the driver without I/O; reads on executors."""

    def __init__(self, config_json: str, opener: str) -> None:
        self._config_json = config_json
        self._opener = opener

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """The offset before the first batch."""
        return {"at": NO_OFFSET}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        """The present: the only place where a clock advances the stream."""
        now_s, timing = time.time(), schedule(self._config_json).timing
        check_clock(start["at"], now_s, timing)
        return {"at": next_offset(start["at"], now_s, timing)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One task for all sources: with a task for each, sources that do not answer would occupy all cores."""
        return [Batch(start["at"], end["at"])]

    def read(self, partition: InputPartition) -> Iterator[Packed]:
        """Read all sources at the same time. The first one has a row for every shard and tick, even if it fails."""
        assert isinstance(partition, Batch)  # noqa: S101 - narrows Spark's type to what partitions() made
        config = deserialize(self._config_json)
        ticks = ticks_between(partition.start_s, partition.end_s, config.timing)
        runners = {name: runner_of(self._config_json, self._opener, name) for name in sorted(config.sources)}
        with ThreadPoolExecutor(len(runners)) as pool:
            tables = pool.map(partial(_samples, config, ticks), runners.items())
            for number, table in enumerate(tables):
                yield from pack(table, ticks, all_shards=number == 0)


def _samples(config: Config, ticks: range, source: tuple[str, SourceRunner]) -> pa.Table:
    name, runner = source
    try:
        table = runner.samples(ticks)
    except SourceError as error:
        table = fault_table(workloads_of(config, name), ticks, str(error))
    return with_source(table, config, name)
