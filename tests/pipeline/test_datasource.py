"""A batch reads all sources at the same time."""

from threading import Barrier
from types import SimpleNamespace

import pyarrow as pa

from adapter.config import Config
from adapter.pipeline.datasource import Reader
from adapter.pipeline.packing import unpack
from adapter.pipeline.shards import SHARD_KEYS
from adapter.pipeline.source_runner import serialize
from adapter.sources.sample_table import SampleTable

NAMES = ("east", "north", "west")
AT_S = 1_800_000_000
ALL_READ = Barrier(len(NAMES), timeout=30)


def open_source(config: Config, name: str) -> SimpleNamespace:
    """A source that answers when every source is being read."""

    def samples(start_s: int, end_s: int, step_s: int) -> pa.Table:
        ALL_READ.wait()
        table = SampleTable()
        table.add(end_s, f"shop/{name}", {"backlog_records": 1.0})
        return table.finish()

    return SimpleNamespace(samples=samples, close=lambda: None)


def test_a_batch_reads_all_sources_at_the_same_time_and_has_a_row_for_every_shard() -> None:
    settings = Config.model_validate(
        {
            "sources": {name: {"kind": "trace", "url": "http://127.0.0.1:1", "deadline_s": 30} for name in NAMES},
            "timing": {"tick_s": 60, "history_s": 0},
            "pipeline": {"checkpoint": "/nowhere"},
        }
    )
    reader = Reader(serialize(settings), f"{__name__}:open_source")
    (batch,) = reader.partitions({"at": AT_S - 60}, {"at": AT_S})
    rows = list(reader.read(batch))
    assert {(shard, at) for shard, at, _ in rows} == {(shard, AT_S) for shard in SHARD_KEYS}
    (samples,) = unpack((at, content) for _, at, content in rows)
    assert samples.workloads == tuple(f"shop/{name}" for name in NAMES)
    assert not samples.faults
