"""A server of the metrics API asked by its own address, past the aggregator."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
from cryptography import x509

PORT = 6443


@dataclass(frozen=True, slots=True)
class Direct:
    """address: where it listens. name: what its certificate has to name. ca_pem: who has to have signed that."""

    address: str
    name: str
    ca_pem: str
    port: int = PORT

    def get(
        self, path: str, certificate: tuple[Path, Path] | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """One question on a connection of its own."""
        context = ssl.create_default_context(cadata=self.ca_pem)
        if certificate is not None:
            context.load_cert_chain(*certificate)
        with httpx.Client(verify=context, timeout=15) as client:
            url = f"https://{self.address}:{self.port}{path}"
            return client.get(url, headers=headers, extensions={"sni_hostname": self.name})

    def serial(self) -> int:
        """Of the certificate that it shows now."""
        pem = ssl.get_server_certificate((self.address, self.port), timeout=5)
        return x509.load_pem_x509_certificate(pem.encode()).serial_number
