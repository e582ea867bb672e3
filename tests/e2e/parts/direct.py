"""A server of the metrics API at its own address, without the aggregator in between."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
from cryptography import x509

PORT = 6443


@dataclass(frozen=True, slots=True)
class DirectClient:
    """Sends each request on a connection of its own."""

    address: str
    name: str  # the name in the server's certificate
    ca_pem: str  # the CA of the server's certificate
    port: int = PORT

    def get(
        self, path: str, certificate: tuple[Path, Path] | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """GET with this client certificate and these headers."""
        context = ssl.create_default_context(cadata=self.ca_pem)
        if certificate is not None:
            context.load_cert_chain(*certificate)
        with httpx.Client(verify=context, timeout=15) as client:
            url = f"https://{self.address}:{self.port}{path}"
            return client.get(url, headers=headers, extensions={"sni_hostname": self.name})

    def serial(self) -> int:
        """The serial number of the server's certificate."""
        pem = ssl.get_server_certificate((self.address, self.port), timeout=5)
        return x509.load_pem_x509_certificate(pem.encode()).serial_number
