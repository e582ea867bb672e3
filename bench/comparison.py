"""Run several servers in turn under the same loads, and compare them line by line."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from adapter.core.formatting import counted
from adapter.serving.metric_api import EXTERNAL_GROUP_VERSION
from bench.comparison_line import Line
from bench.load import Generator, Headers, Load, LoadResult
from bench.machine import rss_mib, tree_cpu_s
from bench.replica import HPA_HEADERS, TICK_S, WORKLOADS

# Active connections, and further ones that stall in their handshake.
SITUATIONS = ((1, 0), (5, 0), (25, 0), (25, 20), (100, 0))
USUAL = (25, 0)
WITHOUT_STALLS = tuple(each for each in SITUATIONS if not each[1])
SELECTORS = 10  # of the closed loops; their access reviews are cached for ten seconds
SYNC_S = 15.0  # the HPA controller's period
SYNC_WORKERS = 5
AVAILABILITY_CHECKS = 5  # concurrent
CHECKS_PER_S = 100.0
WARMUP_S = 0.5
REST_S = 2.0  # between syncs, in which the rate limiter of the Go server's cluster client refills its burst of 400

_AGGREGATOR: Headers = (("X-Remote-User", "system:kube-aggregator"), ("X-Remote-Group", "system:masters"))
_SYNC = Load(connections=SYNC_WORKERS, duration_s=SYNC_S, rate_per_s=WORKLOADS / SYNC_S, questions=WORKLOADS)
# All requests are due in the first millisecond: a worker sends the next one as soon as it has its answer.
_AS_FAST_AS_POSSIBLE = replace(_SYNC, duration_s=1e-3, rate_per_s=WORKLOADS / 1e-3)


@dataclass(frozen=True, slots=True)
class Contender:
    """A server under measurement. target: its path with a `%d`. has_http2: whether it offers HTTP/2."""

    name: str
    pid: int
    port: int
    target: str
    has_http2: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One run against one server. cores: mean number of processors that the server used."""

    result: LoadResult
    cores: float


Runs = Sequence[Sequence[Run]]  # by contender


@dataclass(slots=True)
class Comparison:
    """The loads of the comparison. wrong: answers other than 2xx, by contender.

    groups: user groups used so far. Every run of a sync has its own, so that no server has its reviews cached.
    """

    generator: Generator
    contenders: Sequence[Contender]
    repetitions: int
    seconds: float
    wrong: Counter[str] = field(default_factory=Counter)
    groups: int = 0

    def closed_loops(self, situations: Sequence[tuple[int, int]], aim: str) -> Iterator[Line]:
        """Every connection sends its next request as soon as it has an answer. aim: for the requests/s."""
        for connections, stalled in situations:
            load = self._closed_loop_load(connections, stalled)
            runs = self._run_in_turn([load] * len(self.contenders))
            yield _rate(_situation(connections, stalled), runs, aim)
            is_usual = (connections, stalled) == USUAL
            yield from _latencies("", runs, f"< {self.contenders[1].name}" if is_usual and self.contenders[1:] else "")
            if is_usual:
                yield _line("", "CPU us each", runs, lambda run: 1e6 * run.cores / run.result.requests_per_s)

    def aggregator_requests(self) -> Iterator[Line]:
        """Many concurrent requests of one API server, over HTTP/2 if the server offers it."""
        usual = self._closed_loop_load(*USUAL)
        merged = replace(usual, connections=1, streams=usual.connections)
        runs = self._run_in_turn([merged if each.has_http2 else usual for each in self.contenders])
        yield _rate(f"{usual.connections} at once; Go over HTTP/2", runs, ">= 0.8 times")
        yield from _latencies("", runs)

    def syncs(self) -> Iterator[Line]:
        """One request per HPA, as fast as the controller's workers receive the answers."""
        runs: list[list[Run]] = [[] for _ in self.contenders]
        for _ in range(self.repetitions):
            for done, contender in zip(runs, self.contenders, strict=True):
                time.sleep(REST_S)
                done.append(self._run(contender, self._in_new_group(_AS_FAST_AS_POSSIBLE)))
        yield _line(f"{WORKLOADS} HPAs a sync, {SYNC_WORKERS} workers", "s", runs, _took_s, f"<< {SYNC_S:g}")

    def spread_sync(self) -> Iterator[Line]:
        """One request per HPA, spread over the period."""
        runs = [[self._run(each, self._in_new_group(_SYNC))] for each in self.contenders]
        yield from _latencies(f"{WORKLOADS} HPAs over {SYNC_S:g} s", runs)

    def discovery(self, what: str) -> Iterator[Line]:
        """Discovery requests of an aggregator's availability controller, at fixed times over two pipeline ticks."""
        load = Load(AVAILABILITY_CHECKS, 2 * TICK_S, rate_per_s=CHECKS_PER_S, headers=_AGGREGATOR)
        target = f"/apis/{EXTERNAL_GROUP_VERSION}"
        runs = [[self._run(replace(each, target=target), load)] for each in self.contenders]
        yield from _latencies(what, runs)

    def memory(self, what: str) -> Line:
        """The current memory of each process."""
        return Line(what, "MiB", tuple((rss_mib(each.pid),) for each in self.contenders), "<= 100")

    def failures(self) -> Line:
        """The failed requests of all loads so far."""
        return Line("answers other than 2xx", "", tuple((self.wrong[each.name],) for each in self.contenders), "0")

    def _closed_loop_load(self, connections: int, stalled: int) -> Load:
        return Load(
            connections,
            self.seconds,
            stalled=stalled,
            warmup_s=WARMUP_S,
            questions=SELECTORS,
            headers=HPA_HEADERS,
        )

    def _in_new_group(self, load: Load) -> Load:
        self.groups += 1
        return replace(load, headers=(*HPA_HEADERS, ("X-Remote-Group", f"sync-{self.groups}")))

    def _run_in_turn(self, loads: Sequence[Load]) -> Runs:
        """loads: by contender."""
        rounds = [list(map(self._run, self.contenders, loads)) for _ in range(self.repetitions)]
        return list(zip(*rounds, strict=True))

    def _run(self, contender: Contender, load: Load) -> Run:
        cpu_s, began_s = tree_cpu_s(contender.pid), time.perf_counter()
        result = self.generator.run(load, f"https://127.0.0.1:{contender.port}{contender.target}")
        took_s = time.perf_counter() - began_s
        self.wrong[contender.name] += sum(result.errors.values())
        return Run(result, (tree_cpu_s(contender.pid) - cpu_s) / took_s)


def _situation(connections: int, stalled: int) -> str:
    text = counted(connections, "connection")
    return f"{text}, {stalled} stalled besides" if stalled else text


def _rate(what: str, runs: Runs, aim: str) -> Line:
    return _line(what, "requests/s", runs, lambda run: run.result.requests_per_s, aim)


def _latencies(what: str, runs: Runs, aim: str = "") -> Iterator[Line]:
    yield _line(what, "p50 ms", runs, lambda run: run.result.p50_ms)
    yield _line("", "p99 ms", runs, lambda run: run.result.p99_ms, aim)


def _line(what: str, unit: str, runs: Runs, read: Callable[[Run], float], aim: str = "") -> Line:
    return Line(what, unit, tuple(tuple(map(read, each)) for each in runs), aim)


def _took_s(run: Run) -> float:
    return run.result.requests / run.result.requests_per_s
