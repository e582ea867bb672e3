"""A Prometheus server that scrapes fixed addresses."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import yaml

from bench.tool_folder import tools
from parts.process import HOST, Process, free_port

TOOL = "prometheus-0.315.0"


class Prometheus(Process):
    """Listens at `url`. settings: its configuration file, as an object."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], *options: str, host: str = HOST) -> None:
        folder.mkdir(parents=True)
        address = f"{host}:{free_port()}"
        self.url = f"http://{address}"
        file = folder / "prometheus.yml"
        file.write_text(yaml.safe_dump(settings))
        named = (f"--config.file={file}", f"--web.listen-address={address}", f"--storage.tsdb.path={folder}/data")
        super().__init__("prometheus", [tools() / TOOL / "prometheus", *named, *options], folder)

    def start(self) -> None:
        """Returns when the server is ready."""
        super().start()
        self.ready(lambda: httpx.get(f"{self.url}/-/ready", timeout=2).status_code == 200)

    def query(self, promql: str) -> list[dict[str, Any]]:
        """The result of an instant query."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": promql}, timeout=5).json()
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result


def scraping(targets: Mapping[str, str]) -> dict[str, Any]:
    """Settings that scrape every two seconds. targets: job -> "host:port"."""
    jobs = [{"job_name": job, "static_configs": [{"targets": [address]}]} for job, address in targets.items()]
    return {"global": {"scrape_interval": "2s"}, "scrape_configs": jobs}
