"""Certificate files and CA bundles -> a TLS context that follows them while it listens."""

import ssl
from collections.abc import Callable
from pathlib import Path

import structlog

from adapter.errors import ConfigError

_log = structlog.get_logger(__name__)


class LiveTls:
    """A listening context whose certificate and CAs are those of the last `refresh`; open connections keep theirs.

    client_cas: the PEM of every CA whose certificate a client may present. While it is empty no certificate is asked
    for: OpenSSL would refuse any, and discovery has to answer before the CAs are known.
    Raises ConfigError when the files cannot be loaded at first.
    """

    def __init__(self, cert_file: str, key_file: str, client_cas: Callable[[], str] = lambda: "") -> None:
        self._cert_file = cert_file
        self._key_file = key_file
        self._client_cas = client_cas
        self._state = self._seen()
        self._refused: tuple[object, ...] | None = None
        try:
            self.context = self._build()
        except (OSError, ValueError) as error:
            fault = f"expected a PEM certificate and its key in {cert_file} and {key_file}"
            raise ConfigError([f"cert_file, key_file: {fault}: {error}"]) from error
        self._newest = self._build()
        # Each handshake takes certificate and CAs from the newest context: swapped whole, or not at all.
        self.context.sni_callback = self._choose

    def refresh(self) -> bool:
        """Build anew when a file or a bundle changed. Returns whether it did; a half-written pair is tried again."""
        state = self._seen()
        if state == self._state:
            return False
        try:
            self._newest = self._build()
        except (OSError, ValueError) as error:
            if state != self._refused:
                _log.error("the new certificate or CA cannot be used; the old one stays", cause=str(error))
            self._refused = state
            return False
        self.context.verify_mode = self._newest.verify_mode
        self._state = state
        _log.info("the certificate or the client CAs changed; new connections use them", cert_file=self._cert_file)
        return True

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        connection.context = self._newest

    def _seen(self) -> tuple[object, ...]:
        return (_stamp(self._cert_file), _stamp(self._key_file), self._client_cas())

    def _build(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # A resumed session would carry the verdict of an old handshake; callers keep their connections anyway.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        context.load_cert_chain(self._cert_file, self._key_file)
        cas = self._client_cas()
        if cas:
            context.load_verify_locations(cadata=cas)
            context.verify_mode = ssl.CERT_OPTIONAL
        return context


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
