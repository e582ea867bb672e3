"""Everything that is answered without a number: discovery, OpenAPI, version, probes, what Prometheus scrapes."""

from collections.abc import Callable, Mapping, Sequence

from adapter.serving.api import openapi
from adapter.serving.api.custom import ObjectMetric
from adapter.serving.api.discovery import Discovery
from adapter.serving.api.negotiation import takes_aggregated
from adapter.serving.api.openapi import OpenApi
from adapter.serving.api.probes import Probes
from adapter.serving.api.request import Request
from adapter.serving.api.status import Answer, Document, method_not_allowed
from adapter.serving.api.version import PATH as VERSION_PATH
from adapter.serving.api.version import Version

# The external metrics and those of objects.
Listed = tuple[Sequence[str], Sequence[ObjectMetric]]

SLIS = "/metrics/slis"
_ROOT = ("/apis", "/apis/")
EXPOSITION = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"  # Prometheus' text format


class Documents:
    """Answered from memory, and never waited for.

    listed: what discovery lists; new documents are made when it changes. expositions: what Prometheus scrapes, by path.
    port: the one that is listened on.
    """

    def __init__(
        self,
        listed: Callable[[], Listed],
        probes: Probes,
        *,
        expositions: Mapping[str, Callable[[], bytes]],
        port: Callable[[], int],
        version: Version | None = None,
    ) -> None:
        self._listed = listed
        self._probes = probes
        self._expositions = {**expositions, SLIS: probes.findings.exposition}
        self._port = port
        self._version = version or Version()
        self._openapi = OpenApi()
        self._paths = (*probes.paths(), *self._expositions, *openapi.PATHS, VERSION_PATH)
        self._discovery = Discovery((), (), self._paths)

    def answer(self, request: Request) -> Answer | None:
        """The document of a path, or None where there is none."""
        if request.path.startswith("/apis"):
            return self._of_discovery(request)
        # These take every method.
        write = self._expositions.get(request.path)
        if write is not None:
            return Answer(200, body=write(), headers={"Content-Type": EXPOSITION})
        return self._probes.answer(request) or self._openapi.answer(request) or self._version.answer(request)

    def path_list(self, request: Request) -> Answer:
        """Every path that answers: for `/`, and for whoever asks for a path that does not."""
        return self._listing().path_list_answer(200 if request.path in ("", "/", "/index.html") else 404)

    def _of_discovery(self, request: Request) -> Answer | None:
        aggregated = takes_aggregated(request.header("accept")) if request.path in _ROOT else None
        if aggregated is not None and request.method == "GET":
            return self._listing().aggregated_answer(request.header("if-none-match"), aggregated.name)
        document = self._document(request.path)
        if document is None:
            return None
        return Answer(200, document) if request.method == "GET" else method_not_allowed()

    def _document(self, path: str) -> Document | None:
        if path in _ROOT:
            return self._listing().group_list(self._port())
        match path.rstrip("/").split("/"):
            case ["", "apis", group]:
                return self._listing().group(group)
            case ["", "apis", group, version]:
                return self._listing().resource_list(group, version)
        return None

    def _listing(self) -> Discovery:
        external, custom = self._listed()
        if (external, custom) != (self._discovery.external, self._discovery.custom):
            self._discovery = Discovery(external, custom, self._paths)
        return self._discovery
