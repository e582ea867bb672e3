"""The query of a metric request -> what is asked, or the error Kubernetes gives for it."""

import re
from collections.abc import Mapping

from adapter.serving import selectors
from adapter.serving.external import GROUP, Question
from adapter.serving.status import Answer, bad_request, failure

# Far more than any HPA writes, and parsed in a millisecond.
LONGEST_SELECTOR = 16_384

_DURATION = re.compile(r"[+-]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_FIELDS = ("metadata.name", "metadata.namespace")


def question(namespace: str, metric: str, query: Mapping[str, str]) -> Question | Answer:
    """What is asked. query: the first value of each parameter. Parameters that do not matter here are still checked,
    as Kubernetes does; unknown ones are ignored."""
    fault = _fault(query)
    if fault is not None:
        return fault
    text = query.get("labelSelector", "")
    if len(text) > LONGEST_SELECTOR:
        return bad_request(f"labelSelector must be at most {LONGEST_SELECTOR} characters, got {len(text)}")
    try:
        return Question(namespace, metric, selectors.parse(text))
    except selectors.SelectorError as error:
        return bad_request(str(error))


def _fault(query: Mapping[str, str]) -> Answer | None:
    faults = (_timeout(query), _watch(query), _fields(query), _limit(query), _version_match(query))
    return next((fault for fault in faults if fault is not None), None)


def _timeout(query: Mapping[str, str]) -> Answer | None:
    given = query.get("timeout", "")
    if not given or _DURATION.fullmatch(given):
        return None
    return bad_request(f'invalid timeout specified in the request URL - time: invalid duration "{given}"')


def _watch(query: Mapping[str, str]) -> Answer | None:
    if query.get("watch", "false").lower() in ("false", "0", ""):
        return None
    message = f'watch is not supported on resources of kind "*.{GROUP}"'
    return failure(405, "MethodNotAllowed", message, {"group": GROUP, "kind": "*"})


def _fields(query: Mapping[str, str]) -> Answer | None:
    """fieldSelector: the two fields every object has are accepted and ignored."""
    for term in filter(None, query.get("fieldSelector", "").split(",")):
        name, operator, _ = re.split(r"(!=|==?|$)", term, maxsplit=1)
        if not operator:
            return bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
        if name not in _FIELDS:
            return bad_request(f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"')
    return None


def _limit(query: Mapping[str, str]) -> Answer | None:
    given = query.get("limit", "")
    if not given or _INTEGER.fullmatch(given):
        return None
    return bad_request(f'strconv.ParseInt: parsing "{given}": invalid syntax')


def _version_match(query: Mapping[str, str]) -> Answer | None:
    if not query.get("resourceVersionMatch") or query.get("resourceVersion"):
        return None
    fault = "resourceVersionMatch is forbidden unless resourceVersion is provided"
    cause = {"reason": "FieldValueForbidden", "message": f"Forbidden: {fault}", "field": "resourceVersionMatch"}
    details = {"group": "meta.k8s.io", "kind": "ListOptions", "causes": [cause]}
    message = f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: {fault}'
    return failure(422, "Invalid", message, details)
