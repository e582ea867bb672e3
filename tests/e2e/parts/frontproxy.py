"""The front proxy identity of kube-apiserver: its client certificate, and the CAs that aggregated servers trust.

kube-apiserver reloads both files when they change.
"""

from collections.abc import Iterable
from pathlib import Path

from parts.certificates import Authority

NAME = "front-proxy-client"


class FrontProxy:
    """The files that kube-apiserver reads. authority: the CA of the current certificate."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._authorities = 0
        self.cas, self.certificate, self.key = (folder / name for name in ("cas.crt", "client.crt", "client.key"))
        self.authority = self.new_authority()
        self.trust([self.authority])
        self.present(self.authority)

    def new_authority(self) -> Authority:
        """Creates a CA that is not trusted yet."""
        self._authorities += 1
        folder = self._folder / str(self._authorities)
        folder.mkdir()
        return Authority(folder, "front-proxy-ca")

    def trust(self, authorities: Iterable[Authority]) -> None:
        """Replaces the trusted CAs."""
        _replace(self.cas, b"".join(authority.path.read_bytes() for authority in authorities))

    def present(self, authority: Authority) -> None:
        """Replaces the client certificate by one of this CA."""
        certificate, key = authority.issue(NAME)
        _replace(self.key, key.read_bytes())
        _replace(self.certificate, certificate.read_bytes())
        self.authority = authority


def _replace(path: Path, content: bytes) -> None:
    """Replaces the file atomically."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)
