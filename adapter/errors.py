"""The exceptions that users see.

AdapterError
├── ConfigError      the configuration, every fault at once
├── SourceError      a system did not answer; costs its samples, never the tick
├── SetupError       Java is missing or too old, a port is taken
├── JvmError         Spark's JVM has ended, or a bug ended the pipeline; the process ends, and the container restarts
├── CheckpointError  the marker of the checkpoint is missing or unreadable
├── ClockError       the clock is behind the ticks of the checkpoint
└── of a backtest    backtest.trace.TraceError, backtest.history.HistoryError, backtest.job.BacktestError,
                     backtest.results.ResultsError, backtest.report.ReportError
"""

LONGEST_FAULT = 500  # characters; an error page of 70 KB at each of 1 000 workloads makes a snapshot that is refused
_END = 150  # characters of a longer text that stay at its end, where messages name the fix


def plain(text: str) -> str:
    """The text of another system as one line for logs, terminals and pages, at most LONGEST_FAULT characters.

    The middle of a longer text is left out. White space becomes one space. Control characters, escape sequences and
    marks that reorder a line are shown as their code, such as \\x1b.
    """
    if text.isprintable() and len(text) <= LONGEST_FAULT:
        return text
    most = 2 * LONGEST_FAULT
    line = " ".join((text if len(text) <= 2 * most else f"{text[:most]} {text[-most:]}").split())
    line = printable(line)
    return line if len(line) <= LONGEST_FAULT else f"{line[: LONGEST_FAULT - _END - 1]}…{line[-_END:]}"


def printable(text: str) -> str:
    """The text with its control characters, escape sequences and marks that reorder a line as their code."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def cause_of(error: BaseException) -> str:
    """The cause of an error of Spark in one line, without the Python traceback, plan and Java stack of its message."""
    try:
        message = str(error)
    except Exception:  # the message of a Java exception is in the JVM, which may have ended
        return type(error).__name__
    text = message.rpartition("Traceback (most recent call last):")[2]
    lines = [line.strip() for line in text.splitlines() if line and not line[0].isspace()]
    if lines and "An error occurred while calling " in lines[0]:  # py4j's; Java's causes follow
        causes = [line for line in lines if line.startswith((": ", "Caused by: "))]
        return " ".join(causes).removeprefix(": ") or lines[0]
    return lines[0] if lines else type(error).__name__


class AdapterError(Exception):
    """Base of all errors that are shown to the user as one sentence, without a traceback."""


class ConfigError(AdapterError):
    """The configuration is wrong. `faults` holds one sentence a fault, each with its path."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = tuple(printable(fault) for fault in faults)
        super().__init__("\n".join(self.faults))


class SourceError(AdapterError):
    """A source gave no usable answer. `source` is its name in the configuration, `cause` a sentence in one line."""

    def __init__(self, source: str, cause: str) -> None:
        self.source = source
        self.cause = plain(cause)
        super().__init__(f"{source}: {self.cause}")

    def __reduce__(self) -> tuple[type["SourceError"], tuple[str, str]]:
        return SourceError, (self.source, self.cause)  # crosses processes whole


class SetupError(AdapterError):
    """The machine lacks something; the message names it and a command that provides it."""


class JvmError(AdapterError):
    """The pipeline has ended: with Spark's JVM, or by a bug. The message says why."""


class CheckpointError(AdapterError):
    """The marker of the checkpoint is missing or unreadable. The message says which, and what to do."""


class ClockError(AdapterError):
    """The clock is far behind a tick that the stream has; the message has both times."""
