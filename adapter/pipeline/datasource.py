"""The sources as one Spark data source: offsets are times, partitions are sources, rows are packed samples."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from adapter.errors import SourceError
from adapter.pipeline.asking import asked, fault_rows, parsed, workloads_of
from adapter.pipeline.packing import pack
from adapter.pipeline.ticks import first_offset, next_offset, ticks_between
from adapter.sources.columns import table_of

Packed = tuple[int, int, bytes]


@dataclass(frozen=True)
class Slice(InputPartition):
    """One source's part of a batch; source None where none is configured. One slice carries every shard's heartbeat."""

    source: str | None
    start_s: int
    end_s: int
    heartbeat: bool


class SamplesSource(DataSource):
    """Format "samples". Options: config (Config as JSON), opener ("module:function" that opens a source by name)."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "samples"

    def schema(self) -> str:
        """One row a (shard, tick, source); samples is an Arrow stream of packing.pack."""
        return "shard int, at long, samples binary"

    def streamReader(self, schema: Any) -> "Reader":  # noqa: N802 - Spark's name
        """The reader of a query."""
        return Reader(self.options["config"], self.options["opener"])


class Reader(DataSourceStreamReader):
    """Plans on the driver without I/O, reads on executors."""

    def __init__(self, config_json: str, opener: str) -> None:
        self._config_json = config_json
        self._opener = opener

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        """A warm-up ago."""
        return {"at": first_offset(time.time(), parsed(self._config_json).timing)}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        """The one place where a clock moves the stream."""
        return {"at": next_offset(start["at"], time.time(), parsed(self._config_json).timing)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One slice a source; the first carries the heartbeat."""
        names: list[str | None] = [*sorted(parsed(self._config_json).sources)] or [None]
        return [Slice(name, start["at"], end["at"], name == names[0]) for name in names]

    def read(self, partition: InputPartition) -> Iterator[Packed]:
        """Ask one source for its ticks. Whatever happens there, the heartbeat goes out."""
        assert isinstance(partition, Slice)  # noqa: S101 - narrows Spark's type to what partitions() made
        ticks = ticks_between(partition.start_s, partition.end_s, parsed(self._config_json).timing)
        return pack(self._table(partition.source, ticks), ticks, partition.heartbeat)

    def _table(self, source: str | None, ticks: range) -> pa.Table:
        if source is None or not ticks:
            return table_of(())
        try:
            return asked(self._config_json, self._opener, source).samples(ticks)
        except SourceError as error:
            return table_of(fault_rows(workloads_of(parsed(self._config_json), source), ticks, str(error)))
