"""A TCP port that forwards to another one; nothing listens before it starts.

A program of its own: port_forward.py HOST PORT TO_PORT
"""

import asyncio
import contextlib
import sys
from functools import partial
from pathlib import Path

from parts.process import HOST, Process, free_port


class PortForward(Process):
    """Forwards `port` to to_port once it is started."""

    def __init__(self, folder: Path, to_port: int) -> None:
        self.port = free_port()
        env = {"PYTHONPATH": str(Path(__file__).parent.parent)}
        super().__init__("port-forward", [sys.executable, __file__, HOST, str(self.port), str(to_port)], folder, env)


async def forward(host: str, port: int, to_port: int) -> None:
    """Forwards every connection until the program ends."""
    async with await asyncio.start_server(partial(_connect, host, to_port), host, port) as server:
        await server.serve_forever()


async def _connect(host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    far_reader, far_writer = await asyncio.open_connection(host, port)
    await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    asyncio.run(forward(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
