"""What callers send: requests that nearly make sense, and requests that make none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote_from_bytes

import fuzz_words as words
from hypothesis import strategies as st

Lines = Sequence[tuple[bytes, bytes]]
Drawn = TypeVar("Drawn")
Texts = st.SearchStrategy[str]

METHODS = (*["GET"] * 20, "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "QUERY", "get")
# What stays as it is where the rest is percent-encoded: nothing, what callers leave, whatever is visible.
_UNENCODED = ("", "/:,=()!<>", "".join(map(chr, range(33, 127))))


@dataclass(frozen=True)
class Sent:
    """A request as the server hands it on. path, query: raw."""

    method: str
    path: bytes
    query: bytes = b""
    headers: Lines = ()
    certificate: bytes | None = None

    @property
    def scope(self) -> dict[str, object]:
        """As an ASGI server describes it."""
        return {
            "method": self.method,
            "path": self.path.decode("utf-8", "replace"),
            "raw_path": self.path,
            "query_string": self.query,
            "headers": self.headers,
            "peer_certificate": self.certificate,
        }


def sendable(value: bytes) -> bytes:
    """As much of it as HTTP lets through in a header."""
    return value.translate(None, b"\r\n\0").strip(b" \t")


def mostly(
    usual: st.SearchStrategy[Drawn], unusual: st.SearchStrategy[Drawn], times: int = 4
) -> st.SearchStrategy[Drawn]:
    """The one so many times as often as the other."""
    return st.integers(0, times).flatmap(lambda drawn: usual if drawn < times else unusual)


def joined(parts: Sequence[str], most: int = 8) -> Texts:
    """Some of the parts, put together; now and then any text at all."""
    return mostly(st.lists(st.sampled_from(parts), max_size=most).map("".join), st.text(max_size=20))


def _encoded(text: str) -> st.SearchStrategy[bytes]:
    return st.sampled_from(_UNENCODED).map(lambda safe: quote_from_bytes(text.encode(), safe=safe).encode())


def _filled(template: str) -> Texts:
    return st.tuples(*[segments] * template.count("{}")).map(lambda parts: template.format(*parts))


segments = mostly(
    st.sampled_from(words.NAMES),
    st.sampled_from(words.STRANGE_NAMES) | st.text(min_size=1, max_size=8).flatmap(_encoded).map(bytes.decode),
)
_templates = st.sampled_from(words.TEMPLATES).flatmap(_filled)
_paths = mostly(
    _templates,
    st.lists(segments, max_size=9).map(lambda parts: "/" + "/".join(parts))
    | st.tuples(_templates, st.sampled_from(("/", "//", "/.", "/..", "%", " "))).map("".join),
).map(str.encode)

_values: Mapping[str, Texts] = {
    "labelSelector": joined(words.SELECTORS),
    "metricLabelSelector": joined(words.SELECTORS),
    "fieldSelector": joined(words.FIELDS),
    "limit": joined(words.NUMBERS, 2),
    "timeoutSeconds": joined(words.NUMBERS, 2),
    "timeout": joined(words.DURATIONS, 5),
}


def _parameter(name: str) -> st.SearchStrategy[bytes]:
    value = _values.get(name, joined(words.WORDS, 2)).flatmap(_encoded)
    return mostly(value.map(lambda each: name.encode() + b"=" + each), st.just(name.encode()))


_parameters = st.sampled_from(words.PARAMETERS).flatmap(_parameter)
_queries = mostly(st.lists(_parameters, max_size=4).map(b"&".join), st.binary(max_size=30), 9)


def _header(name: str, values: Texts) -> st.SearchStrategy[tuple[bytes, bytes]]:
    return values.map(lambda value: (name.encode(), sendable(value.encode("utf-8", "replace"))))


_users = st.sampled_from(words.USERS)
_known_headers = st.one_of(
    _header("accept", joined(words.ACCEPTS)),
    _header("accept-encoding", joined(words.ENCODINGS, 5)),
    _header("user-agent", st.sampled_from(words.PROGRAMS)),
    _header("if-none-match", joined(words.TAGS, 4)),
    _header("audit-id", st.text(max_size=70)),
    _header("authorization", joined(words.TOKENS, 4)),
    _header("x-remote-user", _users),
    _header("x-remote-group", _users),
    _header("x-remote-uid", _users),
    _header("x-remote-extra-a%2fb", _users),
    _header("x-remote-extra-%zz", st.text(max_size=10)),
    _header("x-remote-extra-", st.text(max_size=10)),
    _header("impersonate-user", _users),
    _header("impersonate-group", _users),
    _header("impersonate-uid", _users),
    _header("impersonate-extra-a%2Fb", _users),
    _header("upgrade", st.sampled_from(("websocket", "WebSocket", "h2c"))),
    _header("connection", st.sampled_from(("Upgrade", "close", "keep-alive"))),
    _header("sec-websocket-protocol", joined(words.SUBPROTOCOLS, 6)),
    _header("host", st.text(max_size=10)),
)
_any_headers = st.tuples(
    st.from_regex(rb"[a-z0-9!#$%&'*+.^_`|~-]{1,20}", fullmatch=True), st.binary(max_size=40).map(sendable)
)
# Some mean something together alone.
_websockets = st.tuples(
    _header("upgrade", st.just("websocket")),
    _header("connection", st.just("Upgrade")),
    _header("sec-websocket-protocol", joined(words.SUBPROTOCOLS, 4)),
).map(list)
_impersonations = st.tuples(_header("impersonate-user", _users), _known_headers).map(list)
_headers = mostly(
    st.lists(mostly(_known_headers, _any_headers, 9), max_size=6), st.one_of(_websockets, _impersonations), 5
)

sent = st.builds(Sent, st.sampled_from(METHODS), _paths, _queries, _headers)
