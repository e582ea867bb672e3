"""`run`: the whole product in the foreground on loopback, on the embedded fleet or on real sources."""

import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from math import inf
from pathlib import Path

import structlog
from rich.console import Console, Group
from rich.live import Live

from adapter import config as configuration
from adapter.apiserver.access import LOOPBACK, LoopbackAccess
from adapter.apiserver.app import create_app
from adapter.apiserver.server import Server
from adapter.config import Config
from adapter.core.messages import sentence
from adapter.errors import SetupError
from adapter.pipeline.checkpoint import log_of
from adapter.pipeline.job import StreamingJob
from adapter.serving.accounting import Accounting
from adapter.serving.routes import Readiness, explain_routes, metric_routes, monitoring_routes
from adapter.serving.snapshots.records import RecordOf
from adapter.serving.snapshots.snapshot import Snapshot
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.telemetry import Telemetry, build_info, server_gauges
from adapter.serving.ui import terminal
from adapter.serving.ui.history import History
from adapter.serving.ui.page import page_routes
from adapter.serving.ui.view import Changes
from adapter.simulator import demo
from adapter.simulator.fleet import SimulatedFleet
from adapter.stop_signals import SPARK_STOPS, stop_event

SEED = 1
# The rules are short, so that two minutes show every kind of disturbance, and scale-downs.
_EMBEDDED = """
sources:
  fleet: {{kind: trace, url: "{url}", deadline_s: 1}}
workloads:
{workloads}
rules:
  {{rate_window_s: 10, settle_s: 6, stale_after_s: 6, error_after_s: 20, max_workers: 12, time_to_reduce_backlog_s: 20,
   backlog_time_target_s: 20, rescale_pause_s: 2, warm_up_s: 6, worker_start_s: 3, down_window_s: 20,
   cooldown_down_s: 20, rescale_worth_s: 6, latch_s: 30}}
timing: {{tick_s: 2, history_s: 30}}
pipeline: {{checkpoint: "{checkpoint}"}}
"""


def run(config: Config | None, port: int, for_s: float | None) -> None:
    """Run until the stop signal, or for `for_s`. Raises SetupError, CheckpointError or JvmError.

    config: None is the embedded fleet. port: of the API and the page on loopback; 0 is any free one.
    """
    console = Console()
    began_s = time.monotonic()
    with stop_event(SPARK_STOPS) as stop, ExitStack() as started:
        fleet = None
        if config is None:
            fleet = SimulatedFleet(SEED, time.time)
            fleet.start()
            started.callback(fleet.stop)
            config = _embedded(fleet.url, _scratch(started))
        view = _View(console, port)
        job = StreamingJob(config, configuration.rule_book(config), view.publish)
        view.record_of = job.publisher.record
        view.telemetry.add(job.gauges)
        view.server.start()
        started.callback(view.server.stop)
        address = f"http://{LOOPBACK}:{view.server.port}"
        view.print_line(f"page and API on {address} (loopback only, no authentication); starting Spark ...")
        if not job.start(stop):
            return
        started.callback(job.stop)
        ends_s = inf if for_s is None else began_s + for_s

        def follow() -> None:
            view.print_line(f"first decision after {time.monotonic() - began_s:.1f} s")
            if fleet is not None:  # before it, its HPA would get 503s
                fleet.follow(address)

        decided = view.watch(stop, ends_s, follow)
        ran_s = min(time.monotonic(), ends_s) - began_s  # without the time that the end itself takes
        view.print_line(terminal.summary(view.snapshot(), fleet.worker_counts() if fleet else {}, ran_s))
        if not (decided or stop.is_set()):
            raise SetupError(_without_decision(ends_s - began_s, Path(log_of(config))))


