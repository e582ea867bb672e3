"""An Accept header -> what may be sent. JSON only: clients decode by Content-Type, the HPA takes it too."""

from dataclasses import dataclass

from adapter.serving.status import Answer, failure

MEDIA_TYPES = "application/json"

_JSON = ("application/json", "application/*", "*/*")
_AGGREGATED = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}


@dataclass(frozen=True, slots=True)
class _Clause:
    media_type: str
    parameters: dict[str, str]


def _clauses(accept: str) -> list[_Clause]:
    clauses = []
    for text in filter(str.strip, accept.split(",")):
        media_type, *parameters = (part.strip() for part in text.split(";"))
        pairs = (parameter.partition("=") for parameter in parameters)
        clauses.append(_Clause(media_type, {key.strip(): value.strip() for key, _, value in pairs}))
    return clauses


def takes_json(accept: str) -> Answer | None:
    """None when plain JSON may be sent, else the 406. An empty header accepts everything."""
    clauses = _clauses(accept)
    known = [clause for clause in clauses if clause.media_type in _JSON]
    if not clauses or any("as" not in clause.parameters for clause in known):
        return None
    return _unknown_form() if known else _unknown_type()


def takes_aggregated(accept: str) -> bool:
    """Whether aggregated discovery v2 is wanted: it stands before any clause that plain JSON satisfies."""
    for clause in _clauses(accept):
        if clause.media_type not in _JSON:
            continue
        if _AGGREGATED.items() <= clause.parameters.items():
            return True
        if "as" not in clause.parameters:
            return False
    return False


def _unknown_form() -> Answer:
    message = f"only the following media types are accepted: {MEDIA_TYPES}"
    return Answer(406, failure(406, "NotAcceptable", message).document, indented=True)


def _unknown_type() -> Answer:
    message = f"406: Not Acceptable\n\nAvailable representations: {MEDIA_TYPES}"
    return Answer(406, failure(406, "NotAcceptable", message, {}).document, indented=True)
