"""Answers -> a transport, in pieces, no faster than their caller reads."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from uvicorn.protocols.http.flow_control import FlowControl

from adapter.serving.sockets.connections import nothing

# Above this a connection gets no further answer, and its caller has only so much time to read on.
UNSENT_BYTES = 32 * 1024
# Pieces of so many bytes that are written in a row.
_AT_A_TIME = 4


@dataclass(frozen=True, slots=True)
class Exit:
    """A transport as uvicorn uses it to answer. close: what is told of the last answer."""

    write: Callable[[bytes], None]
    close: Callable[[], None]
    is_closing: Callable[[], bool]


class Outlet:
    """What is still to be written to a transport, a few pieces between what else there is to do.

    A transport with TLS would take everything, and say of most of it that it was sent; and one that breaks would go
    on taking. flow: paused while there is a rest. emptied: called when there is none any more.
    sent_bytes: of the answer that is being given.
    """

    __slots__ = ("_emptied", "_flow", "_is_full", "_rest", "_transport", "sent_bytes")

    def __init__(self, transport: asyncio.Transport, flow: FlowControl, emptied: Callable[[], None]) -> None:
        self._transport = transport
        self._flow = flow
        self._emptied = emptied
        self._rest: deque[memoryview] = deque()
        self._is_full = False
        self.sent_bytes = 0

    @property
    def is_empty(self) -> bool:
        """Whether the transport has everything."""
        return not self._rest

    def write(self, data: bytes) -> None:
        """Write it, now or as soon as it is taken."""
        self.sent_bytes += len(data)
        if len(data) > UNSENT_BYTES or self._rest:
            self._rest.append(memoryview(data))
            self._go_on()
        elif not self._transport.is_closing():
            self._transport.write(data)

    def pause(self) -> None:
        """The transport has enough."""
        self._is_full = True
        self._flow.pause_writing()

    def resume(self) -> None:
        """The transport takes more."""
        self._is_full = False
        self._go_on()

    def clear(self) -> None:
        """Nobody is there any more to write to."""
        self._rest.clear()
        self._emptied = nothing

    def _go_on(self) -> None:
        if self._transport.is_closing():  # its caller has gone
            self._rest.clear()
        for _ in range(_AT_A_TIME):
            if self._rest and not self._is_full:
                self._write_piece()
        if self._rest:
            self._flow.pause_writing()
        if self._is_full:
            return
        if self._rest:
            asyncio.get_running_loop().call_soon(self._go_on)
        elif self._flow.write_paused:
            self._flow.resume_writing()
            self._emptied()

    def _write_piece(self) -> None:
        first = self._rest.popleft()
        if len(first) > UNSENT_BYTES:
            self._rest.appendleft(first[UNSENT_BYTES:])
        self._transport.write(first[:UNSENT_BYTES])
