"""The Accept header: this server writes JSON, and discovery also in its aggregated form."""

from adapter.apiserver.answer import JSON
from adapter.apiserver.cache import cache
from adapter.apiserver.status import not_acceptable

AGGREGATED = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"  # since Kubernetes 1.30
_KIND = ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")
_RANGES = (JSON, "application/*", "*/*")


def check_json(accept: str) -> None:
    """Raise StatusError (406) where the client does not accept JSON."""
    if accept and not _accepts_json(accept):
        raise not_acceptable(JSON)


def wants_aggregated(accept: str) -> bool:
    """Whether the client lists aggregated discovery before plain JSON."""
    return "as=" in accept and _wants_aggregated(accept)


@cache(entries=1024, longest=1024)
def _accepts_json(accept: str) -> bool:
    """Whether a clause allows JSON in its plain form; `as` asks for another one, such as Table."""
    return any(media in _RANGES and "as" not in parameters for media, parameters in _clauses(accept))


@cache(entries=1024, longest=1024)
def _wants_aggregated(accept: str) -> bool:
    for media, parameters in _clauses(accept):
        kind = tuple(parameters.get(name) for name in ("g", "v", "as"))
        if media in _RANGES and (kind == _KIND or "as" not in parameters):
            return kind == _KIND
    return False


def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Media range and parameters of each clause. Quality values are ignored: Kubernetes clients write none."""
    clauses = []
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        pairs = (parameter.partition("=") for parameter in parameters)
        clauses.append((media, {name.strip(): value.strip() for name, _, value in pairs}))
    return clauses
