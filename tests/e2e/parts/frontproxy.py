"""Who kube-apiserver is towards servers like ours: the certificate it presents, and the CAs it tells them to trust.

It reads both files anew when they change.
"""

from collections.abc import Iterable
from pathlib import Path

from parts.certificates import Authority

NAME = "front-proxy-client"


class FrontProxy:
    """authority: has signed the certificate that is presented now."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._made = 0
        self.cas, self.certificate, self.key = (folder / name for name in ("cas.crt", "client.crt", "client.key"))
        self.authority = self.new_authority()
        self.trust([self.authority])
        self.present(self.authority)

    def new_authority(self) -> Authority:
        """A CA that nobody trusts yet."""
        self._made += 1
        folder = self._folder / str(self._made)
        folder.mkdir()
        return Authority(folder, "front-proxy-ca")

    def trust(self, authorities: Iterable[Authority]) -> None:
        """From now on certificates of these count."""
        _replace(self.cas, b"".join(authority.path.read_bytes() for authority in authorities))

    def present(self, authority: Authority) -> None:
        """From now on its certificate is one of this CA."""
        certificate, key = authority.issue(NAME)
        _replace(self.key, key.read_bytes())
        _replace(self.certificate, certificate.read_bytes())
        self.authority = authority


def _replace(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)
