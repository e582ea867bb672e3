"""Our server as it runs in a cluster, on loopback: real TLS, real reviews, and the fixture for metrics."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from adapter.apiserver.access import ClusterAccess
from adapter.apiserver.answer import exposition
from adapter.apiserver.app import create_app
from adapter.apiserver.authentication_settings import AuthenticationSettings, read_settings
from adapter.apiserver.cluster_api import ClusterApi
from adapter.apiserver.reviews import Reviews
from adapter.apiserver.server import Server
from adapter.apiserver.tls import LiveTls
from adapter.apiserver.tokens import Tokens
from adapter.serving.routes import api_routes
from conformance import fixture
from conformance.client import HOST, Client
from conformance.cluster import Cluster, authentication_config, run_cluster
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
        cluster = stack.enter_context(run_cluster(authentication_config(identities), identities.folder))
        server = _server(identities, cluster, rows, stack)
        yield Running(Client(server.port, cache(identities.context)), cluster, identities)


def _server(identities: Identities, cluster: Cluster, rows: Sequence[Row], stack: ExitStack) -> Server:
    settings, access = _access(cluster, stack)
    tls = LiveTls(*identities.serving, settings.ca_pem)
    external, custom = fixture.ExternalFixture(fixture.failures(rows)), fixture.CustomFixture()
    routes = {**api_routes(external, custom), **fixture.probes(), "/metrics": exposition(bytes)}
    server = Server(create_app(routes, access=access), HOST, 0, tls)
    server.start(access.on_rejected)
    stack.callback(server.stop)
    return server


def _access(cluster: Cluster, stack: ExitStack) -> tuple[AuthenticationSettings, ClusterAccess]:
    api = ClusterApi(cluster.kubeconfig)
    stack.callback(api.close)
    settings = AuthenticationSettings(partial(read_settings, api))
    settings.start()
    stack.callback(settings.stop)
    access = ClusterAccess(settings, Tokens(api), Reviews(api))
    stack.callback(access.close)
    return settings, access
