"""The TLS context of a source, from the files of its settings."""

import ssl

from adapter.client_tls import client_context
from adapter.config import Tls
from adapter.errors import SourceError
from adapter.file_stamps import FileStamp, file_stamps
from adapter.sources.source_files import read_bytes

KEEPALIVE_S = 60.0  # longer than a usual tick, so that a tick needs no new handshakes


def tls_context(source: str, url: str, tls: Tls) -> ssl.SSLContext:
    """A context that trusts ca_file and presents cert_file. Raises SourceError if one of them cannot be loaded."""
    if not url.lower().startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # unused; does not load the system's CAs
    files: dict[str, str] = tls.model_dump(exclude_none=True)
    for name, file in files.items():
        read_bytes(source, f"tls.{name}", file)  # an error of `ssl` does not say which file is missing
    try:
        context = client_context(tls.ca_file)
        if tls.cert_file:
            context.load_cert_chain(tls.cert_file, tls.key_file)
    except OSError as error:
        raise SourceError(source, f"tls: cannot load {', '.join(files.values())}: {error}") from error
    return context


def tls_stamps(tls: Tls) -> tuple[FileStamp, ...]:
    """The stamps of the files. If they change, a client with the old context must be replaced."""
    return file_stamps((tls.ca_file, tls.cert_file, tls.key_file))
