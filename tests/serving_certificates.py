"""Certificates on disk, for servers on loopback."""

from dataclasses import dataclass
from pathlib import Path

import trustme

SERVER = trustme.CA()
PROXIES, CLIENTS, STRANGERS = trustme.CA(), trustme.CA(), trustme.CA()


@dataclass(frozen=True)
class Files:
    cert: Path
    key: Path

    def write(self, leaf: trustme.LeafCert) -> None:
        """Writes key and certificate one after the other; a mounted Secret would replace both at once."""
        leaf.private_key_pem.write_to_path(str(self.key))
        leaf.cert_chain_pems[0].write_to_path(str(self.cert))


def serving_files(folder: Path) -> Files:
    files = Files(folder / "tls.crt", folder / "tls.key")
    files.write(SERVER.issue_cert("localhost", "127.0.0.1", "adapter.monitoring.svc"))
    return files


def pem(*authorities: trustme.CA) -> str:
    return "\n".join(authority.cert_pem.bytes().decode() for authority in authorities)
