"""The snapshot on its way from the pipeline to a server: pulled every second, only when it changed."""

import hmac
import random
import ssl
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from mmap import mmap
from pathlib import Path

import httpx
import structlog

from adapter.apiserver.failure_logger import FailureLogger, one_line
from adapter.errors import SourceError
from adapter.serving.snapshots.store import SnapshotStore

SNAPSHOT_PATH = "/v1/snapshot"
EVERY_S = 1.0
DEADLINE_S = 3.0
LONGEST_PULL_S = 10.0  # a body that trickles, each piece within the deadline
LONGEST_RETRY_S = 8.0
LARGEST_BODY = 64 * 2**20  # bytes, unpacked: some 150 000 workloads, and two are more than a server may hold
MESSAGE_TYPE = "application/vnd.msgpack"
JSON = "application/json"

_ELSEWHERE = "is the address that of a pipeline?"
_LONGEST_ERROR = 200  # bytes of what a server says of an error
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

_log = structlog.get_logger(__name__)


def token_matches(token_file: str, authorization: str) -> bool:
    """Whether an Authorization header bears the file's token, read anew so that it can be rotated.

    An empty or unreadable file admits no client.
    """
    try:
        expected = bearer(token_file)
    except (OSError, ValueError) as error:
        _log.error("the token file cannot be read: nobody is admitted", file=token_file, cause=str(error))
        return False
    return hmac.compare_digest(expected.encode(), authorization.encode(errors="replace"))


def bearer(token_file: str) -> str:
    """The Authorization header with the file's token, read anew so that it can be rotated.

    Raises OSError, or ValueError where the file holds none; neither repeats what it holds.
    """
    token = Path(token_file).read_bytes().strip().decode("utf-8", "replace")
    if not token or not token.isascii() or not token.isprintable():
        raise ValueError(f"expected a token in {token_file}, got {'other characters' if token else 'an empty file'}")
    return f"Bearer {token}"


