"""The query of a metric request -> what is asked, or the error Kubernetes gives for it.

query: the first value of each parameter. Parameters that do not matter here are still checked, in the order Kubernetes
checks them; unknown ones are ignored.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from adapter.serving.api import durations, external, fields, selectors
from adapter.serving.api.fields import FieldSelectorError, FieldTerm
from adapter.serving.api.quoting import quoted
from adapter.serving.api.remembering import remembered
from adapter.serving.api.selectors import EVERYTHING, Selector, SelectorError
from adapter.serving.api.status import Document, Refusal, bad_request, failure

Query = Mapping[str, str]

# Far more than any HPA writes.
LONGEST_SELECTOR = 16_384

# A request is given up after so long, whatever its caller would wait.
LONGEST_WAIT_S = 60.0

# No digit fits in two places: trying both would take the square of their number.
_INTEGER = re.compile(r"[+-]?0*([1-9]\d*)?", re.ASCII)


def external_selector(query: Query) -> Selector:
    """What a request for an external metric selects. Raises Refusal."""
    selector, terms = _options(query)
    _check_versions(query)
    _check_known(terms)
    if watches(query):
        message = f'watch is not supported on resources of kind "*.{external.GROUP}"'
        raise Refusal(failure(405, "MethodNotAllowed", message, {"group": external.GROUP, "kind": "*"}))
    return selector


def object_selectors(query: Query, name: str) -> tuple[Selector, Selector]:
    """What a request for a custom metric selects: among the objects, among the series of each. Raises Refusal.

    name: of the path, which a fieldSelector has to agree with. A watch is answered like any request.
    """
    selector, terms = _options(query)
    _check_known(terms)
    if terms and fields.exact_name(terms) != name:
        raise Refusal(bad_request("fieldSelector metadata.name doesn't match requested name"))
    metric_selector = _selector(query, "metricLabelSelector")
    try:
        selectors.label_selector(metric_selector)
    except SelectorError as error:
        raise Refusal(bad_request(str(error))) from None
    return selector, metric_selector


def check_timeout(query: Query, *, watching: bool = False) -> float | None:
    """How long the caller waits at most, in seconds; None when he does not say, or longer than anyone may.

    watching: a watch has no deadline, nothing is looked at. Raises Refusal.
    """
    text = query.get("timeout", "")
    if not text or watching:
        return None
    try:
        timeout_s = durations.seconds(text)
    except durations.DurationError as error:
        raise Refusal(bad_request(f"invalid timeout specified in the request URL - time: {error}")) from None
    return timeout_s if 0 < timeout_s < LONGEST_WAIT_S else None


def watches(query: Query) -> bool:
    """Whether a watch is asked for: whatever is not false."""
    return "watch" in query and query["watch"].lower() not in ("false", "0")


def selected_name(query: Query) -> str:
    """The name that a fieldSelector asks for, "" when there is none, or anything of the query is wrong."""
    if "fieldSelector" not in query:
        return ""
    try:
        _, terms = _options(query)
    except Refusal:
        return ""
    name = fields.exact_name(terms) or ""
    return "" if name in (".", "..") or "/" in name or "%" in name else name


def _options(query: Query) -> tuple[Selector, Sequence[FieldTerm]]:
    """What every request that lists has. Raises Refusal."""
    for name in ("timeoutSeconds", "limit"):
        if name in query:
            _check_int64(query[name])
    return _selector(query, "labelSelector"), _field_terms(query)


def _check_int64(text: str) -> None:
    found = _INTEGER.fullmatch(text)
    if found is None or not text[-1:].isdigit():
        raise Refusal(bad_request(f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax"))
    # Compared as text, for a number may have thousands of digits.
    digits, largest = found[1] or "", str(2**63 - (text[0] != "-"))
    if (len(digits), digits) > (len(largest), largest):
        raise Refusal(bad_request(f"strconv.ParseInt: parsing {quoted(text)}: value out of range"))


def _selector(query: Query, name: str) -> Selector:
    text = _short(query, name)
    try:
        return _parsed(text)
    except SelectorError as error:
        raise Refusal(bad_request(str(error))) from None


@remembered(most=4096, longest=256, parts=",")
def _parsed(text: str) -> Selector:
    return selectors.parse(text) if text else EVERYTHING


def _field_terms(query: Query) -> Sequence[FieldTerm]:
    if "fieldSelector" not in query:
        return ()
    try:
        return fields.parse(_short(query, "fieldSelector"))
    except FieldSelectorError as error:
        raise Refusal(bad_request(str(error))) from None


def _short(query: Query, name: str) -> str:
    text = query.get(name, "")
    if len(text) > LONGEST_SELECTOR:
        message = f"{name} must be at most {LONGEST_SELECTOR} characters, got {len(text)}"
        raise Refusal(bad_request(message))
    return text


def _check_known(terms: Sequence[FieldTerm]) -> None:
    try:
        fields.check_known(terms)
    except FieldSelectorError as error:
        raise Refusal(bad_request(str(error))) from None


def _check_versions(query: Query) -> None:
    """resourceVersionMatch and sendInitialEvents: only where they mean something."""
    causes = list(_causes_of_watch(query) if watches(query) else _causes_of_list(query))
    if not causes:
        return
    details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": causes}
    faults = [f"{cause['field']}: {cause['message']}" for cause in causes]
    told = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
    raise Refusal(failure(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {told}', details))


def _causes_of_list(query: Query) -> Iterator[Document]:
    match, version = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    if match:
        if not version:
            yield _forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided")
        if query.get("continue"):
            yield _forbidden("resourceVersionMatch is forbidden when continue is provided")
        if match not in ("Exact", "NotOlderThan"):
            yield _not_supported(match, "Exact", "NotOlderThan", "")
        if match == "Exact" and version == "0":
            yield _forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    if "sendInitialEvents" in query:
        yield _forbidden("sendInitialEvents is forbidden for list", "sendInitialEvents")


def _causes_of_watch(query: Query) -> Iterator[Document]:
    match = query.get("resourceVersionMatch", "")
    if "sendInitialEvents" in query:
        if match != "NotOlderThan":
            yield _forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
    elif match:
        yield _forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
    if match and match != "NotOlderThan":
        yield _not_supported(match, "NotOlderThan")
    if match and query.get("continue"):
        yield _forbidden("resourceVersionMatch is forbidden when continue is provided")


def _forbidden(fault: str, field: str = "resourceVersionMatch") -> Document:
    return {"reason": "FieldValueForbidden", "message": f"Forbidden: {fault}", "field": field}


def _not_supported(given: str, *supported: str) -> Document:
    message = f"Unsupported value: {quoted(given)}: supported values: {', '.join(map(quoted, supported))}"
    return {"reason": "FieldValueNotSupported", "message": message, "field": "resourceVersionMatch"}
