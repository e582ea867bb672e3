"""A TCP address that leads to another one while it is open, and where nobody listens before.

A program of its own: door.py HOST PORT TO_PORT
"""

import asyncio
import contextlib
import sys
from functools import partial
from pathlib import Path

from parts.process import HOST, Process, free_port


class Door(Process):
    """Opened by its start."""

    def __init__(self, folder: Path, to_port: int) -> None:
        self.port = free_port()
        env = {"PYTHONPATH": str(Path(__file__).parent.parent)}
        super().__init__("door", [sys.executable, __file__, HOST, str(self.port), str(to_port)], folder, env)


async def lead(host: str, port: int, to_port: int) -> None:
    """Carries every connection to the other port, for ever."""
    async with await asyncio.start_server(partial(_carry, host, to_port), host, port) as server:
        await server.serve_forever()


async def _carry(host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    far_reader, far_writer = await asyncio.open_connection(host, port)
    await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    asyncio.run(lead(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
