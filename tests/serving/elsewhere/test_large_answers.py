"""An answer of another adapter that is larger than allowed costs nothing but itself."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme
from strange_servers import tls_of

from adapter.config import OtherAdapter
from adapter.serving.elsewhere.neighbour import Neighbour
from adapter.serving.elsewhere.replies import UnansweredError

LARGEST = 100_000
SIZES = {"a byte too many": LARGEST + 1, "a piece too many": LARGEST + 60_000, "far too many": 50 * LARGEST}


class Sizes(BaseHTTPRequestHandler):
    """Answers /length/<bytes> and /chunks/<bytes>, and keeps the connection."""

    protocol_version = "HTTP/1.1"
    open_now = 0

    def setup(self) -> None:
        super().setup()
        type(self).open_now += 1

    def finish(self) -> None:
        type(self).open_now -= 1
        super().finish()

    def do_GET(self) -> None:
        _, way, size = self.path.split("/")
        self.send_response(200)
        if way == "length":
            self.send_header("Content-Length", size)
            said = b"x" * int(size)
        else:
            self.send_header("Transfer-Encoding", "chunked")
            said = b"%x\r\n" % int(size) + b"x" * int(size) + b"\r\n0\r\n\r\n"
        self.end_headers()
        try:
            self.wfile.write(said)
        except OSError:  # the caller had enough
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def neighbour(tmp_path: Path) -> Iterator[Neighbour]:
    Sizes.open_now = 0
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    (tmp_path / "token").write_text("of-this-pod")
    with ThreadingHTTPServer(("127.0.0.1", 0), Sizes) as server:
        tls = tls_of(authority.issue_cert("localhost"))
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url, files = f"https://localhost:{server.server_port}", {"ca_file": "ca.crt", "token_file": "token"}
        other = OtherAdapter(url=url, **{name: str(tmp_path / file) for name, file in files.items()})
        asking = Neighbour(other, deadline_s=10.0, largest=LARGEST)
        try:
            yield asking
        finally:
            asking.stop()
            server.shutdown()


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("way", ["length", "chunks"])
def test_it_leaves_no_connection_behind(neighbour: Neighbour, way: str, size: int) -> None:
    for _ in range(20):
        with pytest.raises(UnansweredError, match=f"at most {LARGEST} bytes"):
            neighbour.ask(f"/{way}/{size}", {})
        assert neighbour.ask(f"/{way}/{LARGEST}", {}).body == b"x" * LARGEST
    assert Sizes.open_now <= 3, "one that is kept, and those whose end was not seen yet"
