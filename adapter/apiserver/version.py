"""`/version`: the release, in the form that `kubectl version` reads."""

import platform
import re
import sys

from adapter.apiserver.answer import Answer, Handler, json
from adapter.apiserver.negotiation import check_json
from adapter.apiserver.request import Request
from adapter.apiserver.status import Document

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)[.+]?(.*)")


def version_document(release: str) -> Document:
    """The document of a release of three numbers. Fields of Go alone are empty."""
    found = _RELEASE.fullmatch(release)
    if found is None:
        raise ValueError(f"a release must begin with three numbers, as in 1.2.3, got {release!r}")
    major, minor, patch, rest = found.groups()
    machine = platform.machine()
    return {
        "major": major,
        "minor": minor,
        # kubectl fails unless this is a semantic version.
        "gitVersion": f"v{major}.{minor}.{patch}" + (f"-{rest}" if rest else ""),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": sys.implementation.name,
        "platform": f"{sys.platform}/{_ARCHITECTURES.get(machine, machine)}",
    }


def handler(document: Document) -> Handler:
    """Answers `/version`."""

    def answer(request: Request) -> Answer:
        check_json(request.header(b"accept"))
        return json(document)

    return answer
