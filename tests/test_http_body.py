"""Bodies of HTTP answers, plain and gzipped, up to the limit and beyond it."""

import gzip
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import BytesIO
from mmap import mmap

import pytest

from adapter.http_body import Body, BodyError

LARGEST = 10_000
TARGETS: dict[str, Callable[[], BytesIO | mmap]] = {"heap": BytesIO, "mmap": partial(mmap, -1, LARGEST)}


def read(chunks: Iterable[bytes], encoding: str, target: BytesIO | mmap) -> bytes:
    body = Body(encoding, target, LARGEST)
    for chunk in chunks:
        body.add(chunk)
    found = body.finish()
    length = found.tell()
    found.seek(0)
    return found.read(length)


@pytest.mark.parametrize("size", [0, 1, LARGEST - 1, LARGEST])
@pytest.mark.parametrize("encoding", ["", "identity", "gzip"])
@pytest.mark.parametrize("piece", [1, 7, 100_000])
@pytest.mark.parametrize("target", TARGETS)
def test_a_body_within_the_limit_is_unpacked(size: int, encoding: str, piece: int, target: str) -> None:
    body = bytes(number % 251 for number in range(size))
    sent = gzip.compress(body) if encoding == "gzip" else body
    pieces = (sent[at : at + piece] for at in range(0, len(sent), piece))
    assert read(pieces, encoding, TARGETS[target]()) == body


@pytest.mark.parametrize("encoding", ["", "gzip"])
@pytest.mark.parametrize("target", TARGETS)
def test_reading_stops_at_the_limit_of_a_body(encoding: str, target: str) -> None:
    received = []

    def pieces() -> Iterator[bytes]:
        packed = gzip.compress(b" " * 1_000_000, compresslevel=0) if encoding else b" " * 1_000_000
        for at in range(0, len(packed), 1_000):
            received.append(at)
            yield packed[at : at + 1_000]

    with pytest.raises(BodyError, match="larger than 10000 bytes"):
        read(pieces(), encoding, TARGETS[target]())
    assert len(received) <= 12


@pytest.mark.parametrize("more", [b"\0", gzip.compress(b"more")], ids=["a byte", "another gzip stream"])
def test_bytes_after_the_end_of_a_gzipped_body_are_refused(more: bytes) -> None:
    body = Body("gzip", BytesIO())
    body.add(gzip.compress(b"body"))
    with pytest.raises(BodyError, match="expected the end of the gzipped answer, got more bytes"):
        body.add(more)
