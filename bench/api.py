"""A `serve` process under the load of an aggregator: its latency over TLS, and its memory.

Real: the process, its TLS, authentication and authorization, and the pull of snapshots. Stand-ins: the cluster's API,
and the pipeline, whose snapshots contain many copies of one decision.
"""

import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPSConnection

from bench.figures import Figure
from bench.machine import rss_mib
from bench.replica import WORKLOADS, path, replica, status

REQUESTS_PER_S = 100
FOR_S = 30
CONNECTIONS = 8


def figures() -> Iterator[Figure]:
    """Milliseconds from a request's due time to its answer, including the client's own time; memory in MiB."""
    with replica() as ours:
        idle_mib = rss_mib(ours.pid)
        took_ms, wrong = measure_load(ours.port, ours.identities.context("proxy"))
        busy_mib = rss_mib(ours.pid)
    yield Figure(f"answers at {REQUESTS_PER_S} requests/s over TLS", took_ms, "ms", "p99 < 10 ms")
    yield Figure("answers other than 200", (wrong,), "", "0")
    yield Figure(f"memory (RSS) with {WORKLOADS} workloads, idle", (idle_mib,), "MiB", "< 100 MiB")
    yield Figure("memory (RSS) after the load", (busy_mib,), "MiB", "< 100 MiB")


def measure_load(port: int, trust: ssl.SSLContext) -> tuple[tuple[float, ...], int]:
    """The milliseconds of each request, and the number of answers other than 200. Raises OSError without an answer.

    Open loop: each request has a due time, whether or not earlier ones were answered.
    """
    took_ms: list[float] = []
    statuses: list[int] = []
    began_s = time.perf_counter() + 0.5

    def ask(first: int) -> None:
        connection = HTTPSConnection("127.0.0.1", port, context=trust)
        for number in range(first, REQUESTS_PER_S * FOR_S, CONNECTIONS):
            due_s = began_s + number / REQUESTS_PER_S
            time.sleep(max(due_s - time.perf_counter(), 0.0))
            statuses.append(status(connection, path(number % WORKLOADS)))
            took_ms.append((time.perf_counter() - due_s) * 1000)
        connection.close()

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(ask, range(CONNECTIONS)))  # raises what a connection raised
    return tuple(took_ms), sum(code != 200 for code in statuses)
