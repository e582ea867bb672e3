"""Records what a real Prometheus answers to our queries, so that the tests can replay it without one.

    python tests/sources/record_prometheus.py PATH/TO/prometheus [NAME_fleet]

Starts an exporter whose series have the form of the fleet's exporters, and Prometheus beside it, both on loopback; asks
every query of the presets, and some that fail; writes the fleet's file in tests/data/prometheus; stops both.
"""

import importlib
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from adapter.sources.prometheus_plan import queries

ANSWERS = Path(__file__).parents[1] / "data" / "prometheus"


class Exporter(BaseHTTPRequestHandler):
    """Serves the series of the moment."""

    began_s = int(time.time())
    fleet: Any = None

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(self.fleet.exposition(self.began_s, int(time.time()) - self.began_s).encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


def record(fleet: Any, url: str, at_s: int) -> list[dict[str, object]]:
    """Every answer with its request."""
    texts = [query.text for query in queries(fleet.CONFIG, "main")] + list(fleet.FAILING)
    requests = [("query", {"query": text, "time": str(at_s)}) for text in texts]
    span = {"start": str(at_s - 20), "end": str(at_s), "step": "10"}
    requests += [("query_range", {"query": text, **span}) for text in texts]
    requests.append(("query_range", {"query": "up", "start": "0", "end": "11001", "step": "1"}))
    answers = [(kind, form, httpx.post(f"{url}/api/v1/{kind}", data=form)) for kind, form in requests]
    return [{"path": k, "form": f, "status": a.status_code, "answer": a.json()} for k, f, a in answers]


def main(program: str, name: str = "prometheus_fleet") -> None:
    """Start, wait for 93 s of samples, record, stop."""
    Exporter.fleet = importlib.import_module(name)
    exporter = ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    threading.Thread(target=exporter.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "prometheus.yml")
        target = f"127.0.0.1:{exporter.server_port}"
        scrape = {"job_name": "fleet", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}
        settings.write_text(json.dumps({"scrape_configs": [scrape]}))
        with socket.create_server(("127.0.0.1", 0)) as probe:
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        options = [f"--config.file={settings}", f"--storage.tsdb.path={folder}/data", f"--web.listen-address={address}"]
        server = subprocess.Popen(
            [program, *options],
            stderr=subprocess.DEVNULL,
        )
        try:
            at_s = Exporter.began_s + 93  # a fixed age, so that a new record has the same counts
            time.sleep(at_s + 1 - time.time())
            answers = record(Exporter.fleet, f"http://{address}", at_s)
        finally:
            server.terminate()
            server.wait(timeout=30)
            exporter.shutdown()
            exporter.server_close()
    (ANSWERS / Exporter.fleet.ANSWERS).write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
