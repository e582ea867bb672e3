import pytest

from adapter.apiserver.request import client_certificate


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, None),
        ({"asgi.scope": {"type": "http"}}, None),
        ({"asgi.scope": {"extensions": {}}}, None),
        ({"asgi.scope": {"extensions": {"tls": {}}}}, None),
        ({"asgi.scope": {"extensions": {"tls": {"client_cert": b"der"}}}}, b"der"),
    ],
)
def test_the_certificate_comes_from_the_tls_extension_of_the_scope(environ: dict, expected: bytes | None) -> None:
    assert client_certificate(environ) == expected
