"""What may come over a connection: requests that are mostly right, and are then spoiled."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fuzz_inputs import mostly
from hypothesis import strategies as st

_EXTERNAL = b"/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/required_workers?labelSelector=workload%3Dorders"
_CUSTOM = b"/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/utilization"
_METHODS = (*[b"GET"] * 8, b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"TRACE", b"CONNECT", b"PROPFIND")
_NO_METHODS = (b"get", b"", b"G\0T", b"PRI", b"GET GET", b"M-SEARCH", b"A" * 300)
_TARGETS = (_EXTERNAL, _EXTERNAL, _CUSTOM, b"/apis", b"/readyz", b"/metrics", b"/openapi/v2", b"/nowhere", b"/version")
_NO_TARGETS = (
    *(
        b"*",
        b"",
        b"x:1",
        b"http://x/apis",
        b"http://x",
        b"//apis",
        b"/apis#a",
        b"/\xff",
        b"/a b",
        b"/%",
        b"/?\t",
        b"?",
        b"apis",
    ),
    *(b"/apis?timeout=1ns", b"/metrics?timeout=1ns", b"/" + b"a" * 70_000, b"/apis?" + b"&" * 70_000),
)
_VERSIONS = (*[b"HTTP/1.1"] * 40, b"HTTP/1.0", b"HTTP/0.9", b"HTTP/2.0", b"HTTP/9", b"http/1.1", b"HTTP/1.1 ", b"")
_HOSTS = (*[(b"Host: x",)] * 30, (), (b"Host:",), (b"Host: x", b"Host: y"), (b"Host: a b",))
_LINES = (
    *(b"Accept: application/json", b"Accept: */*;q=\xff", b"User-Agent: curl/8", b"If-None-Match: *"),
    *(b"X-Remote-User: alice", b"X-Remote-Group: system:masters", b"Authorization: Bearer good", b"Audit-Id: \xc3\xa9"),
    *(
        b"Impersonate-User: bob",
        b"Connection: close",
        b"Connection: keep-alive",
        b"Connection: Upgrade, HTTP2-Settings",
    ),
    *(b"Upgrade: h2c", b"Upgrade: websocket", b"Expect: 100-continue", b"Expect: 200", b"Accept-Encoding: gzip"),
)
_NO_LINES = (
    *(
        b"no colon",
        b"Space : x",
        b" folded: x",
        b"X: a\r\n b",
        b"X: a\nY: b",
        b"X: a\rY: b",
        b": empty",
        b"X:\0",
        b"\0: x",
    ),
    *(b"X-Large: " + b"a" * 70_000, b"X-Huge: " + b"a" * 140_000, b"\r\n".join([b"X-Many: a"] * 300), b"X\xc3\xa9: a"),
)
_CHUNKS = (b"5\r\nhello\r\n", b"5;a=b\r\nhello\r\n", b"0\r\n\r\n", b"0\r\nX-Remote-User: root\r\n\r\n", b"5\r\nhell")
_NO_CHUNKS = (
    b"g\r\n",
    b"-1\r\n",
    b"FFFFFFFFFFFFFFFFFF\r\n",
    b"5hello",
    b"5\nhello\n",
    b"\r\n",
    b"0x5\r\nhello\r\n",
    b"5;" + b"a" * 20_000,
)
_LENGTHS = (
    *[b"5"] * 8,
    b"0",
    b"4",
    b"6",
    b"20000",
    b"18446744073709551616",
    b"-5",
    b"+5",
    b"0x5",
    b"5, 5",
    b"5\r\nContent-Length: 6",
    b"",
    b"5 ",
)
_ENCODINGS = (
    *[b"chunked"] * 8,
    b"Chunked",
    b"xchunked",
    b"identity",
    b"chunked, identity",
    b"gzip, chunked",
    b"\x0bchunked",
    b"",
)


_LONG = re.compile(rb"(.{1,10}?)\1{20,}", re.DOTALL)


@dataclass(frozen=True, repr=False)
class Talk:
    """What one connection says, piece by piece. stays: whether it waits for an answer, or goes."""

    pieces: Sequence[bytes]
    stays: bool

    def __repr__(self) -> str:
        """With what is long in short: a failure is told in words that can be read."""
        pieces = [_LONG.sub(lambda run: b"%b*%d" % (run[1], len(run[0])), piece) for piece in self.pieces]
        return f"Talk({pieces}, stays={self.stays})"

    @property
    def said(self) -> bytes:
        return b"".join(self.pieces)


def _often(usual: Sequence[bytes], unusual: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    return mostly(st.sampled_from(usual), st.sampled_from(unusual), 12)


_lines = st.builds(
    lambda host, lines: (*host, *lines), st.sampled_from(_HOSTS), st.lists(_often(_LINES, _NO_LINES), max_size=4)
)
_chunks = st.lists(_often(_CHUNKS, _NO_CHUNKS), max_size=4).map(b"".join)
_ends_of_lines = st.sampled_from([b"\r\n"] * 30 + [b"\n"])


def _with_body(
    lines: Sequence[bytes], length: bytes | None, encoding: bytes | None, body: bytes
) -> tuple[Sequence[bytes], bytes]:
    framing = [] if length is None else [b"Content-Length: " + length]
    framing += [] if encoding is None else [b"Transfer-Encoding: " + encoding]
    return (*lines, *framing), body


_bodies = st.builds(
    _with_body,
    _lines,
    st.none() | st.sampled_from(_LENGTHS),
    mostly(st.none(), st.sampled_from(_ENCODINGS), 2),
    st.just(b"hello") | _chunks,
)
_parts = mostly(st.tuples(_lines, st.just(b"")), _bodies, 2)


def _request(method: bytes, target: bytes, version: bytes, parts: tuple[Sequence[bytes], bytes], end: bytes) -> bytes:
    lines, body = parts
    return end.join([b" ".join((method, target, version)), *lines, b"", b""]) + body


_requests = st.builds(
    _request,
    _often(_METHODS, _NO_METHODS),
    _often(_TARGETS, _NO_TARGETS),
    st.sampled_from(_VERSIONS),
    _parts,
    _ends_of_lines,
)
_said = st.lists(_requests, min_size=1, max_size=3).map(b"".join)
_spoiling = st.tuples(
    st.floats(0, 1), st.sampled_from(("cut", "change", "insert", "twice", "drop")), st.binary(min_size=1, max_size=5)
)


def _spoiled(said: bytes, faults: Sequence[tuple[float, str, bytes]]) -> bytes:
    for share, kind, other in faults:
        at = int(share * len(said))
        rest = {
            "cut": b"",
            "change": other + said[at + len(other) :],
            "insert": other + said[at:],
            "twice": said[at:] * 2,
            "drop": said[at + len(other) * 4 :],
        }
        said = said[:at] + rest[kind]
    return said


def _in_pieces(said: bytes, cuts: Sequence[float]) -> Sequence[bytes]:
    places = sorted({0, len(said), *(int(cut * len(said)) for cut in cuts)})
    return [said[start:end] for start, end in pairwise(places)]


_spoiled_bytes = st.builds(_spoiled, _said, st.lists(_spoiling, max_size=2)) | st.binary(min_size=5, max_size=99)
_bytes = mostly(_said, _spoiled_bytes.filter(bool), 3)
_pieces = st.builds(_in_pieces, _bytes, st.lists(st.floats(0, 1), max_size=3))
talks = st.lists(st.builds(Talk, _pieces, st.sampled_from([True] * 7 + [False])), min_size=8, max_size=24)