class Follower:
    """Pulls the pipeline's snapshots into a store from a thread of its own, so that an answer never waits for a pull.

    url: the pipeline's root, such as https://pipeline:8443. ca_file: who signed its certificate, None = the system's
    roots. token_file: the bearer token, read anew for each pull.
    """

    def __init__(
        self, url: str, store: SnapshotStore, *, ca_file: str | None = None, token_file: str | None = None
    ) -> None:
        self._url = httpx.URL(url.rstrip("/") + SNAPSHOT_PATH)
        self._store = store
        self._ca_file = ca_file
        self._token_file = token_file
        self._etag = ""
        self._failures = FailureLogger(
            _log,
            "the pipeline's snapshot cannot be pulled; retrying",
            "the pipeline's snapshot is pulled again",
            url=str(self._url),
        )
        self._client: httpx.Client | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="snapshot-follower", daemon=True)

    def start(self) -> None:
        """Begin to pull."""
        if self._url.scheme == "http" and self._url.host not in _LOOPBACK:
            effect = "whoever stands in between can set the size of every workload"
            _log.warning("snapshots travel over plain HTTP: give the pipeline a certificate", effect=effect)
        self._thread.start()

    def stop(self) -> None:
        """Stop pulling; returns when the thread is done."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2 * DEADLINE_S)
        self._forget_client()

    def pull(self) -> bool:
        """Pull once. Returns whether the pipeline answered as it should; logs when that changes."""
        return self._failures.attempt(self._pulled)

    def _pulled(self) -> None:
        try:
            self._take()
        except (httpx.HTTPError, OSError, ValueError) as error:
            # The next client reads the CA file anew: it may be the reason.
            self._forget_client()
            raise SourceError("pipeline", one_line(error) + _hint(self._url, str(error))) from error

    def _take(self) -> None:
        with self._opened().stream("GET", self._url, headers=self._headers()) as response:
            if response.status_code == httpx.codes.NOT_MODIFIED and self._etag:
                response.read()  # what was not read to its end costs the connection
                return
            _check(response)
            body = unpacked(_in_time(response), response.headers.get("Content-Encoding", ""), LARGEST_BODY)
        if self._store.put(body):  # what was refused now may be right later
            self._etag = response.headers.get("ETag", "")

    def _opened(self) -> httpx.Client:
        if self._client is None:
            verify: ssl.SSLContext | bool = True
            if self._ca_file is not None:
                verify = ssl.create_default_context(cafile=self._ca_file)
            # The pipeline is a neighbour: a proxy of the environment has no place between.
            self._client = httpx.Client(verify=verify, timeout=DEADLINE_S, trust_env=False)
        return self._client

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": MESSAGE_TYPE, "Accept-Encoding": "gzip"}
        if self._etag:
            headers["If-None-Match"] = self._etag
        if self._token_file is not None:
            headers["Authorization"] = bearer(self._token_file)
        return headers

    def _forget_client(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None

    def _run(self) -> None:
        pause_s = EVERY_S
        while not self._stop.is_set():
            pause_s = EVERY_S if self.pull() else min(pause_s * 2, LONGEST_RETRY_S)
            # Spread, so that replicas that failed together do not come back together.
            self._stop.wait(pause_s * random.uniform(0.9, 1.1))  # noqa: S311  # not a secret


def unpacked(chunks: Iterable[bytes], encoding: str, largest: int) -> memoryview:
    """A body from its pieces as they came. encoding: its Content-Encoding.

    Never unpacks more than it may hold. Raises ValueError when it holds more than `largest` bytes, ends too early or
    is packed otherwise than with gzip.
    """
    if encoding not in ("", "identity", "gzip"):
        raise ValueError(f"expected a body as it is or gzipped, got Content-Encoding {encoding!r}")
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 16) if encoding == "gzip" else None
    # Pages of its own: only those that are written to cost memory, none is copied while it grows, and all go back to
    # the system with the snapshot. The heap would keep as much again for the next one.
    body = mmap(-1, largest + 1)
    try:
        for chunk in chunks:
            piece = chunk if unpack is None else unpack.decompress(chunk, largest + 1 - body.tell())
            if body.tell() + len(piece) > largest:
                raise ValueError(f"expected at most {largest} bytes, got more")
            body.write(piece)
    except zlib.error as error:
        raise ValueError(f"expected a gzipped body: {error}") from error
    if unpack is not None and not unpack.eof:
        raise ValueError("expected a gzipped body, got the beginning of one")
    return memoryview(body)[: body.tell()]


def _in_time(response: httpx.Response) -> Iterator[bytes]:
    ends_s = time.monotonic() + LONGEST_PULL_S
    for chunk in response.iter_raw():
        if time.monotonic() > ends_s:
            raise TimeoutError(f"expected the whole snapshot within {LONGEST_PULL_S:g} s, got a part of it")
        yield chunk


def _check(response: httpx.Response) -> None:
    """Raises ValueError for anything but a snapshot."""
    kind = response.headers.get("Content-Type", "nothing").partition(";")[0].strip()
    if response.status_code == httpx.codes.NOT_FOUND and kind == JSON:  # another API's; a pipeline says it in text
        raise ValueError(f"expected 200, got 404: {_ELSEWHERE}")
    if response.status_code != httpx.codes.OK:
        text = next(response.iter_raw(_LONGEST_ERROR), b"").decode("utf-8", "replace").strip()
        raise ValueError(f"expected 200, got {response.status_code}: {text}")
    if kind != MESSAGE_TYPE:
        raise ValueError(f"expected {MESSAGE_TYPE}, got {kind}: {_ELSEWHERE}")


def _hint(url: httpx.URL, cause: str) -> str:
    """The end of a sentence: what mends what a TLS library or a parser of HTTP complains of."""
    if "CERTIFICATE_VERIFY_FAILED" in cause:
        return f"; snapshot_ca_file has to be the CA of a certificate that names {url.host}"
    if any(sign in cause for sign in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL")):
        return "; does it speak plain HTTP? a pipeline with cert_file and key_file does not"
    if url.scheme == "http" and ("disconnected" in cause or "reset by peer" in cause):
        return "; does it want https?"
    return ""
