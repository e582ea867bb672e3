"""A fleet of any size with varying rates. Its counts are available as arrays and as the rows of a trace source."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import numpy as np

from adapter.core.samples import WHOLE, Array, Samples

NAMESPACE = "bench"
WORKERS = 4.0
PERIOD_S = 120.0
_GAUGES = {"partitions": 12.0, "spec_workers": WORKERS, "workers": WORKERS, "ready_workers": WORKERS, "fleet": 0.0}


class Workloads:
    """A number of workloads. Each has its own oscillating rate, and a backlog while the rate is high."""

    def __init__(self, count: int) -> None:
        self.names = tuple(f"{NAMESPACE}/job-{number:05d}" for number in range(count))
        self._rate_records_per_s = np.linspace(100.0, 1000.0, count)
        self._phase = np.linspace(0.0, 2 * np.pi, count, endpoint=False)

    def samples(self, at_s: int) -> Samples:
        """The counts at a time, as samples for the core."""
        every = np.ones(len(self.names))
        return Samples(
            at_s=at_s,
            workloads=self.names,
            stages=tuple((name, WHOLE) for name in self.names),
            by_stage=self._stage(at_s),
            by_workload={signal: every * value for signal, value in _GAUGES.items()},
        )

    def answer(self, path: str) -> bytes:
        """What a trace source's /samples?start=&end=&step= serves: one row a line, as JSON."""
        query = parse_qs(urlsplit(path).query)
        start_s, end_s, step_s = (int(query[name][0]) for name in ("start", "end", "step"))
        return "".join(line for at_s in range(start_s, end_s + 1, step_s) for line in self._lines(at_s)).encode()

    def _lines(self, at_s: int) -> Iterator[str]:
        columns = [(signal, values.tolist()) for signal, values in self._stage(at_s).items()]
        columns += [(signal, [value] * len(self.names)) for signal, value in _GAUGES.items() if signal != "fleet"]
        for signal, values in columns:
            middle = f'","stage":"","signal":"{signal}","value":'
            for name, value in zip(self.names, values, strict=True):
                yield f'{{"at_s":{at_s},"workload":"{name}{middle}{value}}}\n'

    def _stage(self, at_s: int) -> dict[str, Array]:
        """Counters with a rate of base * (1 + 0.5 sin), and a backlog since its last trough."""
        turn = 2 * np.pi / PERIOD_S
        angle = self._phase + turn * at_s
        appended = self._rate_records_per_s * (at_s - 0.5 / turn * np.cos(angle))
        backlog = self._rate_records_per_s * (1 - np.cos(angle))
        return {
            "processed_records": np.floor(appended - backlog),
            "appended_records": np.floor(appended),
            "backlog_records": np.floor(appended) - np.floor(appended - backlog),
            "utilization_ratio": 0.7 + 0.25 * np.sin(angle),
        }
