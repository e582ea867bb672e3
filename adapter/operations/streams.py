"""The configuration -> the scaling policies of the Pravega streams that a workload reads."""

from collections.abc import Callable
from contextlib import closing

from adapter.config import Config, PravegaSource
from adapter.core.formatting import UNKNOWN
from adapter.errors import SourceError
from adapter.operations.rows import Row, TextSection
from adapter.sources.pravega import PravegaReader, StreamRead, stream_reads

Open = Callable[[str, PravegaSource, tuple[StreamRead, ...]], PravegaReader]


def stream_section(config: Config, workload: str, open_reader: Open = PravegaReader) -> TextSection:
    """How Pravega scales each stream of a workload, as its controller answers now."""
    return TextSection("Streams, as Pravega scales them", tuple(_rows(config, workload, open_reader)))


def _rows(config: Config, workload: str, open_reader: Open) -> list[Row]:
    return [
        Row(name=f"{read.scope}/{read.stream}", note=_policy(name, settings, read, open_reader))
        for name, settings in config.sources.items()
        if isinstance(settings, PravegaSource)
        for read in stream_reads(config, name)
        if read.workload == workload
    ]


def _policy(name: str, settings: PravegaSource, read: StreamRead, open_reader: Open) -> str:
    """The policy, or why it is unknown: the explanation has to stand without it."""
    try:
        with closing(open_reader(name, settings, (read,))) as reader:
            return reader.scaling_policy(read.scope, read.stream)
    except SourceError as error:
        return f"{UNKNOWN}: {error}"
