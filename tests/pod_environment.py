"""The environment of a pod: a service account, the address of the API server, and a proxy for what is outside."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme


@contextmanager
def unused_proxy(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[None]:
    """A pod without an API server at its address, whose proxy fails the test if it gets a connection."""
    (folder / "token").write_text("token")
    trustme.CA().cert_pem.write_to_path(folder / "ca.crt")
    incluster = "kubernetes.config.incluster_config.SERVICE"
    monkeypatch.setattr(f"{incluster}_TOKEN_FILENAME", str(folder / "token"))
    monkeypatch.setattr(f"{incluster}_CERT_FILENAME", str(folder / "ca.crt"))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.setblocking(False)
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "9")
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        yield
        with pytest.raises(BlockingIOError):  # no connection waits
            proxy.accept()
