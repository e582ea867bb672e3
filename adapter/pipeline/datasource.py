"""The sources as one Spark data source: an offset is a time, a partition is a source, a row has packed samples."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pydantic import BaseModel
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from adapter.config import Timing
from adapter.errors import SourceError
from adapter.pipeline.packing import pack
from adapter.pipeline.source_runner import deserialize, fault_table, runner_of, workloads_of
from adapter.pipeline.ticks import check_clock, first_offset, next_offset, ticks_between
from adapter.sources.precedence import with_source
from adapter.sources.sample_table import SCHEMA

Packed = tuple[int, int, bytes]


@dataclass(frozen=True)
class Slice(InputPartition):
    """One source's part of a batch."""

    source: str | None  # None without any configured source
    start_s: int
    end_s: int
    heartbeat: bool  # one slice of a batch has a row for every shard and tick


class Schedule(BaseModel):
    """The part of a configuration that the driver plans with. All workloads of a large fleet take 150 MB."""

    timing: Timing
    sources: dict[str, object]


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
        """The offset where the history of a first start begins."""
        return {"at": first_offset(time.time(), schedule(self._config_json).timing)}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        """The present: the only place where a clock advances the stream."""
        now_s, timing = time.time(), schedule(self._config_json).timing
        check_clock(start["at"], now_s, timing)
        return {"at": next_offset(start["at"], now_s, timing)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One slice a source; the first one has the heartbeat."""
        names: list[str | None] = [*sorted(schedule(self._config_json).sources)] or [None]
        return [Slice(name, start["at"], end["at"], name == names[0]) for name in names]

    def read(self, partition: InputPartition) -> Iterator[Packed]:
        """Read one source. The heartbeat is sent even if the source fails."""
        assert isinstance(partition, Slice)  # noqa: S101 - narrows Spark's type to what partitions() made
        ticks = ticks_between(partition.start_s, partition.end_s, schedule(self._config_json).timing)
        return pack(self._table(partition.source, ticks), ticks, partition.heartbeat)

    def _table(self, source: str | None, ticks: range) -> pa.Table:
        if source is None or not ticks:
            return SCHEMA.empty_table()
        try:
            table = runner_of(self._config_json, self._opener, source).samples(ticks)
        except SourceError as error:
            table = fault_table(workloads_of(deserialize(self._config_json), source), ticks, str(error))
        return with_source(table, deserialize(self._config_json), source)
