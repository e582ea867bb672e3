"""A body written once, sent to whoever does not have it yet."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from adapter.serving.api.status import Answer


@dataclass(frozen=True, slots=True)
class Stored:
    """A body with its validator. Made with `of`. headers: the Content-Type and the Etag among them."""

    body: bytes
    digest: str
    headers: Mapping[str, str]

    @classmethod
    def of(cls, body: bytes, headers: Mapping[str, str]) -> Self:
        """The digest is SHA-512, in upper-case hexadecimal digits, as Kubernetes has it."""
        digest = hashlib.sha512(body).hexdigest().upper()
        return cls(body, digest, {**headers, "Etag": f'"{digest}"'})

    def answer(self, if_none_match: str) -> Answer:
        """The body, or 304 for a caller who has it."""
        if is_known(self.headers["Etag"], if_none_match):
            return Answer(304, body=b"", headers={k: v for k, v in self.headers.items() if k != "Content-Type"})
        return Answer(200, body=self.body, headers=self.headers)


def is_known(etag: str, if_none_match: str) -> bool:
    """Whether a caller's If-None-Match names the validator (RFC 9110, 13.1.2)."""
    return any(tag.strip().removeprefix("W/") in ("*", etag) for tag in if_none_match.split(","))
