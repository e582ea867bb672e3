"""The embedded fleet: jobs simulated in real time. They serve their counts on loopback and scale as under an HPA."""

import threading
from collections import deque
from collections.abc import Callable, Mapping

import httpx
import msgspec
import numpy as np
import pyarrow as pa

from adapter.apiserver.access import LoopbackAccess
from adapter.apiserver.answer import Answer
from adapter.apiserver.app import create_app
from adapter.apiserver.request import Request
from adapter.apiserver.server import Server
from adapter.apiserver.status import bad_request
from adapter.simulator import demo, fluid, hpa
from adapter.sources.sample_table import SampleTable

HISTORY_S = 3600
PAST_S = 120  # simulated before the start, so that rates are known at the first tick
SYNC_S = 5.0  # the HPA's own 15 s would show too little in two minutes
ASK_DEADLINE_S = 2.0
BEHAVIOR = hpa.Behavior(
    up=hpa.Direction(
        window_s=0,
        policies=(
            hpa.RatePolicy(kind="Pods", value=4, period_s=5),
            hpa.RatePolicy(kind="Percent", value=100, period_s=5),
        ),
    ),
    down=hpa.Direction(window_s=15, policies=(hpa.RatePolicy(kind="Percent", value=100, period_s=5),)),
)
HPA = hpa.Hpa(min_workers=demo.MIN_WORKERS, max_workers=demo.MAX_WORKERS, behavior=BEHAVIOR)


