"""The Go metrics server on custom-metrics-apiserver: its location, its start and the path of a metric."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adapter.serving.metric_api import EXTERNAL_GROUP_VERSION
from bench.load import Generator
from bench.processes import free_port, running, wait_until
from bench.replica import STARTS_WITHIN_S, Replica, answers
from bench.tool_folder import tools
from conformance.identities import Identities

BUILD = "bench/goserver/build.sh"
_METRIC = f"/apis/{EXTERNAL_GROUP_VERSION}/namespaces/bench/my-external-metric"

_LIBRARY = re.compile(r"custom-metrics-apiserver (v\S+)")


@dataclass(frozen=True, slots=True)
class GoServer:
    """A running Go server."""

    pid: int
    port: int


def folder() -> Path:
    """The folder of the Go server and the load generator."""
    return tools() / "goserver"


def load_generator(identities: Identities) -> Generator:
    """The client of every comparison, with the certificate of the front proxy."""
    return Generator(folder() / "load", identities.folder / "proxy.pem", identities.folder / "proxy.key")


def version() -> str:
    """The version of the library in the Go module of this tree."""
    found = _LIBRARY.search((Path(__file__).parent / "goserver" / "go.mod").read_text("utf-8"))
    return found[1] if found else "unknown"


def path(workload: object) -> str:
    """The path of one item, with a selector of one term as in replica.path. workload: as there."""
    return f"{_METRIC}?labelSelector=foo+in+(bar,job-{workload})"


@contextmanager
def go_server(program: Path, ours: Replica) -> Iterator[GoServer]:
    """Run the server while the block lasts. Raises RuntimeError with its output if it does not start."""
    port, out, trust = free_port(), ours.identities.folder / "go-server.out", ours.identities.context("proxy")
    with running([str(program), *secure_serving(port, ours)], out) as process:
        wait_until(lambda: answers(port, trust, path(0)), process, out, STARTS_WITHIN_S)
        yield GoServer(process.pid, port)


def secure_serving(port: int, ours: Replica) -> list[str]:
    """The options of a server on custom-metrics-apiserver: its port, and the certificate and cluster of `serve`."""
    certificate, key = ours.identities.serving
    options = {
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "tls-cert-file": certificate,
        "tls-private-key-file": key,
        "lister-kubeconfig": ours.cluster.kubeconfig,
        "authentication-kubeconfig": ours.cluster.kubeconfig,
        "authorization-kubeconfig": ours.cluster.kubeconfig,
    }
    return [f"--{name}={value}" for name, value in options.items()]
