"""A server's TLS context that reloads its certificate and client CAs."""

import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import structlog
from cryptography import x509

from adapter.apiserver.certificates import dns_names
from adapter.errors import ConfigError
from adapter.file_stamps import file_stamps

_log = structlog.get_logger(__name__)


class LiveTls:
    """New connections use the certificate and CAs of the last `refresh`; open connections keep theirs.

    client_cas: returns the PEM of the CAs of client certificates. While it is empty, the server requests no client
    certificate: OpenSSL would reject any, and discovery has to answer before the CAs are known.
    names: host names of this server; a certificate without one of them is used, with a warning.
    Raises ConfigError if the files cannot be loaded.
    """

    def __init__(
        self,
        cert_file: str,
        key_file: str,
        client_cas: Callable[[], str] = lambda: "",
        names: Sequence[str] = (),
    ) -> None:
        self._cert_file = cert_file
        self._key_file = key_file
        self._client_cas = client_cas
        self._names = names
        self._state: tuple[object, ...] | None = None  # of the last context with the CAs
        try:
            self.context = self._newest = self._new_context()
            self._leaf = self._read_leaf()
        except (OSError, ValueError) as error:
            fault = f"expected a PEM certificate and its key in {cert_file} and {key_file}"
            raise ConfigError([f"cert_file, key_file: {fault}: {error}"]) from error
        self._check_names()
        # Each handshake takes the certificate and the CAs from the newest context, so that they change together.
        self.context.sni_callback = self._choose
        with suppress(ConfigError):  # of the CAs: the server logs it and tries again
            self.refresh()

    def refresh(self) -> bool:
        """Reload if a file or the CAs changed. Returns whether it did.

        Raises ConfigError if they cannot be used, such as a half-written pair: the last ones stay.
        """
        state = self._inputs()
        if state == self._state:
            return False
        try:
            newest, leaf = self._add_client_cas(self._new_context()), self._read_leaf()
        except (OSError, ValueError) as error:
            raise ConfigError([f"the new certificate or CA cannot be used: {error}"]) from error
        if self._state is not None:
            _log.info("the certificate or the client CAs changed; new connections use them", cert_file=self._cert_file)
        former, self._leaf = self._leaf, leaf
        self._state, self._newest = state, newest
        self.context.verify_mode = newest.verify_mode
        if leaf != former:
            self._check_names()
        return True

    @property
    def effect_of_failure(self) -> str:
        """What follows while `refresh` fails."""
        if self._state is None:
            return "no client certificate is requested, so metric requests are refused"
        return "the last certificate and client CAs stay in use"

    def certificate_ends_at_s(self) -> float:
        """When the certificate in use expires, in Unix seconds."""
        return self._leaf.not_valid_after_utc.timestamp()

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        connection.context = self._newest

    def _inputs(self) -> tuple[object, ...]:
        return (*file_stamps((self._cert_file, self._key_file)), self._client_cas())

    def _new_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an intermediate CA needs no root, as in Go
        # A resumed session would skip the check against CAs that changed since.
        context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
        context.num_tickets = 0
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(self._cert_file, self._key_file)
        return context

    def _add_client_cas(self, context: ssl.SSLContext) -> ssl.SSLContext:
        cas = self._client_cas()
        if cas:
            # Comments of a bundle may be in any language; Python accepts ASCII alone.
            context.load_verify_locations(cadata=cas.encode("ascii", "replace").decode())
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _read_leaf(self) -> x509.Certificate:
        return x509.load_pem_x509_certificates(Path(self._cert_file).read_bytes())[0]

    def _check_names(self) -> None:
        present = dns_names(self._leaf)
        missing = [name for name in self._names if not any(_covers(pattern, name) for pattern in present)]
        if missing:
            fix = f"issue it with the DNS names {', '.join(missing)}"
            _log.warning("the certificate lacks a host name of this server", names=present, missing=missing, fix=fix)


def _covers(pattern: str, name: str) -> bool:
    """Whether a name matches; `*` stands for the whole first label."""
    wild = pattern.startswith("*.") and pattern[2:].lower() == name.partition(".")[2].lower()
    return wild or pattern.lower() == name.lower()
