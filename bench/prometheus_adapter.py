"""prometheus-adapter in front of a real Prometheus that scrapes the pipeline's `/metrics`.

Both servers then hold the same numbers, and the same request reads the same workload from either.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.comparison import Contender
from bench.go_server import secure_serving
from bench.processes import free_port
from bench.prometheus_server import prometheus
from bench.replica import WORKLOADS, Replica, path, running_server
from bench.tool_folder import tools

BUILD = "make tools-all"
_SCRAPE_S = 5
_METRIC = "backlog_adapter_required_workers"
# A user's rule: the newest sample of each series, with the namespace of the request and the labels of its selector.
_RULES = {
    "externalRules": [
        {
            "seriesQuery": f'{_METRIC}{{namespace!="",workload!=""}}',
            "resources": {"overrides": {"namespace": {"resource": "namespace"}}},
            "name": {"matches": "^backlog_adapter_(.*)$", "as": "$1"},
            "metricsQuery": "max(<<.Series>>{<<.LabelMatchers>>}) by (workload)",
        }
    ]
}


def programs() -> tuple[Path, Path] | None:
    """Prometheus and prometheus-adapter; None if one of them is missing."""
    found = [sorted(tools().glob(name)) for name in ("prometheus-[0-9]*/prometheus", "prometheus-adapter-*/adapter")]
    return (found[0][-1], found[1][-1]) if all(found) else None


@contextmanager
def prometheus_adapter(parts: tuple[Path, Path], ours: Replica) -> Iterator[Contender]:
    """Run both while the block lasts. Raises RuntimeError with the output of the one that does not start."""
    (program, adapter), folder = parts, ours.identities.folder
    settings = _scrape_settings(ours.fleet.server.port)
    with prometheus(program, folder, settings, f"count({_METRIC}) == {WORKLOADS}") as url:
        rules, port = folder / "rules.yaml", free_port()
        rules.write_bytes(msgspec.json.encode(_RULES))  # JSON is YAML
        options = [f"--prometheus-url={url}", f"--config={rules}", f"--metrics-relist-interval={_SCRAPE_S}s"]
        command = [str(adapter), *secure_serving(port, ours), *options]
        with running_server(command, port, ours.identities, path(0)) as pid:
            yield Contender("prometheus-adapter", pid, port, path("%d"))


def _scrape_settings(exporter_port: int) -> dict[str, Any]:
    targets = [{"targets": [f"127.0.0.1:{exporter_port}"]}]
    job = {"job_name": "pipeline", "honor_labels": True, "scrape_interval": f"{_SCRAPE_S}s", "static_configs": targets}
    return {"scrape_configs": [job]}
