"""The client certificate of a request's connection."""

from collections.abc import Mapping
from typing import Any


def client_certificate(environ: Mapping[str, Any]) -> bytes | None:
    """Return the verified leaf certificate of the client as DER, or None on plain HTTP or without a certificate.

    environ: of WSGI; the bridge to ASGI stores the scope in it. The key is the one that uvicorn's pull request 3132
    uses for the TLS extension.
    """
    extensions = environ.get("asgi.scope", {}).get("extensions", {})
    certificate: bytes | None = extensions.get("tls", {}).get("client_cert")
    return certificate
