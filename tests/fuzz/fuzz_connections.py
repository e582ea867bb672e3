"""Many connections at once, that say what they were told to; and what a server sent on each of them."""

import asyncio
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fuzz_answers import MEANT, read
from fuzz_bytes import Talk

# A server that answers, and leaves the connection open, has nothing more to say after so long.
_QUIET_S = 0.03
# Its limits are shorter by far: this is a hang.
HANG_S = 20.0
CONTINUE = 100  # the answer is yet to come
CODES = frozenset((CONTINUE, 200, 301, 304, 400, 401, 403, 404, 405, 406, 414, 422, 429, 431, 500, 501, 503, 504))
_EMPTY = (CONTINUE, 204, 304)
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) [ -~]*")
_FIELD = re.compile(rb"([A-Za-z0-9!#$%&'*+.^_`|~-]+): ([^\r\n\0]*)")
_CHUNK = re.compile(rb"([0-9a-f]+)\r\n")


class TruncatedError(Exception):
    """What was sent ends within an answer."""


@dataclass(frozen=True)
class Answer:
    code: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Heard:
    """What was sent on one connection. said: what by the caller. is_left: whether the caller went before its end."""

    sent: bytes
    said: bytes
    is_left: bool

    def answers(self) -> tuple[list[Answer], bool]:
        """Those that are whole, each of them sound, and whether there is a part of one more."""
        found: list[Answer] = []
        try:
            found.extend(_answers(self.sent, self.said))
        except TruncatedError:
            return found, True
        return found, False


def heard(port: int, talks: Sequence[Talk], context: ssl.SSLContext | None = None) -> list[Heard]:
    """What the server sent on each connection. Raises TimeoutError when one of them is neither answered nor closed."""

    async def all_of_them() -> list[Heard]:
        return await asyncio.gather(*(_heard(port, talk, context) for talk in talks))

    return asyncio.run(all_of_them())


async def _heard(port: int, talk: Talk, context: ssl.SSLContext | None) -> Heard:
    name = None if context is None else "localhost"
    received = bytearray()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
        try:
            for piece in talk.pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if talk.stays:
                await asyncio.wait_for(_listen(reader, received, talk.said), HANG_S)
        finally:
            writer.transport.abort()
            await writer.wait_closed()
    except OSError as error:
        if isinstance(error, TimeoutError):
            raise
        return Heard(bytes(received), talk.said, is_left=True)
    return Heard(bytes(received), talk.said, is_left=not talk.stays)


async def _listen(reader: asyncio.StreamReader, received: bytearray, said: bytes) -> None:
    """Until the server closes, or has answered and says nothing more for a while."""
    while True:
        try:
            piece = await asyncio.wait_for(reader.read(65536), _QUIET_S)
        except TimeoutError:
            if received and _is_whole(bytes(received), said):
                return
            continue
        if not piece:
            return
        received += piece


def _is_whole(sent: bytes, said: bytes) -> bool:
    try:
        return any(answer.code != CONTINUE for answer in list(_answers(sent, said)))
    except TruncatedError:
        return False


def _answers(sent: bytes, said: bytes) -> Iterator[Answer]:
    at = 0
    while at < len(sent):
        end = sent.find(b"\r\n\r\n", at) + 4
        if end < 4:
            raise TruncatedError
        first, *lines = sent[at : end - 4].split(b"\r\n")
        status = _STATUS.fullmatch(first)
        assert status is not None, first
        fields = [_FIELD.fullmatch(line) for line in lines]
        headers = {field[1].decode().lower(): field[2].decode("latin-1") for field in fields if field is not None}
        assert len(headers) == len(lines), lines
        body, at = _body(sent, end, int(status[1]), headers)
        if body is None and int(status[1]) not in _EMPTY and b"HEAD" not in said:
            raise TruncatedError
        answer = Answer(int(status[1]), headers, body or b"")
        _check(answer, has_body=body is not None)
        yield answer


def _body(sent: bytes, at: int, code: int, headers: Mapping[str, str]) -> tuple[bytes | None, int]:
    """None where there is none: what is sent to HEAD says how long it would be."""
    if code in _EMPTY or headers.get("content-length") == "0":
        return None if code in _EMPTY else b"", at
    if at == len(sent) or sent.startswith(b"HTTP/1.1 ", at):
        return None, at
    if "content-length" in headers:
        end = at + int(headers["content-length"])
        if end > len(sent):
            raise TruncatedError
        return sent[at:end], end
    assert headers["transfer-encoding"] == "chunked"
    return _of_chunks(sent, at)


def _of_chunks(sent: bytes, at: int) -> tuple[bytes, int]:
    body = b""
    while (chunk := _CHUNK.match(sent, at)) is not None:
        size, at = int(chunk[1], 16), chunk.end()
        body, at = body + sent[at : at + size], at + size + 2
        if size == 0:
            return body, at
    raise TruncatedError


def _check(answer: Answer, *, has_body: bool) -> None:
    assert answer.code in CODES
    assert not {"retry-after", "server"} & answer.headers.keys()
    if has_body and answer.body:
        told = read(answer.headers.get("content-type", ""), answer.body)
        assert answer.code != 500 or MEANT.search(told if isinstance(told, str) else told["message"])
