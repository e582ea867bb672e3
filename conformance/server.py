"""This server as it runs in a cluster, on loopback: real TLS, real reviews, and the fixture for a source."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from adapter.serving.access.access import Access
from adapter.serving.access.cluster import ClusterApi
from adapter.serving.access.reviews import Reviews
from adapter.serving.access.settings import AuthenticationSettings, read_settings
from adapter.serving.access.tokens import Tokens
from adapter.serving.api.documents import Documents
from adapter.serving.api.metrics_api import MetricsApi
from adapter.serving.app import create_app
from adapter.serving.front import Front
from adapter.serving.sockets.bridge import of_wsgi
from adapter.serving.sockets.server import Server
from adapter.serving.sockets.tls import LiveTls
from conformance import fixture
from conformance.asking import Caller
from conformance.cluster import Cluster, standing_in
from conformance.given import Given, told_by
from conformance.identities import Identities, issue
from conformance.recording import Row

_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers. caller: who asks it. cluster: what stands in for the one it belongs to."""

    caller: Caller
    cluster: Cluster


@contextmanager
def started(rows: Sequence[Row]) -> Iterator[Running]:
    """The server while the block lasts. rows: it is given what the server of that recording was."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        identities = issue(Path(folder))
        given = told_by(rows)
        cluster = stack.enter_context(standing_in(identities, given.broken_review))
        server = _server(identities, cluster, given, stack)
        yield Running(Caller(server.port, cache(identities.context)), cluster)


def _server(identities: Identities, cluster: Cluster, given: Given, stack: ExitStack) -> Server:
    settings, access = _access(cluster, stack)
    tls = LiveTls(*identities.serving, settings.ca_pem)
    external, custom = fixture.ExternalFixture(given.failures), fixture.CustomFixture()
    documents = Documents(
        lambda: (external.names(), custom.metrics()),
        fixture.probes(),
        expositions={"/metrics": lambda: b""},
        port=lambda: server.port,
        version=given.version,
    )
    api = MetricsApi(external, custom, access, documents)
    front = Front(api, of_wsgi(create_app(api)))
    server = Server(front, _HOST, 0, tls, at_once=front.at_once)
    server.start()
    stack.callback(server.stop)
    stack.callback(external.close)  # before the server stops, which does not wait for a source
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
