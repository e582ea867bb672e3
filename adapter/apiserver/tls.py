"""Certificate files and CA bundles -> a TLS context that follows them while it listens."""

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog
from cryptography import x509

from adapter.errors import ConfigError

_log = structlog.get_logger(__name__)


class LiveTls:
    """A listening context whose certificate and CAs are those of the last `refresh`; open connections keep theirs.

    client_cas: the PEM of every CA whose certificate a client may present. While it is empty no certificate is asked
    for: OpenSSL would refuse any, and discovery has to answer before the CAs are known.
    names: by which clients call the server; a certificate that does not hold one is told of, and used.
    Raises ConfigError when the files cannot be loaded at first.
    """

    def __init__(
        self, cert_file: str, key_file: str, client_cas: Callable[[], str] = lambda: "", names: Sequence[str] = ()
    ) -> None:
        self._cert_file = cert_file
        self._key_file = key_file
        self._client_cas = client_cas
        self._names = names
        self._refused: tuple[object, ...] | None = None
        self._state = self._seen()
        try:
            self.context = self._with_certificate()
            self._newest = self._with_certificate()
            self._leaf = self._read_leaf()
        except (OSError, ValueError) as error:
            fault = f"expected a PEM certificate and its key in {cert_file} and {key_file}"
            raise ConfigError([f"cert_file, key_file: {fault}: {error}"]) from error
        # Each handshake takes certificate and CAs from the newest context: swapped whole, or not at all.
        self.context.sni_callback = self._choose
        self._warn()
        self._begin_with_cas()

    def refresh(self) -> bool:
        """Build anew when a file or a bundle changed. Returns whether it did; a half-written pair is tried again."""
        state = self._seen()
        if state == self._state:
            return False
        try:
            newest, leaf = self._with_cas(self._with_certificate()), self._read_leaf()
        except (OSError, ValueError) as error:
            if state != self._refused:
                _log.error("the new certificate or CA cannot be used; the old one stays", cause=str(error))
            self._refused = state
            return False
        self._use(newest)
        self._state, self._leaf = state, leaf
        _log.info("the certificate or the client CAs changed; new connections use them", cert_file=self._cert_file)
        self._warn()
        return True

    def certificate_ends_at(self) -> float:
        """When the certificate in use expires, in Unix seconds."""
        return self._leaf.not_valid_after_utc.timestamp()

    def _use(self, newest: ssl.SSLContext) -> None:
        self._newest = newest
        self.context.verify_mode = newest.verify_mode

    def _begin_with_cas(self) -> None:
        try:
            self._use(self._with_cas(self._with_certificate()))
        except (OSError, ValueError) as error:
            _log.error("the client CAs cannot be used; no client certificate is asked for", cause=str(error))

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        connection.context = self._newest

    def _seen(self) -> tuple[object, ...]:
        return (_stamp(self._cert_file), _stamp(self._key_file), self._client_cas())

    def _with_certificate(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # A resumed session would carry the verdict of an old handshake; callers keep their connections anyway.
        context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
        context.num_tickets = 0
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(self._cert_file, self._key_file)
        return context

    def _with_cas(self, context: ssl.SSLContext) -> ssl.SSLContext:
        cas = self._client_cas()
        if cas:
            context.load_verify_locations(cadata=cas)
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _read_leaf(self) -> x509.Certificate:
        return x509.load_pem_x509_certificates(Path(self._cert_file).read_bytes())[0]

    def _warn(self) -> None:
        held = _names(self._leaf)
        missing = [name for name in self._names if not any(_covers(pattern, name) for pattern in held)]
        if missing:
            fix = f"issue it with the DNS names {', '.join(missing)}"
            _log.warning("the certificate lacks a name it is asked by", holds=held, missing=missing, fix=fix)


def _names(certificate: x509.Certificate) -> list[str]:
    """The DNS names it is good for. A common name counts for nobody who verifies."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (x509.ExtensionNotFound, ValueError):
        return []
    return extension.value.get_values_for_type(x509.DNSName)


def _covers(pattern: str, name: str) -> bool:
    """`*` stands for one whole label, the first."""
    wild = pattern.startswith("*.") and pattern[2:].lower() == name.partition(".")[2].lower()
    return wild or pattern.lower() == name.lower()


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
