"""One HTTP request, as far as an answer depends on it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Self
from urllib.parse import parse_qsl, unquote

Headers = Sequence[tuple[str, str]]

# Targets that are remembered: HPAs ask for the same few thousand again and again, short ones with few parameters.
# Anybody may fill this memory, before it is known who he is: full of the largest it holds 10 MB.
_MOST_REMEMBERED = 4096
_LONGEST_REMEMBERED = 512  # characters
_MOST_REMEMBERED_PARAMETERS = 8

_MOST_PARAMETERS = 1_000  # the rest is not read
_FAULT = re.compile(r";|%(?![0-9A-Fa-f]{2})")


class MustWait(Exception):  # noqa: N818  # no error: the answer is had on another thread
    """The answer needs another server, and this thread may not wait for one."""


@dataclass(frozen=True, slots=True)
class Request:
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
        path, query = _remembered(uri) if _is_small(uri) else _taken_apart(uri)
        return cls(method, uri, path, query, headers, certificate, patient)

    def header(self, name: str) -> str:
        """The first value of a header, "" without it. name: in lower case."""
        for key, value in self.headers:
            if key == name:
                return value
        return ""


def _is_small(uri: str) -> bool:
    return len(uri) <= _LONGEST_REMEMBERED and uri.count("&") < _MOST_REMEMBERED_PARAMETERS


def _taken_apart(uri: str) -> tuple[str, Mapping[str, str]]:
    path, _, query = uri.partition("?")
    # A pair that is not well-formed is as good as not sent, as in Go.
    sound = "&".join(pair for pair in query.split("&", _MOST_PARAMETERS)[:_MOST_PARAMETERS] if not _FAULT.search(pair))
    pairs = parse_qsl(sound, keep_blank_values=True, errors="replace")
    return unquote(path, errors="replace"), MappingProxyType(dict(reversed(pairs)))


_remembered = lru_cache(maxsize=_MOST_REMEMBERED)(_taken_apart)
