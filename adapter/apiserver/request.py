"""One HTTP request: the parts that an answer depends on."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from adapter.apiserver.cache import cache
from adapter.apiserver.status import bad_request

# (name in lower case, value) in their order, a name as often as it was sent. WSGI joins repeated headers with commas,
# which group names may contain: "a,system:masters" would become two groups.
Headers = tuple[tuple[bytes, bytes], ...]

_MOST_PARAMETERS = 100


class Request(msgspec.Struct, frozen=True):
    """A request.

    path: percent-decoded. query: the first value of each parameter. certificate: of the client, DER, verified in the
    handshake; None without one.
    """

    method: str
    path: str
    query_string: str
    headers: Headers
    certificate: bytes | None = None

    @property
    def query(self) -> Mapping[str, str]:
        """The first value of each parameter. Raises StatusError (400)."""
        return parse_query(self.query_string)

    @property
    def uri(self) -> str:
        """Path and query."""
        return f"{self.path}?{self.query_string}" if self.query_string else self.path

    def header(self, name: bytes) -> str:
        """The first value of a header, "" without it. name: in lower case."""
        for key, value in self.headers:
            if key == name:
                return value.decode("latin-1").strip()
        return ""


def from_environ(environ: Mapping[str, Any]) -> Request:
    """Read a request from a WSGI environment with the scope of an ASGI server."""
    path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
    scope = environ["asgi.scope"]
    headers = tuple(map(tuple, scope["headers"]))
    # The key is the one of uvicorn's pull request 3132.
    certificate = scope.get("extensions", {}).get("tls", {}).get("client_cert")
    return Request(environ["REQUEST_METHOD"], path, environ.get("QUERY_STRING", ""), headers, certificate)


@cache(entries=4096, longest=512)
def parse_query(query: str) -> Mapping[str, str]:
    """The first value of each parameter. Raises StatusError (400)."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="replace", max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise bad_request(f"the query must have at most {_MOST_PARAMETERS} parameters") from None
    return dict(reversed(pairs))
