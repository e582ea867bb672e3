"""The Go metrics server on custom-metrics-apiserver: its location, its start and the path of a metric."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adapter.serving.metric_api import EXTERNAL_GROUP_VERSION
from bench.comparison import Contender
from bench.load import Generator
from bench.processes import free_port
from bench.replica import Replica, running_server
from bench.tool_folder import tools
from conformance.identities import Identities

BUILD = "bench/goserver/build.sh"
_METRIC = f"/apis/{EXTERNAL_GROUP_VERSION}/namespaces/bench/my-external-metric"

_LIBRARY = re.compile(r"custom-metrics-apiserver (v\S+)")


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
def go_server(program: Path, ours: Replica) -> Iterator[Contender]:
    """Run the server while the block lasts. Raises RuntimeError with its output if it does not start."""
    port = free_port()
    with running_server([str(program), *secure_serving(port, ours)], port, ours.identities, path(0)) as pid:
        yield Contender("Go", pid, port, path("%d"), has_http2=True)


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
