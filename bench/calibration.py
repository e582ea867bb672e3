"""Compare the simulator with measured runs of one job: Flink 1.17 on Kubernetes for 18 hours, at most 24 workers.

The input is replayed, the measured CPU gives the capacity of a worker, and each run is simulated with the corresponding
profile and baseline. `python -m bench.calibration` prints the errors.
"""

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from adapter.backtest.trace import read, resample
from adapter.core.samples import Array
from adapter.simulator import closed_loop
from adapter.simulator.profiles import PROFILES, Profile
from adapter.simulator.score import scores
from adapter.simulator.world import SimulatedJob

TRACES = Path(__file__).parents[1] / "tests" / "data" / "traces"
WORKERS = 24
# From one-minute means of the static run: CPU = 0.067 + 8.93e-5 * (events/s of a worker); a worker is full at CPU 1.
IDLE_CPU_RATIO, CPU_PER_EVENT = 0.067, 8.93e-5
EVENTS_PER_S = (1 - IDLE_CPU_RATIO) / CPU_PER_EVENT
INPUT_RATIO = 3.02  # of the measured input to the trace
ROW_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The compared numbers of a run; delays only while the job runs."""

    mean_workers: float
    worker_hours: float
    rescales: float  # changes of the worker count, which flickers in measurements
    pauses: float  # in measurements, only those that contain a whole sample of 15 s
    paused_pct: float
    over_10s_pct: float
    over_60s_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A measured run, and the profile and policy that simulate it."""

    name: str
    file: str  # identifying part of its file name
    policy: str
    profile: Profile


def _profile(name: str) -> Profile:
    """A profile of PROFILES for this job, whose metrics are neither late nor missing."""
    return replace(
        PROFILES[name],
        workers=WORKERS,
        max_workers=WORKERS,
        partitions=WORKERS,
        idle_cpu_ratio=IDLE_CPU_RATIO,
        missing_ratio=0.0,
        blackout_s=0.0,
    )


_REACTIVE = _profile("flink-reactive")
_COLD = replace(_REACTIVE, warm_up_ratio=1.0, warm_up_s=0.0)
# The median of the delay's peaks at changes is 5 to 6 s; metrics-server's own default is a sample a minute.
_CAPTURED = replace(_COLD, pause_up_s=6.0, pause_down_s=6.0, cpu_window_s=60.0)
RUNS = (
    MeasuredRun(name="static 24", file="baseline", policy="static-peak", profile=_REACTIVE),
    MeasuredRun(name="HPA CPU 35 %", file="reactive", policy="hpa-cpu-35", profile=_REACTIVE),
    MeasuredRun(name="HPA CPU 35 %, no warm-up", file="reactive", policy="hpa-cpu-35", profile=_COLD),
    MeasuredRun(name="HPA CPU 35 %, as captured", file="reactive", policy="hpa-cpu-35", profile=_CAPTURED),
    MeasuredRun(name="Flink's operator", file="operator", policy="flink-demeter", profile=_profile("flink-operator")),
)


def measured_figures(run: MeasuredRun) -> Figures:
    """The measured numbers; the job is down in rows without throughput."""
    with (TRACES / f"measured/demeter_ads_{run.file}_15s.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    throughput, workers, latency_ms = (_column(rows, name) for name in ("throughput", "task_managers", "latency"))
    down = ~(throughput > 0)
    mean_workers = float(np.nan_to_num(workers).mean())
    return Figures(
        mean_workers=mean_workers,
        worker_hours=mean_workers * len(rows) * ROW_S / 3600,
        rescales=float(np.count_nonzero(np.diff(workers[workers > 0]))),
        pauses=float(np.count_nonzero(down[1:] & ~down[:-1])),
        paused_pct=100 * float(down.mean()),
        over_10s_pct=100 * float((latency_ms[~down] > 10_000).mean()),
        over_60s_pct=100 * float((latency_ms[~down] > 60_000).mean()),
    )


def simulated_figures() -> list[Figures]:
    """The simulated numbers of the same runs."""
    events_per_s = resample(read(TRACES / "dsp_ads_18h_1s.csv")) * INPUT_RATIO
    rate = events_per_s / EVENTS_PER_S * _REACTIVE.worker_capacity_records_per_s
    found = scores(closed_loop.run([SimulatedJob(rate, 0, run.policy, run.profile, 0) for run in RUNS]).tally)
    columns = {"pauses": found["rescales"]} | {of.name: found[of.name] for of in fields(Figures) if of.name in found}
    return [Figures(**{name: float(column[lane]) for name, column in columns.items()}) for lane in range(len(RUNS))]


def table(played: Sequence[Figures]) -> str:
    """A table with a line per run: measured -> simulated. played: the result of simulated_figures()."""
    names = [of.name for of in fields(Figures)]
    lines = ["| run | " + " | ".join(names) + " | error of worker-hours |", "|---" * (len(names) + 2) + "|"]
    for run, there, here in zip(RUNS, map(measured_figures, RUNS), played, strict=True):
        cells = [f"{getattr(there, name):.1f} -> {getattr(here, name):.1f}" for name in names]
        error = 100 * (here.worker_hours / there.worker_hours - 1)
        lines.append(f"| {run.name} | " + " | ".join(cells) + f" | {error:+.0f} % |")
    return "\n".join(lines)


def _column(rows: Sequence[dict[str, str]], name: str) -> Array:
    return np.array([float(row[name] or np.nan) for row in rows])


if __name__ == "__main__":
    sys.stdout.write("measured -> simulated\n" + table(simulated_figures()) + "\n")
