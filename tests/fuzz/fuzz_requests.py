"""Unusual requests to the metrics API."""

from hypothesis import strategies as st

from conformance.identities import NAMES, UNVERIFIED
from conformance.recording import Request

_EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
_CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2"
_ROOTS = ("", "/apis", _EXTERNAL, f"{_EXTERNAL}/namespaces/default", f"{_CUSTOM}/namespaces/ns", "/openapi/v3",
          "/livez", "/readyz")  # fmt: skip
_NAMES = ("my-external-metric", "deployments.apps", "orders", "*", "metrics", "namespaces", "", ".", "..", "%2F",
          "%2e%2e", "%00", "%ff", "%", "é", "a" * 300)  # fmt: skip
_SELECTORS = ("foo=bar", "foo", "!foo", "foo in (a,b)", "foo in (", "foo notin ()", "a==b,", "$", "foo>1", "=" * 50)
_HEADERS = ("X-Remote-User", "X-Remote-Group", "X-Remote-Extra-Foo", "X-Remote-Extra-%", "Authorization", "Accept",
            "If-None-Match", "Impersonate-User", "Expect", "Upgrade", "Connection")  # fmt: skip
_VALUES = ("alice", "bob", "system:masters", "Bearer bad", "Bearer", "application/json", "application/yaml", "*/*",
           '"a"', "W/", "100-continue", "websocket", "close", "", "é", ",", ";q=x")  # fmt: skip
# What a request line or a header can carry; other bytes belong to `fuzz_bytes`.
_TEXT = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x2FF, exclude_categories=("Cc",)), max_size=30)

_segments = st.sampled_from(_NAMES) | _TEXT.map(lambda text: text.replace("?", ""))
_paths = st.tuples(st.sampled_from(_ROOTS), st.lists(_segments, max_size=4)).map(
    lambda parts: "/".join([parts[0], *parts[1]]) or "/"
)
_parameters = st.tuples(
    st.sampled_from(("labelSelector", "metricLabelSelector", "fieldSelector", "watch", "timeout", "limit", "verbose")),
    st.sampled_from(_SELECTORS).map(lambda text: text.replace(" ", "+")) | _TEXT,
).map("=".join)
_targets = st.tuples(_paths, st.lists(_parameters, max_size=3)).map(
    lambda parts: parts[0] + ("?" + "&".join(parts[1]) if parts[1] else "")
)
_headers = st.lists(st.tuples(st.sampled_from(_HEADERS), st.sampled_from(_VALUES) | _TEXT), max_size=4).map(tuple)

requests = st.builds(
    Request,
    st.sampled_from(("GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get")),
    _targets,
    st.sampled_from([name for name in NAMES if name not in UNVERIFIED]),
    _headers,
    st.sampled_from((b"", b"", b"{}", b"\xff" * 1000)),
)
