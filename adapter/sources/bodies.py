"""Bodies of HTTP answers, unpacked piece by piece, so that no server decides how much memory an answer takes."""

import time
import zlib
from io import BytesIO

import httpx

ACCEPTED = {"Accept-Encoding": "gzip"}  # the only encoding that Body unpacks
LARGEST_BODY = 64 * 2**20  # bytes, unpacked: 40 000 workloads in 20 ticks take 22 MiB


class BodyError(Exception):
    """A body cannot be read. The message is the cause."""


class LargeBodyError(BodyError):
    """A body is too large."""


class Body:
    """Collects one body. Unpacks at most `largest` bytes. Each method raises BodyError."""

    def __init__(self, encoding: str, largest: int = LARGEST_BODY) -> None:
        """encoding: the Content-Encoding of the answer."""
        if encoding not in ("", "identity", "gzip"):
            raise BodyError(f"expected a plain or gzipped answer, got Content-Encoding {encoding!r}")
        self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 16) if encoding == "gzip" else None
        self._largest = largest
        self._plain = BytesIO()

    def add(self, chunk: bytes) -> None:
        """Add the next bytes as the server sent them."""
        left = self._largest - self._plain.tell()
        try:
            piece = chunk if self._unpack is None else self._unpack.decompress(chunk, left + 1)
        except zlib.error as error:
            raise BodyError(f"expected a gzipped answer: {error}") from error
        if len(piece) > left:
            raise LargeBodyError(f"the answer is larger than {self._largest} bytes; narrow what is read")
        self._plain.write(piece)

    def finish(self) -> BytesIO:
        """The whole body, unpacked, with its position at the end."""
        if self._unpack is not None and not self._unpack.eof:
            raise BodyError("expected a complete gzipped answer, got a part of it")
        return self._plain


def read_body(answer: httpx.Response, deadline_at_s: float) -> BytesIO:
    """The body of a streamed answer. deadline_at_s: of the whole body, by the monotonic clock."""
    body = Body(answer.headers.get("content-encoding", ""))
    for chunk in answer.iter_raw():
        if time.monotonic() > deadline_at_s:
            raise BodyError("the answer did not end in time")
        body.add(chunk)
    return body.finish()


async def read_body_async(answer: httpx.Response) -> BytesIO:
    """The body of a streamed answer of an asynchronous client."""
    body = Body(answer.headers.get("content-encoding", ""))
    async for chunk in answer.aiter_raw():
        body.add(chunk)
    return body.finish()
