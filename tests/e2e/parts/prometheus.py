"""A Prometheus server that scrapes the addresses it is given."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import yaml

from parts.process import HOST, Process, free_port, tools


class Prometheus:
    """targets: job -> "host:port", scraped every two seconds."""

    def __init__(self, folder: Path, targets: Mapping[str, str]) -> None:
        folder.mkdir(parents=True)
        port = free_port()
        self.url = f"http://{HOST}:{port}"
        settings = folder / "prometheus.yml"
        scrapes = [{"job_name": job, "static_configs": [{"targets": [at]}]} for job, at in targets.items()]
        settings.write_text(yaml.safe_dump({"global": {"scrape_interval": "2s"}, "scrape_configs": scrapes}))
        program = tools() / "prometheus-0.315.0" / "prometheus"
        options = [f"--web.listen-address={HOST}:{port}", f"--storage.tsdb.path={folder}/data"]
        self._process = Process("prometheus", [program, f"--config.file={settings}", *options], folder)

    def start(self) -> None:
        """Returns when it is ready."""
        self._process.start()
        self._process.ready(lambda: httpx.get(f"{self.url}/-/ready", timeout=2).status_code == 200)

    def stop(self) -> None:
        """Ends it; its data stay."""
        self._process.stop()

    def query(self, promql: str) -> list[dict[str, Any]]:
        """The result of an instant query."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": promql}, timeout=5).json()
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
