"""A server over TLS, for clients with a certificate of its CA, and the files of such a client."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import trustme


@contextmanager
def secure_server(ca: trustme.CA, handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    server = HTTPServer(("127.0.0.1", 0), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answering(body: bytes) -> type[BaseHTTPRequestHandler]:
    """A handler that answers every request with the body."""

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.do_GET()

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Answering


def client_files(ca: trustme.CA, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The settings that trust the CA, and those of a certificate of the CA. Replaces the files of an earlier call."""
    ca.cert_pem.write_to_path(folder / "ca.pem")
    client = ca.issue_cert("adapter.test")
    client.cert_chain_pems[0].write_to_path(folder / "tls.crt")
    client.private_key_pem.write_to_path(folder / "tls.key")
    return {"ca_file": str(folder / "ca.pem")}, {
        "cert_file": str(folder / "tls.crt"),
        "key_file": str(folder / "tls.key"),
    }
