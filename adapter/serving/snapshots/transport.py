"""Pull the pipeline's snapshot every second, and transfer it only if it changed."""

import hmac
import random
import threading
import time
from mmap import mmap
from pathlib import Path

import httpx
import structlog

from adapter.apiserver.answer import JSON
from adapter.client_tls import client_context
from adapter.errors import SourceError
from adapter.failure_logger import FailureLogger, one_line
from adapter.http_body import ACCEPTED, LARGEST_BODY, read_body
from adapter.serving.snapshots.store import SnapshotStore

SNAPSHOT_PATH = "/v1/snapshot"
EVERY_S = 1.0
DEADLINE_S = 3.0
LONGEST_PULL_S = 10.0  # of the whole body; DEADLINE_S limits each of its pieces
LONGEST_RETRY_S = 8.0
MESSAGE_TYPE = "application/vnd.msgpack"

_WRONG_ADDRESS = "is this the address of a pipeline?"
_LONGEST_ERROR = 200  # bytes of a server's error message
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

_log = structlog.get_logger(__name__)


class TokenFile:
    """A file with a bearer token, which is read for each request so that it can be rotated."""

    def __init__(self, path: str) -> None:
        self._path = path
        began, over = "the token file cannot be read, so all clients are rejected", "the token file can be read again"
        self._failures = FailureLogger(_log, began, over, file=path)

    def matches(self, authorization: str) -> bool:
        """Whether an Authorization header has the token. An empty or unreadable file rejects all clients."""
        try:
            expected = bearer(self._path)
        except (OSError, ValueError) as error:
            self._failures.record_failure(str(error), is_grave=True)
            return False
        self._failures.record_success()
        return hmac.compare_digest(expected.encode(), authorization.encode(errors="replace"))


def bearer(token_file: str) -> str:
    """The Authorization header with the token of the file, which is read each time so that it can be rotated.

    Raises OSError, or ValueError if the file has no token. The messages do not contain the content of the file.
    """
    token = Path(token_file).read_bytes().strip().decode("utf-8", "replace")
    if not token or not token.isascii() or not token.isprintable():
        raise ValueError(f"expected a token in {token_file}, got {'other characters' if token else 'an empty file'}")
    return f"Bearer {token}"


class Follower:
    """Pulls the pipeline's snapshots into a store in its own thread, so that no request waits for a pull.

    url: such as https://pipeline:8443. ca_file: the CA of its certificate, read when it changes, None for the system's
    CAs. token_file: the bearer token, read for each pull.
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
            "the pipeline's snapshot can be pulled again",
            url=str(self._url),
        )
        self._client: httpx.Client | None = None
        self._ca_pem = b""  # what the client trusts
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="snapshot-follower", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        if self._url.scheme == "http" and self._url.host not in _LOOPBACK:
            effect = "an attacker on the network can set the size of every workload"
            _log.warning(
                "snapshots are pulled over plain HTTP: configure a certificate for the pipeline", effect=effect
            )
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for its end."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2 * DEADLINE_S)
        self._drop_client()

    def pull(self) -> bool:
        """Pull once. Returns whether it succeeded; logs when that changes."""
        return self._failures.attempt(self._pull_or_raise)

    def _pull_or_raise(self) -> None:
        try:
            self._fetch()
        except (httpx.HTTPError, OSError, ValueError) as error:
            self._drop_client()
            raise SourceError("pipeline", one_line(error) + _hint(self._url, str(error))) from error

    def _fetch(self) -> None:
        with self._current_client().stream("GET", self._url, headers=self._headers()) as response:
            if response.status_code == httpx.codes.NOT_MODIFIED and self._etag:
                response.read()  # an unread body would close the connection
                return
            _check(response)
            # An anonymous mmap uses memory only for written pages, is not copied while it grows, and returns all pages
            # to the system with the snapshot. The heap would retain as much again for the next one.
            body = read_body(response, mmap(-1, LARGEST_BODY), time.monotonic() + LONGEST_PULL_S)
        if self._store.put(memoryview(body)[: body.tell()]):  # a refused snapshot may be accepted later
            self._etag = response.headers.get("ETag", "")

    def _current_client(self) -> httpx.Client:
        ca_pem = b"" if self._ca_file is None else Path(self._ca_file).read_bytes()
        if ca_pem != self._ca_pem:
            self._drop_client()
        if self._client is None:
            # trust_env: the pipeline is in the same cluster, where no proxy of the environment is needed.
            self._client = httpx.Client(verify=client_context(self._ca_file), timeout=DEADLINE_S, trust_env=False)
            self._ca_pem = ca_pem
        return self._client

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": MESSAGE_TYPE, **ACCEPTED}
        if self._etag:
            headers["If-None-Match"] = self._etag
        if self._token_file is not None:
            headers["Authorization"] = bearer(self._token_file)
        return headers

    def _drop_client(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None

    def _run(self) -> None:
        pause_s = EVERY_S
        while not self._stop.is_set():
            pause_s = EVERY_S if self.pull() else min(pause_s * 2, LONGEST_RETRY_S)
            # Jitter, so that replicas that failed together do not retry together.
            self._stop.wait(pause_s * random.uniform(0.9, 1.1))  # noqa: S311  # not a secret


def _check(response: httpx.Response) -> None:
    """Raises ValueError if the response is not a snapshot."""
    kind = response.headers.get("Content-Type", "nothing").partition(";")[0].strip()
    if response.status_code == httpx.codes.NOT_FOUND and kind == JSON:  # of another API: a pipeline's 404 is plain text
        raise ValueError(f"expected 200, got 404: {_WRONG_ADDRESS}")
    if response.status_code != httpx.codes.OK:
        text = next(response.iter_raw(_LONGEST_ERROR), b"").decode("utf-8", "replace").strip()
        raise ValueError(f"expected 200, got {response.status_code}: {text}")
    if kind != MESSAGE_TYPE:
        raise ValueError(f"expected {MESSAGE_TYPE}, got {kind}: {_WRONG_ADDRESS}")


def _hint(url: httpx.URL, cause: str) -> str:
    """The end of a message: the fix for an error of the TLS library or the HTTP parser."""
    if "CERTIFICATE_VERIFY_FAILED" in cause:
        return f"; snapshot_ca_file must be the CA of a certificate for {url.host}"
    if any(sign in cause for sign in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL")):
        return "; does the pipeline serve plain HTTP? With cert_file and key_file it serves HTTPS"
    if url.scheme == "http" and ("disconnected" in cause or "reset by peer" in cause):
        return "; does the pipeline require https?"
    return ""
