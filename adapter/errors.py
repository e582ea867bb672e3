"""What can go wrong, as types.

AdapterError
├── ConfigError      the configuration, every fault at once
├── SourceError      a system did not answer; costs its samples, never the tick
├── SetupError Java is missing or too old, a port is taken
├── CheckpointError  the checkpoint belongs to another version
└── of a backtest    backtest.trace.TraceError, backtest.history.HistoryError, backtest.job.BacktestError,
                     backtest.results.ResultsError, backtest.report.ReportError
"""


class AdapterError(Exception):
    """Base of all errors that are shown to the user as one sentence, without a traceback."""


class ConfigError(AdapterError):
    """The configuration is wrong. `faults` holds one sentence a fault, each with its path."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(faults))


class SourceError(AdapterError):
    """A source could not tell. `source` is its name in the configuration, `cause` a sentence."""

    def __init__(self, source: str, cause: str) -> None:
        self.source = source
        self.cause = cause
        super().__init__(f"{source}: {cause}")

    def __reduce__(self) -> tuple[type["SourceError"], tuple[str, str]]:
        return SourceError, (self.source, self.cause)  # crosses processes whole


class SetupError(AdapterError):
    """The machine lacks something; the message names it and the command that mends it."""


class CheckpointError(AdapterError):
    """The checkpoint was written by another version; the message says which, and what to do."""
