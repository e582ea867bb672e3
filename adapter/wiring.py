"""Assemble each role of the program from its parts."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from adapter import config as configuration
from adapter.apiserver.app import create_app
from adapter.apiserver.server import Server
from adapter.apiserver.tls import LiveTls
from adapter.config import ChartValues, Check, Config, hints
from adapter.core.messages import sentence
from adapter.pipeline.java import check_java
from adapter.pipeline.job import StreamingJob
from adapter.pipeline.session import Session, settings, with_retries
from adapter.serving.routes import Readiness, monitoring_routes, publisher_routes
from adapter.serving.snapshots.snapshot import Snapshot
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.telemetry import Telemetry, build_info, certificate_gauges, server_gauges
from adapter.serving.ui.view import Changes
from adapter.sources import kafka, needs, precedence, prometheus_plan, query_hints
from adapter.stop_signals import stop_event, wait_for_stop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BACKTEST_MEMORY = "1g"  # of the JVM: results and traces are small, the arrays are in Python's workers
CHECKS = (prometheus_plan.check, kafka.check, needs.check)
HINTS_ON_HISTORY = (
    needs.hints,
    kafka.hints,
    query_hints.hints,
    *hints.ON_HISTORY,
    precedence.unread_sources,
    precedence.shared_inputs,
)
HINTS = (*HINTS_ON_HISTORY, *hints.OF_FUTURE)

log = structlog.get_logger(__name__)


def load(path: Path, warnings: Sequence[Check] = HINTS) -> Config:
    """The configuration in a file, with every check of every part. Raises ConfigError with all faults."""
    return configuration.load(path, CHECKS, warnings)


def load_values(path: Path, warnings: Sequence[Check] = HINTS) -> ChartValues | None:
    """The values in a values file of the chart; None for another file. Raises ConfigError with all faults."""
    return configuration.load_chart_values(path, CHECKS, warnings)


def load_for_history(path: Path) -> Config:
    """The configuration in either kind of file, without warnings that concern the future. Raises ConfigError."""
    values = load_values(path, HINTS_ON_HISTORY)
    return load(path, HINTS_ON_HISTORY) if values is None else values.config


def pipeline(config: Config, master: str | None = None) -> None:
    """The `pipeline` role: decide every tick and publish the snapshot, until SIGTERM, SIGINT or SIGHUP.

    master: Spark's master; None runs in this process. Raises ConfigError, SetupError, CheckpointError or JvmError.
    """
    store = SnapshotStore()
    settings = config.pipeline
    telemetry = Telemetry(store, workloads=True)
    # Without a snapshot there is nothing to serve, however long the first one takes.
    readiness = Readiness(lambda: store.current is not None, patience_s=inf)

    changes = Changes()

    def publish(snapshot: Snapshot) -> None:
        store.put(snapshot)
        for decision in changes.since_last(snapshot):
            log.info(sentence(decision), workload=decision.workload, reason=decision.reason.value)

    job = StreamingJob(config, configuration.rule_book(config), publish)
    monitoring = monitoring_routes(telemetry, readiness, {"publishing": job.is_alive}, settings.token_file)
    app = create_app({**publisher_routes(store, job.publisher.record, settings.token_file), **monitoring})
    server = Server(app, settings.host, settings.port, _pipeline_tls(config, telemetry))
    for gauges in (build_info("pipeline"), job.gauges, server_gauges(server)):
        telemetry.add(gauges)
    with stop_event() as stop, ExitStack() as started:
        server.start()
        started.callback(server.stop)
        log.info("the snapshot is published here", host=settings.host, port=server.port)
        if not job.start(stop, master):
            return
        started.callback(job.stop)
        wait_for_stop(stop)


def _pipeline_tls(config: Config, telemetry: Telemetry) -> LiveTls | None:
    """The pipeline's TLS, or None for plain HTTP with a warning.

    Raises ConfigError for unreadable files.
    """
    settings = config.pipeline
    if settings.cert_file is None or settings.key_file is None:
        log.warning("the snapshot is published over plain HTTP to everybody; set cert_file, key_file and token_file")
        return None
    if settings.token_file is None:
        log.warning("every client may read the snapshot, the explanations and /metrics; set pipeline.token_file")
    tls = LiveTls(settings.cert_file, settings.key_file)
    telemetry.add(certificate_gauges(tls.certificate_ends_at_s))
    return tls


@contextmanager
def spark(master: str | None, folder: Path) -> "Iterator[SparkSession]":
    """A Spark session for a backtest, whose log goes into the folder.

    master: Spark's master; None runs in this process on every core. A task whose worker dies is tried again.
    Raises SetupError.
    """
    check_java()
    wanted = settings(BACKTEST_MEMORY, with_retries(master or "local[*]"), 1)
    with closing(Session(wanted, str(folder / "spark.log"))) as session:
        yield session.spark
