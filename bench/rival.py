"""The Go metrics server on custom-metrics-apiserver: its location, its start and the path of a metric."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adapter.serving.metric_api import EXTERNAL_GROUP_VERSION
from bench.processes import free_port, running, wait_until
from bench.replica import STARTS_WITHIN_S, answers
from conformance.cluster import Cluster
from conformance.identities import Identities

BUILD = "bench/goserver/build.sh"
_METRIC = f"/apis/{EXTERNAL_GROUP_VERSION}/namespaces/bench/my-external-metric"

_LIBRARY = re.compile(r"custom-metrics-apiserver (v\S+)")


@dataclass(frozen=True, slots=True)
class Rival:
    """A running Go server."""

    pid: int
    port: int


def folder() -> Path:
    """The folder into which `make tools` builds both programs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("BACKLOG_ADAPTER_TOOLS") or cache / "backlog-adapter" / "tools") / "goserver"


def version() -> str:
    """The version of the library in the Go module of this tree."""
    found = _LIBRARY.search((Path(__file__).parent / "goserver" / "go.mod").read_text("utf-8"))
    return found[1] if found else "unknown"


def path(workload: object) -> str:
    """The path of one item, with a selector of one term as in replica.path. workload: as there."""
    return f"{_METRIC}?labelSelector=foo+in+(bar,job-{workload})"


@contextmanager
def rival(program: Path, identities: Identities, cluster: Cluster) -> Iterator[Rival]:
    """Run the server while the block lasts. Raises RuntimeError with its output if it does not start."""
    port, out, trust = free_port(), identities.folder / "rival.out", identities.context("proxy")
    certificate, key = identities.serving
    options = {
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "tls-cert-file": certificate,
        "tls-private-key-file": key,
        "lister-kubeconfig": cluster.kubeconfig,
        "authentication-kubeconfig": cluster.kubeconfig,
        "authorization-kubeconfig": cluster.kubeconfig,
    }
    words = [str(program), *(f"--{name}={value}" for name, value in options.items())]
    with running(words, out) as process:
        wait_until(lambda: answers(port, trust, path(0)), process, out, STARTS_WITHIN_S)
        yield Rival(process.pid, port)