class _View:
    """The user interface: the page, the API, and the live table, all of the newest snapshot."""

    def __init__(self, console: Console, port: int) -> None:
        self.store = SnapshotStore()
        self._history = History()
        self._console = console
        self._first = threading.Event()
        self._changes = Changes()
        self.telemetry = Telemetry(self.store, workloads=True)
        self.record_of: RecordOf = lambda workload: None  # of the streaming job, which starts later
        readiness = Readiness(lambda: self.store.current is not None)
        routes = {
            **metric_routes(self.store),
            **monitoring_routes(self.telemetry, readiness),
            **explain_routes(self.store, lambda workload: self.record_of(workload)),
            **page_routes(self.snapshot, self._history, self.store.now_s),
        }
        observe = Accounting(self.telemetry, structlog.get_logger("access")).record
        app = create_app(routes, access=LoopbackAccess(), observe=observe)
        self.server = Server(app, LOOPBACK, port)
        self.telemetry.add(build_info("run"))
        self.telemetry.add(server_gauges(self.server))

    def snapshot(self) -> Snapshot | None:
        """The newest snapshot."""
        held = self.store.current
        return held.snapshot if held else None

    def print_line(self, text: str) -> None:
        """Print plain text; its brackets are no markup. A pipe gets whole lines."""
        self._console.print(text, soft_wrap=not self._console.is_terminal, markup=False, highlight=False)

    def publish(self, snapshot: Snapshot) -> None:
        """Called by the pipeline once a tick."""
        self.store.put(snapshot)
        self._history.add(snapshot)
        decided = any(entry.decision.required_workers is not None for entry in snapshot.entries)
        if decided and time.time() - snapshot.at_s < snapshot.error_after_s:
            self._first.set()

    def watch(self, stop: threading.Event, ends_s: float, at_first: Callable[[], None]) -> bool:
        """Show the table until the stop signal or the end; without a terminal, print one line for each change.

        at_first: called after the first decision. Returns whether there was one.
        """
        decided = False
        with self._live() if self._console.is_terminal else nullcontext():
            while not (stop.wait(0.2) or time.monotonic() >= ends_s):
                if self._first.is_set() and not decided:
                    decided = True
                    at_first()
                if not self._console.is_terminal:
                    self._print_changes()
        return decided

    def _live(self) -> Live:
        # Lines of the log that go to the same terminal must stand above the table.
        log_shown = sys.stderr.isatty()
        return Live(console=self._console, refresh_per_second=2, redirect_stderr=log_shown, get_renderable=self._table)

    def _table(self) -> Group:
        return terminal.table(self._console, self.snapshot(), self.store.now_s())

    def _print_changes(self) -> None:
        snapshot = self.snapshot()
        for decision in self._changes.since_last(snapshot) if snapshot else ():
            at = time.strftime("%H:%M:%S", time.localtime(decision.at_s))
            self.print_line(f"{at} {decision.workload} {decision.reason}: {sentence(decision)}")


def _embedded(url: str, checkpoint: Path) -> Config:
    workloads = "\n".join(
        f"  - {{namespace: {demo.NAMESPACE}, name: {name}, read: [{{source: fleet}}]}}" for name in demo.NAMES
    )
    text = _EMBEDDED.format(url=url, checkpoint=checkpoint, workloads=workloads)
    return configuration.parse(text, "the embedded fleet")


def _without_decision(for_s: float, log: Path) -> str:
    remedy = "fix any fault above, or give --for more time: Spark starts in 20 s on a free machine"
    has_errors = b"error" in log.read_bytes().lower()  # not its size: Spark always writes some lines
    cause = f"; see the errors in {log}" if has_errors else ""
    return f"expected a decision within {for_s:g} s, got none; {remedy}{cause}"


def _scratch(started: ExitStack) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="backlog-adapter-"))

    def remove(_: object, error: BaseException | None, *__: object) -> None:
        if str(folder) not in str(error):  # otherwise the error names Spark's log
            shutil.rmtree(folder, ignore_errors=True)

    started.push(remove)
    return folder