class SimulatedFleet:
    """The demo workloads of one seed. Equal seeds, clocks and scaling give equal fleets. clock: Unix seconds."""

    def __init__(self, seed: int, clock: Callable[[], float]) -> None:
        self._seed = seed
        self._clock = clock
        self._job_model = demo.job_model()
        self._start_s = int(clock())
        self._now_s = self._start_s - PAST_S
        self._state = fluid.initial_state(np.array([workload.workers for workload in demo.WORKLOADS]), demo.PARTITIONS)
        self._past: deque[tuple[int, fluid.JobState]] = deque([(self._now_s, self._state)], maxlen=HISTORY_S)
        self._memory = hpa.Memory()
        self._counts = {f"{demo.NAMESPACE}/{workload.name}": [workload.workers] for workload in demo.WORKLOADS}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._server: Server | None = None
        self.advance()

    @property
    def url(self) -> str:
        """The address that serves /samples; available after start()."""
        if self._server is None:
            raise RuntimeError("the fleet has no address before start()")
        return f"http://127.0.0.1:{self._server.port}"

    def worker_counts(self) -> dict[str, tuple[int, ...]]:
        """Workload -> its worker counts in order, the one at the start first."""
        with self._lock:
            return {workload: tuple(counts) for workload, counts in self._counts.items()}

    def start(self) -> None:
        """Step in real time and serve /samples on a free loopback port."""
        self._server = Server(create_app({"/samples": self._answer}, access=LoopbackAccess()), "127.0.0.1", 0)
        self._server.start()
        self._run(self._step)

    def follow(self, api_url: str) -> None:
        """Scale by the metrics of the API at this address every SYNC_S seconds, until stop()."""
        self._run(lambda: self._follow(api_url))

    def stop(self) -> None:
        """End every thread and close the port. Idempotent."""
        self._stopped.set()
        if self._server is not None:
            self._server.stop()
        for thread in self._threads:
            thread.join()
        self._server, self._threads = None, []

    def advance(self) -> None:
        """Simulate every whole second up to the clock."""
        with self._lock:
            now_s = int(self._clock())
            while self._now_s < now_s:
                load = demo.load(self._seed, self._now_s - self._start_s)
                self._state = fluid.step(self._job_model, self._state, load, 1.0)
                self._now_s += 1
                self._past.append((self._now_s, self._state))

    def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        """The samples at start_s, start_s + step_s, ... end_s, as far as the history of the fleet reaches."""
        self.advance()
        with self._lock:
            past = tuple(self._past)
        ticks = range(start_s, end_s + 1, step_s)
        table = SampleTable()
        for at_s, state in past:
            if at_s in ticks:
                _add_second(table, at_s, at_s - self._start_s, state)
        return table.finish()

    def sync(self, ask: Callable[[str], int | None]) -> None:
        """Run the HPA once for all workloads. ask: name -> its required_workers, None for no number."""
        answers = [ask(name) for name in demo.NAMES]
        required = np.array([np.nan if answer is None else float(answer) for answer in answers])
        self.advance()
        with self._lock:
            present = self._state.spec_workers
            proposal = hpa.by_average_value(required, 1.0, present, hpa.EXACT)
            workers, self._memory = hpa.recommend(HPA, self._memory, present, proposal, self._now_s)
            for index in np.flatnonzero(workers != present):
                self._counts[f"{demo.NAMESPACE}/{demo.NAMES[index]}"].append(int(workers[index]))
            self._state = fluid.rescale(self._job_model, self._state, workers)

    def _answer(self, request: Request) -> Answer:
        """GET /samples?start=&end=&step= (whole seconds) -> one row a line, as JSON."""
        rows = self.samples(*_window(request.query)).to_pylist()
        return Answer(200, msgspec.json.Encoder().encode_lines(rows), "application/x-ndjson")

    def _run(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _step(self) -> None:
        while not self._stopped.wait(1.0):
            self.advance()

    def _follow(self, api_url: str) -> None:
        # trust_env: the API is on loopback, which a proxy of the environment does not reach.
        with httpx.Client(base_url=api_url, timeout=ASK_DEADLINE_S, trust_env=False) as client:
            while not self._stopped.wait(SYNC_S):
                self.sync(lambda name: None if self._stopped.is_set() else required_workers(client, name))


def required_workers(client: httpx.Client, name: str) -> int | None:
    """required_workers of one demo workload, requested as the HPA does; None without a number."""
    path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{demo.NAMESPACE}/required_workers"
    try:
        answer = client.get(path, params={"labelSelector": f"workload={name}"}).raise_for_status()
        (item,) = msgspec.json.decode(answer.content, type=_ValueList).items
        return int(item.value)
    except (httpx.HTTPError, msgspec.DecodeError, ValueError):
        return None  # the HPA freezes on any invalid answer


class _Value(msgspec.Struct):
    value: str


class _ValueList(msgspec.Struct):
    items: list[_Value]


def _add_second(table: SampleTable, at_s: int, t_s: int, state: fluid.JobState) -> None:
    """Add the samples of one second, in whole records as a broker counts them."""
    for index, name in enumerate(demo.NAMES):
        workload = f"{demo.NAMESPACE}/{name}"
        if name == "flaky-metrics" and demo.has_fault(name, t_s):
            table.add_fault(at_s, workload, "its exporter does not answer (part of the demonstration)")
        else:
            table.add(at_s, workload, _counts(index, state))
        table.add(at_s, workload, _workers(index, state))


def _counts(index: int, state: fluid.JobState) -> dict[str, float]:
    appended = round(state.appended_records[index])
    processed = min(round(state.processed_records[index]), appended)
    counts = {
        "appended_records": float(appended),
        "processed_records": float(processed),
        "backlog_records": float(appended - processed),
        "partitions": float(demo.PARTITIONS),
    }
    utilization_ratio = round(float(state.utilization_ratio[index]), 6)
    # A restarting job reports no CPU; that is unknown, not 0.
    return counts if np.isnan(utilization_ratio) else counts | {"utilization_ratio": utilization_ratio}


def _workers(index: int, state: fluid.JobState) -> dict[str, float]:
    return {
        "spec_workers": float(state.spec_workers[index]),
        "workers": float(state.spec_workers[index]),
        "ready_workers": float(state.ready_workers[index]),
        "min_workers": float(demo.MIN_WORKERS),
        "max_workers": float(demo.MAX_WORKERS),
    }


def _window(query: Mapping[str, str]) -> tuple[int, int, int]:
    try:
        start_s, end_s, step_s = (int(query[name]) for name in ("start", "end", "step"))
    except (KeyError, ValueError):
        raise bad_request("start, end and step are required, in whole seconds") from None
    if step_s < 1:
        raise bad_request(f"step must be at least 1 s, got {step_s}")
    return start_s, end_s, step_s
