"""Our server as it runs in a cluster, on loopback: real TLS, real reviews, and the fixture for metrics."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from adapter.apiserver.server import Server
from adapter.apiserver.tls import LiveTls
from adapter.serving.access.access import Access
from adapter.serving.access.cluster import ClusterApi
from adapter.serving.access.reviews import Reviews
from adapter.serving.access.settings import AuthenticationSettings, read_settings
from adapter.serving.access.tokens import Tokens
from adapter.serving.api.documents import Documents
from adapter.serving.api.metrics_api import MetricsApi
from adapter.serving.app import create_app
from conformance import fixture
from conformance.client import HOST, Client
from conformance.cluster import Cluster, run_cluster
from conformance.identities import Identities, issue
from conformance.recording import Row


@dataclass(frozen=True, slots=True)
class Running:
    """A running server with a client for it. cluster: the stand-in that reviews its requests."""

    client: Client
    cluster: Cluster
    identities: Identities


@contextmanager
def run_server(rows: Sequence[Row] = ()) -> Iterator[Running]:
    """Run the server while the block lasts. rows: the recording whose failures the fixture repeats."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        identities = issue(Path(folder))
        cluster = stack.enter_context(run_cluster(identities))
        server = _server(identities, cluster, rows, stack)
        yield Running(Client(server.port, cache(identities.context)), cluster, identities)


def _server(identities: Identities, cluster: Cluster, rows: Sequence[Row], stack: ExitStack) -> Server:
    settings, access = _access(cluster, stack)
    tls = LiveTls(*identities.serving, settings.ca_pem)
    external, custom = fixture.ExternalFixture(fixture.failures(rows)), fixture.CustomFixture()
    documents = Documents(
        lambda: (external.names(), custom.metrics()),
        fixture.probes(),
        expositions={"/metrics": lambda: b""},
        port=lambda: server.port,
    )
    api = MetricsApi(external, custom, access, documents)
    server = Server(create_app(api), HOST, 0, tls)
    server.start()
    stack.callback(server.stop)
    return server


def _access(cluster: Cluster, stack: ExitStack) -> tuple[AuthenticationSettings, Access]:
    api = ClusterApi(cluster.kubeconfig)
    stack.callback(api.close)
    settings = AuthenticationSettings(partial(read_settings, api))
    settings.start()
    stack.callback(settings.stop)
    access = Access(settings, Tokens(api), Reviews(api))
    stack.callback(access.close)
    return settings, access
