"""Requests of 16 KiB in one place."""

from urllib.parse import quote

from fuzz_inputs import Lines, Sent, sendable

from adapter.serving.api.parameters import LONGEST_SELECTOR

PIECES = (
    *'a,()!=>\\./;%&+:-"\0é\u2028 10',
    *("a,", "a=b,", "a in (", "a in (b,c),", "!a,", "a>1,", "a notin (),", "workload in (orders),", "x" * 63 + ","),
    *("a.", "a-", "-a", "a/b/", "metadata.name=x,", "metadata.name=\\", "1h", "1.", ".1", "9", "1_", "0"),
    *("*/*,", "application/json;q=0.5,", ";q=1", ";a=b", "a/b;", "text/*,", 'W/"a",', "application/json;as=Table,"),
    *("Bearer ", "base64url.bearer.authorization.k8s.io.YQ,", "%2F", "%zz", "/..", "/.", "//", "exclude=a&"),
)
_HEADERS = (
    *("accept", "accept-encoding", "user-agent", "authorization", "if-none-match", "audit-id", "cookie"),
    *("x-remote-group", "x-remote-extra-a", "impersonate-user", "impersonate-group", "impersonate-extra-a"),
    "sec-websocket-protocol",
)
PLACES = (
    *("path", "segment", "name", "labelSelector", "metricLabelSelector", "fieldSelector", "timeout", "limit"),
    *("resourceVersionMatch", "exclude", "hash", *_HEADERS),
)
METRICS = (
    "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/required_workers",
    "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/deployments.apps/*/required_workers",
)
PATHS = (
    *METRICS,
    "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/utilization",
    "/apis",
    "/readyz",
    "/openapi/v3",
    "/openapi/v3/apis/external.metrics.k8s.io/v1beta1",
    "/version",
)
_ALWAYS: Lines = ((b"x-remote-user", b"alice"), (b"connection", b"Upgrade"), (b"upgrade", b"websocket"))


def long(piece: str, place: str, path: str, size: int = LONGEST_SELECTOR) -> Sent:
    """A request with as many of the piece as fit in so many bytes. place: of PLACES."""
    text = piece * (size // len(piece.encode()))
    encoded = quote(text, safe="!()*,-./:;=<>").encode()
    plain, query, lines = path.encode(), b"", _ALWAYS
    if place == "path":
        plain = b"/" + encoded
    elif place == "segment":
        plain = plain.replace(b"shop", encoded)
    elif place == "name":
        query = encoded
    elif place in _HEADERS:
        lines = (*_ALWAYS, (place.encode(), sendable(text.encode())))
    else:
        query = place.encode() + b"=" + encoded
    return Sent("GET", plain, query, lines)
