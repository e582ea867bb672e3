"""The snapshot on its way from the pipeline to a server: pulled every second, only when it changed."""

import hmac
import random
import ssl
import threading
from pathlib import Path

import httpx
import structlog

from adapter.serving.store import SnapshotStore

SNAPSHOT_PATH = "/v1/snapshot"
EVERY_S = 1.0
DEADLINE_S = 3.0
LONGEST_RETRY_S = 8.0

_log = structlog.get_logger(__name__)


def token_matches(token_file: str, authorization: str) -> bool:
    """Whether an Authorization header bears the file's token, read anew so that it can be rotated.

    An empty or unreadable file admits nobody.
    """
    try:
        token = Path(token_file).read_text("utf-8").strip()
    except OSError as error:
        _log.error("the token file cannot be read: nobody is admitted", file=token_file, cause=str(error))
        return False
    expected = f"Bearer {token}".encode()
    return bool(token) and hmac.compare_digest(expected, authorization.encode())


class Follower:
    """Pulls the pipeline's snapshots into a store from a thread of its own, so that an answer never waits for a pull.

    url: the pipeline's root, such as https://pipeline:8443. ca_file: who signed its certificate, None = the system's
    roots. token_file: the bearer token, read anew for each pull.
    """

    def __init__(
        self, url: str, store: SnapshotStore, *, ca_file: str | None = None, token_file: str | None = None
    ) -> None:
        self._url = url.rstrip("/") + SNAPSHOT_PATH
        self._store = store
        self._ca_file = ca_file
        self._token_file = token_file
        self._etag = ""
        self._fault: str | None = None
        self._client: httpx.Client | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="snapshot-follower", daemon=True)

    def start(self) -> None:
        """Begin to pull."""
        self._thread.start()

    def stop(self) -> None:
        """Stop pulling; returns when the thread is done."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2 * DEADLINE_S)
        self._forget_client()

    def pull(self) -> bool:
        """Pull once. Returns whether the pipeline answered as it should; logs when that changes."""
        try:
            self._take(self._ask())
        except (httpx.HTTPError, OSError, ValueError) as error:
            # The next client reads the CA file anew: it may be the reason.
            self._forget_client()
            self._changed(f"{type(error).__name__}: {error}")
            return False
        self._changed(None)
        return True

    def _ask(self) -> httpx.Response:
        if self._client is None:
            verify: ssl.SSLContext | bool = True
            if self._ca_file is not None:
                verify = ssl.create_default_context(cafile=self._ca_file)
            # The pipeline is a neighbour: a proxy of the environment has no place between.
            self._client = httpx.Client(verify=verify, timeout=DEADLINE_S, trust_env=False)
        headers = {"If-None-Match": self._etag} if self._etag else {}
        if self._token_file is not None:
            headers["Authorization"] = f"Bearer {Path(self._token_file).read_text('utf-8').strip()}"
        return self._client.get(self._url, headers=headers)

    def _take(self, response: httpx.Response) -> None:
        if response.status_code == httpx.codes.NOT_MODIFIED:
            return
        if response.status_code != httpx.codes.OK:
            raise ValueError(
                f"expected 200, got {response.status_code} from {self._url}: {response.text[:200].strip()}"
            )
        if self._store.put(response.content):  # what was refused now may be right later
            self._etag = response.headers.get("ETag", "")

    def _changed(self, fault: str | None) -> None:
        if fault is not None and self._fault is None:
            _log.warning("the pipeline's snapshot cannot be pulled; retrying", url=self._url, cause=fault)
        elif fault is None and self._fault is not None:
            _log.info("the pipeline's snapshot is pulled again", url=self._url)
        self._fault = fault

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
