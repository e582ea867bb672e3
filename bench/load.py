"""The load generator, the one client of every server that is compared: what it is told to do, and what it saw."""

import subprocess
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import msgspec

Headers = tuple[tuple[str, str], ...]

_SPARE_S = 60.0  # a server that answers nothing ends no run


class Seen(msgspec.Struct, frozen=True):
    """What a run of the generator saw. errors: how often an answer was not 2xx, by status, or failed."""

    requests: int
    errors: dict[str, int]
    requests_per_s: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Load:
    """A run. streams: requests at the same time on each connection, above 1 over HTTP/2. stalled: connections held
    besides, which never finish their handshake. rate_per_s: how many are due, whether or not answers came; 0 is the
    next as soon as one came. questions: a `%d` in the address counts so far."""

    connections: int
    duration_s: float
    _: KW_ONLY
    streams: int = 1
    stalled: int = 0
    rate_per_s: float = 0.0
    warmup_s: float = 0.0
    questions: int = 1
    headers: Headers = ()

    def words(self) -> Iterator[str]:
        """The options of the command."""
        yield from ("-connections", str(self.connections), "-stalled", str(self.stalled))
        yield from ("-duration", f"{self.duration_s:f}s", "-warmup", f"{self.warmup_s:f}s")
        yield from ("-rate", f"{self.rate_per_s:f}", "-modulo", str(self.questions))
        if self.streams > 1:
            yield from ("-h2", "-streams", str(self.streams))
        for name, value in self.headers:
            yield from ("-header", f"{name}: {value}")


@dataclass(frozen=True, slots=True)
class Generator:
    """The command and the certificate that it shows, with its key."""

    program: Path
    certificate: Path
    key: Path

    def run(self, load: Load, url: str) -> Seen:
        """What it saw. Raises RuntimeError with what it printed when it fails."""
        command = [str(self.program), "-cert", str(self.certificate), "-key", str(self.key), *load.words(), url]
        within_s = load.warmup_s + load.duration_s + _SPARE_S
        ended = subprocess.run(command, capture_output=True, timeout=within_s, check=False)  # noqa: S603 - our own
        if ended.returncode != 0:
            raise RuntimeError(f"the load generator failed: {ended.stderr.decode('utf-8', 'replace')}")
        return msgspec.json.decode(ended.stdout, type=Seen)
