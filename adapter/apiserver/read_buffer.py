"""One receive buffer for all connections of an event loop."""

import asyncio

_BUFFER_BYTES = 64 * 1024


class ReadBuffer:
    """The memory that connections receive into: what arrives is passed on before the next read."""

    def __init__(self) -> None:
        self._memory = memoryview(bytearray(_BUFFER_BYTES))

    def connection(self, protocol: asyncio.Protocol) -> asyncio.BufferedProtocol:
        """A protocol that receives into this buffer and passes everything to another one."""
        return _Connection(protocol, self._memory)


class _Connection(asyncio.BufferedProtocol):
    """With a plain asyncio.Protocol, uvloop maps and unmaps 256 KiB of memory for each read of TLS."""

    def __init__(self, protocol: asyncio.Protocol, memory: memoryview) -> None:
        self._protocol = protocol
        self._memory = memory

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._protocol.connection_made(transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._memory

    def buffer_updated(self, nbytes: int) -> None:
        self._protocol.data_received(bytes(self._memory[:nbytes]))

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        # uvloop refers to this object for longer: without the cycle, the memory of the connection is free at once.
        ended, self._protocol = self._protocol, asyncio.Protocol()
        ended.connection_lost(exc)
