"""Unusual requests over TLS: every response is well-formed, and none serves a client without the right."""

from fuzz_requests import requests
from hypothesis import given, settings

from conformance.recording import Request, Response
from conformance.server import Running

# Identities that no access review allows, whatever headers they send; no strategy makes the good token.
DENIED = ("none", "badproxy", "dev")
# Health checks need no right.
PUBLIC = ("/healthz", "/livez", "/readyz")


def is_well_formed(response: Response, request: Request) -> bool:
    """Whether a Kubernetes client can read the response."""
    if request.method == "HEAD" or not response.media_type.startswith("application/json"):
        return True
    document = response.document
    return document != {} and (response.status < 400 or document.get("code", response.status) == response.status)


@settings(max_examples=max(60, settings().max_examples))
@given(requests)
def test_every_response_is_well_formed_and_no_denied_client_is_served(running: Running, request: Request) -> None:
    """case 37, 38, 52 to 59"""
    response = running.client.send(request)
    assert response is not None
    assert response.status < 500 or response.status == 501
    assert is_well_formed(response, request)
    if request.identity in DENIED and not request.target.startswith(PUBLIC):
        assert response.status >= 400
