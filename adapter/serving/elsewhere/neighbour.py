"""A GET to another server -> its whole answer by a deadline, or why there is none."""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from adapter.config import OtherAdapter
from adapter.serving.elsewhere.replies import Reply, UnansweredError
from adapter.serving.outage import told
from adapter.serving.snapshots.transport import bearer

_LAST_S = 2.0  # for the loop to end in
_KEPT_S = 60.0  # an idle connection; Go's servers close theirs after 90


class Neighbour:
    """Asked in an event loop with a thread of its own: there a question ends at its deadline, whatever the server does.

    deadline_s: from the question to the last byte. largest: bytes of a body. Files are read anew for each question.
    """

    def __init__(self, other: OtherAdapter, *, deadline_s: float, largest: int) -> None:
        self._other = other
        self._deadline_s = deadline_s
        self._largest = largest
        self._url = httpx.URL(other.url)
        self._clients: list[_Client] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"asking {self.host}", daemon=True)
        self._thread.start()

    @property
    def host(self) -> str:
        """Its host, and its port where the address has one."""
        return self._url.netloc.decode("ascii")

    def stop(self) -> None:
        """Give up what is asked, and ask no more; returns when the thread is done."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_LAST_S)

    def ask(self, target: str, headers: Mapping[str, str]) -> Reply:
        """GET a target, which is sent as it is. Blocks until the deadline at most. Raises UnansweredError."""
        asked: Future[Reply] = asyncio.run_coroutine_threadsafe(self._by_the_deadline(target, headers), self._loop)
        try:
            return asked.result(self._deadline_s + _LAST_S)
        except (TimeoutError, CancelledError) as error:  # the loop was stopped
            raise self._late() from error

    async def _by_the_deadline(self, target: str, headers: Mapping[str, str]) -> Reply:
        try:
            async with asyncio.timeout(self._deadline_s):
                return await self._exchanged(target, headers)
        except TimeoutError as error:
            raise self._late() from error
        except (httpx.RemoteProtocolError, httpx.DecodingError) as error:
            raise UnansweredError("malformed", told(error)) from error
        except (httpx.HTTPError, OSError, ValueError) as error:
            raise UnansweredError("unreachable", told(error)) from error

    async def _exchanged(self, target: str, headers: Mapping[str, str]) -> Reply:
        sent = {"Accept-Encoding": "identity", **headers, "Authorization": bearer(self._other.token_file)}
        # The target goes as the caller sent it; httpx would resolve its dots and escape it in its own way.
        extensions = {"target": target.encode("ascii")}
        async with (
            self._client() as client,
            client.stream("GET", self._url, headers=sent, extensions=extensions) as response,
        ):
            body = await self._whole(response)
        return Reply(response.status_code, response.headers.get("Content-Type", ""), body)

    async def _whole(self, response: httpx.Response) -> bytes:
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            raise UnansweredError("malformed", f"expected a body as it is, got Content-Encoding {encoding[:50]!r}")
        body = bytearray()
        try:
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > self._largest:
                    # And read on, to the error in the depth: left here, what httpx nests would stay open for a while.
                    await response.aclose()
        except httpx.HTTPError:
            if len(body) <= self._largest:
                raise
        if len(body) > self._largest:
            raise UnansweredError("large", f"expected at most {self._largest} bytes, got more")
        return bytes(body)

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx.AsyncClient]:
        """One that trusts what the file says now. The one before is closed when the last question on it has ended."""
        ca_file = self._other.ca_file
        trusted = "" if ca_file is None else Path(ca_file).read_text("ascii")
        if ca_file is not None and not trusted.strip():  # half replaced: nobody is trusted in its stead
            raise ValueError(f"expected the PEM of a CA in {ca_file}, got an empty file")
        if not self._clients or self._clients[-1].trusted != trusted:
            verify = not self._other.insecure_skip_tls_verify
            self._clients.append(_Client(trusted, _opened(trusted, verify=verify)))
        client = self._clients[-1]
        client.questions += 1
        try:
            yield client.connections
        finally:
            client.questions -= 1
            await self._close([each for each in self._clients[:-1] if not each.questions])

    async def _close(self, clients: Sequence["_Client"]) -> None:
        for client in clients:
            self._clients.remove(client)
        for client in clients:
            await client.connections.aclose()

    def _late(self) -> UnansweredError:
        return UnansweredError("late", f"no answer within {self._deadline_s:g} s")

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._close(self._clients[:])


@dataclass(eq=False, slots=True)
class _Client:
    """connections: those that trust these CAs, in PEM; "" is the system's. questions: that are under way on them."""

    trusted: str
    connections: httpx.AsyncClient
    questions: int = 0


def _opened(trusted: str, *, verify: bool) -> httpx.AsyncClient:
    context = ssl.create_default_context(cadata=trusted or None)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    # No proxy of the environment stands between, and no time limit but the deadline. HPAs ask every 15 s.
    kept = httpx.Limits(keepalive_expiry=_KEPT_S)
    return httpx.AsyncClient(verify=context, timeout=None, trust_env=False, limits=kept)  # noqa: S113 - the deadline
