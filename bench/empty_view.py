"""A Flask application with one constant answer on the same server: the limit of what `serve` can reach.

It has one route, no authentication and no metrics. Its TLS, its HTTP and its worker thread are those of `serve`.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flask import Flask, Response

from adapter.apiserver.server import Server
from adapter.apiserver.tls import LiveTls
from bench.comparison import Contender
from bench.processes import free_port
from bench.replica import path, running_server
from conformance.identities import Identities

_BODY = b'{"kind":"ExternalMetricValueList","apiVersion":"external.metrics.k8s.io/v1beta1","metadata":{},"items":[]}'


@contextmanager
def empty_view(identities: Identities) -> Iterator[Contender]:
    """Run the server while the block lasts. Raises RuntimeError with its output if it does not start."""
    port = free_port()
    command = [sys.executable, "-m", "bench.empty_view", str(port), *identities.serving]
    with running_server(command, port, identities, path(0)) as pid:
        yield Contender("empty Flask view", pid, port, path("%d"))


def _main(port: str, certificate: str, key: str) -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    app = Flask(__name__, static_folder=None)
    app.add_url_rule(path(0).partition("?")[0], view_func=lambda: Response(_BODY, content_type="application/json"))
    server = Server(app, "127.0.0.1", int(port), LiveTls(certificate, key))
    server.start()
    threading.Event().wait()


if __name__ == "__main__":
    _main(*sys.argv[1:])
