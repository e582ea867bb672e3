"""The differences from the recorded Go server that are intended, each with its reason.

A divergence applies to a kind of request, not to a line of a recording, and it also checks our response.
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs

from conformance.identities import UNVERIFIED
from conformance.recording import Outcome, Response, Row

JSON = "application/json"
_AGGREGATED = "as=APIGroupDiscoveryList"
_CUSTOM = "custom.metrics.k8s.io"
_LIST_OPTIONS = frozenset({"continue", "fieldSelector", "limit", "resourceVersion", "resourceVersionMatch", "timeout",
                           "timeoutSeconds", "watch"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Divergence:
    """An intended difference. request, theirs, ours, reason: for the documentation."""

    name: str
    request: str
    theirs: str
    ours: str
    reason: str
    applies: Callable[[Row], bool]
    accepts: Callable[[Row, Outcome], bool]


def find(row: Row, ours: Outcome) -> str:
    """The name of the divergence that explains our response; "" for none."""
    return next((each.name for each in DIVERGENCES if each.applies(row) and each.accepts(row, ours)), "")


def table() -> str:
    """The divergences in Markdown."""
    head = "| Name | Request | The Go server | Here | Why |\n|---|---|---|---|---|\n"
    rows = (f"| `{d.name}` | {d.request} | {d.theirs} | {d.ours} | {d.reason} |\n" for d in DIVERGENCES)
    return head + "".join(rows)


def _query(row: Row) -> dict[str, list[str]]:
    return parse_qs(row.request.target.partition("?")[2], keep_blank_values=True)


def _recorded_status(row: Row) -> int:
    return 0 if row.outcome is None else row.outcome.status


def _is_status(ours: Outcome, *codes: int) -> bool:
    """Whether the response is a `Status` document with one of the codes."""
    return ours is not None and ours.status in codes and ours.document.get("code") == ours.status


def _is_json(ours: Outcome, *codes: int) -> bool:
    return ours is not None and ours.status in codes and ours.media_type.startswith(JSON) and bool(ours.document)


def _lists_every_metric(_: Row, ours: Outcome) -> bool:
    if not _is_json(ours, 200) or ours is None or not ours.media_type.endswith(_AGGREGATED):
        return False
    versions = [version for group in ours.document.get("items", []) for version in group["versions"]]
    return bool(versions) and all(each["freshness"] == "Current" and each["resources"] for each in versions)


def _is_json_if_allowed(row: Row, ours: Outcome) -> bool:
    clauses = row.request.header("accept").split(",")
    allowed = any(each.split(";")[0].strip() in (JSON, "*/*") and "as=" not in each for each in clauses)
    success = _recorded_status(row) in (200, 406, 500) and _is_json(ours, 200)
    return success or _is_json(ours, _recorded_status(row)) or (not allowed and _is_status(ours, 406))


def _is_plain(row: Row) -> bool:
    return row.outcome is not None and row.outcome.status == 200 and row.outcome.media_type == JSON


def _is_not_a_status(row: Row) -> bool:
    return row.outcome is not None and row.outcome.status >= 400 and not row.outcome.media_type.startswith(JSON)


def _names_every_object(row: Row) -> bool:
    path = row.request.target.partition("?")[0].replace("%2A", "*")
    return "/custom.metrics.k8s.io/" in path and "/*/" in path


def _names_no_object_of_a_namespace(row: Row) -> bool:
    path = row.request.target.partition("?")[0]
    return _recorded_status(row) == 200 and f"/{_CUSTOM}/v" in path and path.count("/") in (6, 7)


def _same_without_delay(row: Row, ours: Outcome) -> bool:
    return isinstance(ours, Response) and "retry-after" not in ours.headers and _is_status(ours, _recorded_status(row))


DIVERGENCES = (
    Divergence(
        "filled-discovery", "`GET /apis` as aggregated discovery v2", "an empty list",
        "every group, version and metric",
        "clients believe an empty list: the API server then shows the version without a single metric",
        lambda row: row.outcome is not None and _AGGREGATED in row.outcome.media_type, _lists_every_metric,
    ),
    Divergence(
        "json-only", "an `Accept` header that is not JSON alone", "protobuf, YAML, or 406",
        "JSON where the header allows it, else 406",
        "no Kubernetes client needs another format: all of them accept JSON",
        lambda row: row.request.header("accept") not in ("", "*/*", JSON), _is_json_if_allowed,
    ),
    Divergence(
        "bad-metric-selector", "a `metricLabelSelector` that does not parse", "500", "400, as for `labelSelector`",
        "the fault is the client's",
        lambda row: _recorded_status(row) == 500 and "metricLabelSelector" in _query(row),
        lambda _, ours: _is_status(ours, 400),
    ),
    Divergence(
        "unverified-certificate", "a client certificate of an unknown CA, expired, or not for clients", "401",
        "the TLS handshake fails", "Python's TLS verifies every certificate that a client presents",
        lambda row: row.request.identity in UNVERIFIED, lambda _, ours: ours is None,
    ),
    Divergence(
        "source-crash", "a metric whose source raises an unexpected error", "the connection is closed",
        "500 `InternalError`; the connection stays open", "the HPA shows the `Status` in its condition",
        lambda row: row.outcome is None, lambda _, ours: _is_status(ours, 500),
    ),
    Divergence(
        "no-retry-after", "a metric whose source is unavailable for a known time", "`Retry-After`",
        "the same error without it", "the HPA controller would block one of its five workers for that time",
        lambda row: row.outcome is not None and "retry-after" in row.outcome.headers, _same_without_delay,
    ),
    Divergence(
        "list-options", "field selectors, watches, timeouts and paging", "400, 405, 422 or 504 where they are invalid",
        "400 for a field selector; the others are ignored",
        "no Kubernetes client sends them to a metrics API",
        lambda row: _recorded_status(row) in (200, 400, 405, 422, 504) and bool(_LIST_OPTIONS & _query(row).keys()),
        lambda _, ours: _is_json(ours, 200) or _is_status(ours, 400),
    ),
    Divergence(
        "no-impersonation", "`Impersonate-*` headers", "the rights of the impersonated user", "the headers are ignored",
        "kube-apiserver resolves impersonation before it forwards a request",
        lambda row: bool(row.request.header("impersonate-user")), lambda _, ours: _is_json(ours, 200, 400, 403),
    ),
    Divergence(
        "no-pods-metrics", "custom metrics of every object (`*`)", "a value for each object", "400 or 404",
        "a signal describes a whole workload, so that HPAs use `Object` and `External` metrics",
        _names_every_object, lambda _, ours: _is_status(ours, 400, 404),
    ),
    Divergence(
        "no-cluster-metrics", "custom metrics of a namespace, or of an object outside of namespaces", "a value", "404",
        "the objects that run streaming jobs are in a namespace",
        _names_no_object_of_a_namespace, lambda _, ours: _is_status(ours, 404),
    ),
    Divergence(
        "status-document", "an error that is plain text there", "plain text", "a `Status` with the same code",
        "clients show the message of a `Status`",
        _is_not_a_status, lambda row, ours: _is_status(ours, _recorded_status(row)),
    ),
    Divergence(
        "every-version", "`GET /apis`, `GET /apis/<group>`", "the first version of each group", "every version",
        "a client of discovery sees what is served; the addresses by client network, which no client reads, are absent",
        lambda row: _is_plain(row) and row.request.target.rstrip("/") in ("/apis", f"/apis/{_CUSTOM}"),
        lambda _, ours: _is_json(ours, 200),
    ),
    Divergence(
        "openapi-v2-alone", "`GET /openapi/v3...`", "OpenAPI 3.0 documents", "404",
        "kube-apiserver then converts `/openapi/v2`, as it does for every server without version 3",
        lambda row: _recorded_status(row) == 200 and row.request.target.startswith("/openapi/v3"),
        lambda _, ours: _is_status(ours, 404),
    ),
    Divergence(
        "proxied-paths-alone", "`GET /version`, `GET /`", "its release, its paths", "404",
        "kube-apiserver answers these paths itself",
        lambda row: _recorded_status(row) == 200 and row.request.target in ("/version", "/"),
        lambda _, ours: _is_status(ours, 404),
    ),
)  # fmt: skip
