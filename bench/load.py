"""Run the load generator, the common client of all compared servers: its options and its results."""

import subprocess
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import msgspec

Headers = tuple[tuple[str, str], ...]

_SPARE_S = 60.0  # beyond the duration of a run, for a server that does not answer


class LoadResult(msgspec.Struct, frozen=True):
    """The results of a run. errors: number of answers outside 2xx by status, and of failed requests."""

    requests: int
    errors: dict[str, int]
    requests_per_s: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a run."""

    connections: int
    duration_s: float
    _: KW_ONLY
    streams: int = 1  # concurrent requests per connection; above 1 over HTTP/2
    stalled: int = 0  # further connections, which never finish their handshake
    rate_per_s: float = 0.0  # requests due (open loop); 0 sends the next request after each answer
    warmup_s: float = 0.0
    questions: int = 1  # a `%d` in the URL becomes the request's number modulo this
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
    """The program of the load generator, and its client certificate."""

    program: Path
    certificate: Path
    key: Path

    def run(self, load: Load, url: str) -> LoadResult:
        """Run a load and return its results.

        Raises RuntimeError if the program is missing, and with its output if it fails.
        """
        if not self.program.is_file():
            raise RuntimeError(f"{self.program} is missing: `make tools` builds it")
        command = [str(self.program), "-cert", str(self.certificate), "-key", str(self.key), *load.words(), url]
        within_s = load.warmup_s + load.duration_s + _SPARE_S
        ended = subprocess.run(command, capture_output=True, timeout=within_s, check=False)  # noqa: S603 - our own
        if ended.returncode != 0:
            raise RuntimeError(f"the load generator failed: {ended.stderr.decode('utf-8', 'replace')}")
        return msgspec.json.decode(ended.stdout, type=LoadResult)
