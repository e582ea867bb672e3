"""Sources read the counts of other systems. Each system has its module; all have one protocol for present and past."""

from typing import Protocol

import pyarrow as pa


class Source(Protocol):
    """Reads one system. Each Python worker of Spark opens its own source, so that no source is pickled."""

    def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        """The samples of the ticks start_s, start_s + step_s, ... end_s, as a table of sample_table.SCHEMA.

        A source without past values answers only for end_s, and only while end_s is less than one step old.
        Raises SourceError if the system does not answer within the deadline. A fault of a single workload is a FAULT
        row, not an exception.
        """

    def close(self) -> None:
        """Release connections."""
