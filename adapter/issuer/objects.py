"""Read and write single objects of the cluster."""

import base64
from binascii import Error as Base64Error
from collections.abc import Mapping
from typing import Any, Protocol

from adapter.apiserver.cluster_api import MANAGER, SOURCE
from adapter.errors import SourceError

API_SERVICES_PATH = "/apis/apiregistration.k8s.io/v1/apiservices"

Object = Mapping[str, Any]


class ConflictError(SourceError):
    """Another writer changed the object meanwhile."""


class Api(Protocol):
    """What the issuer needs of the cluster's API. Both raise SourceError without an answer."""

    def get(self, path: str) -> tuple[int, Any]:
        """Status and document."""

    def apply(self, path: str, document: object, manager: str = MANAGER) -> tuple[int, Any]:
        """Server-side apply as this field manager; status and document."""


def secret_path(namespace: str, name: str) -> str:
    """The API path of a Secret."""
    return f"/api/v1/namespaces/{namespace}/secrets/{name}"


def owner_of(path: str, api_service: Object) -> str:
    """The Service that the APIService at a path leads to, as namespace/name. Raises SourceError if it is none."""
    try:
        service = api_service["spec"].get("service")
        return "kube-apiserver" if service is None else f"{service['namespace']}/{service['name']}"
    except (AttributeError, KeyError, TypeError) as error:
        raise SourceError(SOURCE, f"GET {path}: expected an APIService") from error


def read(api: Api, path: str) -> Object:
    """An object that exists. Raises SourceError."""
    found = read_if_any(api, path)
    if found is None:
        raise SourceError(SOURCE, f"GET {path}: it does not exist; helm upgrade makes it again, a server may not")
    return found


def read_if_any(api: Api, path: str) -> Object | None:
    """An object, None if it does not exist. Raises SourceError."""
    status, document = api.get(path)
    if status == 404:
        return None
    if status == 200 and isinstance(document, dict) and isinstance(document.get("metadata"), dict):
        return document
    raise SourceError(SOURCE, f"GET {path}: expected an object, got {status}{'; allow get of it' * (status == 403)}")


def write(api: Api, path: str, found: Object, fields: Object) -> None:
    """Apply fields to the object as it was found. Raises SourceError, and ConflictError if it has changed since."""
    metadata = {key: found["metadata"][key] for key in ("name", "resourceVersion", "uid")}
    document = {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": metadata, **fields}
    _apply(api, path, document, MANAGER)


def create(api: Api, path: str, document: Object) -> Object:
    """The object at a path, created if it does not exist. Raises SourceError.

    A field manager of its own leaves what other managers wrote, and a later `write` leaves what it wrote. Unlike POST,
    an apply has a name, so that RBAC can limit the right to create to it.
    """
    return _apply(api, path, document, f"{MANAGER}-create")


def _apply(api: Api, path: str, document: Object, manager: str) -> Object:
    status, answer = api.apply(path, document, manager)
    if status == 409:
        raise ConflictError(SOURCE, f"PATCH {path}: another writer changed it meanwhile; trying again")
    if status in (200, 201) and isinstance(answer, dict):
        return answer
    fix = "; allow create and patch of it" if status == 403 else ""
    message = answer.get("message", "") if isinstance(answer, dict) else ""
    raise SourceError(SOURCE, f"PATCH {path}: expected an object, got {status}{fix}: {message}".removesuffix(": "))


def data_of(secret: Object) -> Mapping[str, bytes]:
    """The decoded data of a Secret."""
    return {key: decode(text) for key, text in (secret.get("data") or {}).items()}


def decode(text: object) -> bytes:
    """The bytes of base64; empty if the text is not base64."""
    try:
        return base64.b64decode(text or "") if isinstance(text, str) else b""
    except Base64Error:
        return b""


def encode(content: bytes) -> str:
    """Bytes as base64, as Kubernetes writes them in JSON."""
    return base64.b64encode(content).decode()


def write_data(api: Api, path: str, found: Object, data: Mapping[str, bytes]) -> None:
    """Apply the whole data of a Secret. Keys that this process wrote before and now leaves out are removed."""
    write(api, path, found, {"data": {key: encode(content) for key, content in data.items()}})
