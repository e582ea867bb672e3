"""`serve` under heads of many fields, idle and slow connections: its memory, and the answers of another client.

Real: the process, its TLS, authentication and authorization. Stand-ins: the cluster's API and the pipeline.
"""

import resource
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPSConnection

from bench.figures import Figure
from bench.machine import rss_mib
from bench.replica import path, replica, status
from conformance.identities import NO_CERTIFICATE, Identities

AIM = "<= 130 MiB"  # until the last stage
FOR_S = 5.0  # of each stage
OPEN_FILES = 8_192
_UNFINISHED = b"GET / HTTP/1.1\r\nHost: x\r\n"
# What is sent on each connection, and on how many; the connections of a stage stay open in the next ones.
STAGES = (
    ("160 heads of 10 000 fields", 160, _UNFINISHED + b"ab:\r\n" * 10_000),
    ("3000 idle connections besides", 3_000, b""),
    ("500 unfinished heads besides", 500, _UNFINISHED + b"X-Slow: "),
    ("500 unfinished heads of 30 KB besides", 500, _UNFINISHED + b"X-Large: " + b"x" * 30_000),
)


def figures() -> Iterator[Figure]:
    """Memory in MiB after each stage, and milliseconds to an answer of the aggregator meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, OPEN_FILES)), hard))
    with replica() as ours, ExitStack() as stack:
        client = ours.identities.context(NO_CERTIFICATE)
        yield Figure("memory (RSS) before", (rss_mib(ours.pid),), "MiB")
        for name, count, sent in STAGES:
            attack = threading.Thread(target=_connect, args=(stack, client, ours.port, count, sent))
            attack.start()
            took_ms = tuple(_answer_times_ms(ours.identities, ours.port, attack))
            yield Figure(f"memory (RSS) with {name}", (rss_mib(ours.pid),), "MiB", AIM)
            yield Figure("answers of another client meanwhile", took_ms, "ms")


def _connect(stack: ExitStack, trust: ssl.SSLContext, port: int, count: int, sent: bytes) -> None:
    for _ in range(count):
        with suppress(OSError):  # the server closes malformed and excess connections
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
            connection = stack.enter_context(trust.wrap_socket(plain, server_hostname="127.0.0.1"))
            connection.sendall(sent)


def _answer_times_ms(identities: Identities, port: int, attack: threading.Thread) -> Iterator[float]:
    """Milliseconds of each request until FOR_S after the end of the attack. Raises RuntimeError unless it is a 200."""
    connection = HTTPSConnection("127.0.0.1", port, context=identities.context("proxy"), timeout=30)
    ends_s: float | None = None
    while ends_s is None or time.monotonic() < ends_s:
        if ends_s is None and not attack.is_alive():
            ends_s = time.monotonic() + FOR_S
        began_s = time.perf_counter()
        if (code := status(connection, path(0))) != 200:
            raise RuntimeError(f"expected 200 during the attack, got {code}")
        yield (time.perf_counter() - began_s) * 1000
        time.sleep(0.02)
    connection.close()
