"""A shared token in a Secret."""

import secrets
from collections.abc import Mapping
from pathlib import Path

import structlog

from adapter.apiserver.cluster_api import SOURCE
from adapter.errors import SourceError
from adapter.file_replacement import replace_file
from adapter.issuer.objects import Api, data_of, read, write_data

KEY = "token"
_BYTES = 36  # 48 characters

_log = structlog.get_logger(__name__)


class SharedToken:
    """The key `token` of a Secret, made once, and copied to a file. path: of the Secret in the API."""

    def __init__(self, api: Api, path: str, file: Path) -> None:
        self._api = api
        self._path = path
        self._file = file

    def reconcile(self) -> None:
        """Make a token if there is none. Raises SourceError."""
        found = read(self._api, self._path)
        if not _token(data_of(found)):
            write_data(self._api, self._path, found, {KEY: secrets.token_urlsafe(_BYTES).encode()})
            _log.info("made a token", secret=self._path)

    def on_lost_lease(self) -> None:
        """Nothing: a token is made in one step."""

    def sync_files(self) -> None:
        """Copy the token to the file. Raises SourceError."""
        token = _token(data_of(read(self._api, self._path)))
        if not token:
            raise SourceError(SOURCE, f"{self._path}: expected a token, got none yet")
        replace_file(self._file, token, is_private=True)


def _token(data: Mapping[str, bytes]) -> bytes:
    """The token; empty if a header cannot carry it."""
    token = data.get(KEY, b"").strip()
    return token if token.isascii() and token.decode("ascii").isprintable() else b""
