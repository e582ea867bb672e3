"""`/version`: which release this is, in the form that `kubectl version` reads."""

import platform
import re
import sys
from dataclasses import dataclass, field

from adapter import __version__
from adapter.serving.api import only_json
from adapter.serving.api.request import Request
from adapter.serving.api.status import JSON_CONTENT, Answer, Document, encode, method_not_allowed, no_such_resource

PATH = "/version"

_RANGES = ("application/json", "*/*")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)[.+]?(.*)")


def of_release(release: str = __version__) -> Document:
    """The document of a release of three numbers. What Kubernetes names but does not exist here is empty."""
    found = _RELEASE.fullmatch(release)
    if found is None:
        raise ValueError(f"a release must begin with three numbers, as in 1.2.3, got {release!r}")
    major, minor, patch, rest = found.groups()
    machine = platform.machine()
    return {
        "major": major,
        "minor": minor,
        # A semantic version, or `kubectl version` fails.
        "gitVersion": f"v{major}.{minor}.{patch}" + (f"-{rest}" if rest else ""),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": sys.implementation.name,
        "platform": f"{sys.platform}/{_ARCHITECTURES.get(machine, machine)}",
    }


@dataclass(frozen=True, slots=True)
class Version:
    """Answers `/version` with a document."""

    document: Document = field(default_factory=of_release)

    def answer(self, request: Request) -> Answer | None:
        """The document, in indented JSON and nothing else; None for a path that is not below `/version`."""
        if request.path.rstrip("/") != PATH:
            return no_such_resource() if request.path.startswith(f"{PATH}/") else None
        if request.method != "GET":
            return method_not_allowed()
        body = encode(self.document, indented=True)
        return only_json.refusal(request, _RANGES) or Answer(200, body=body, headers=JSON_CONTENT)
