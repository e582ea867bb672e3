"""One HTTP request, as far as an answer depends on it."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Self
from urllib.parse import parse_qsl, unquote

from adapter.serving.api.remembering import remembered
from adapter.serving.api.values import Value

Headers = Sequence[tuple[str, str]]

_MOST_PARAMETERS = 1_000  # the rest is not read
_NO_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class MustWait(Exception):  # noqa: N818  # no error: the answer is had on another thread
    """The answer needs another server, and this thread may not wait for one."""


class Request(Value, frozen=True):
    """A request. Made with `of`.

    uri: path and query as sent. path: percent-decoded. query: the first value of each parameter.
    headers: (name in lower case, value) in their order, a name as often as it was sent.
    certificate: the peer's, DER, from a handshake that verified it against some CA; None without one.
    patient: whether this thread may wait for other servers; what has to, raises MustWait where it may not.
    """

    method: str
    uri: str
    path: str
    query: Mapping[str, str]
    headers: Headers
    certificate: bytes | None
    patient: bool

    @classmethod
    def of(
        cls, method: str, uri: str, headers: Headers = (), certificate: bytes | None = None, *, patient: bool = True
    ) -> Self:
        """A request from its parts as they came over the wire."""
        path, query = _taken_apart(uri)
        return cls(method, uri, path, query, headers, certificate, patient)

    def header(self, name: str) -> str:
        """The first value of a header, "" without it. name: in lower case."""
        for key, value in self.headers:
            if key == name:
                return value
        return ""


def is_well_formed(text: str) -> bool:
    """Whether every percent sign in it is followed by two hexadecimal digits, as of a path, a query's pair, a key."""
    return _NO_ESCAPE.search(text) is None


@remembered(most=4096, longest=512, parts="&")
def _taken_apart(uri: str) -> tuple[str, Mapping[str, str]]:
    path, _, query = uri.partition("?")
    # A pair that is not well-formed is as good as not sent, as in Go.
    pairs = query.split("&", _MOST_PARAMETERS)[:_MOST_PARAMETERS]
    sound = "&".join(pair for pair in pairs if ";" not in pair and is_well_formed(pair))
    parameters = parse_qsl(sound, keep_blank_values=True, errors="replace")
    return unquote(path, errors="replace"), MappingProxyType(dict(reversed(parameters)))
