"""The Accept header: this server writes JSON, and discovery also in its aggregated form."""

from adapter.apiserver.answer import JSON
from adapter.apiserver.cache import cache
from adapter.apiserver.status import not_acceptable

# By version of apidiscovery.k8s.io; API servers before Kubernetes 1.30 ask for v2beta1.
AGGREGATED = {
    version: f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
}
_RANGES = (JSON, "application/*", "*/*")


def check_json(accept: str) -> None:
    """Raise StatusError (406) where the client does not accept JSON."""
    if accept and not _accepts_json(accept):
        raise not_acceptable(JSON)


def aggregated_version(accept: str) -> str | None:
    """The first version of aggregated discovery that the client lists before plain JSON; None for plain JSON."""
    return _aggregated_version(accept) if "as=" in accept else None


@cache(entries=1024, longest=1024)
def _accepts_json(accept: str) -> bool:
    """Whether a clause allows JSON in its plain form; `as` asks for another one, such as Table."""
    return any(media in _RANGES and "as" not in parameters for media, parameters in _clauses(accept))


@cache(entries=1024, longest=1024)
def _aggregated_version(accept: str) -> str | None:
    for media, parameters in _clauses(accept):
        if media not in _RANGES:
            continue
        if "as" not in parameters:
            return None
        wanted = (parameters.get("g"), parameters["as"])
        if wanted == ("apidiscovery.k8s.io", "APIGroupDiscoveryList") and parameters.get("v") in AGGREGATED:
            return parameters["v"]
    return None


def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Media range and parameters of each clause. Quality values are ignored: Kubernetes clients write none."""
    clauses = []
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        pairs = (parameter.partition("=") for parameter in parameters)
        clauses.append((media, {name.strip(): value.strip() for name, _, value in pairs}))
    return clauses
