"""Run the simulated fleet under a Prometheus and draw every dashboard: `python -m dashboards.render.demonstration`."""

import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from math import inf
from pathlib import Path
from typing import Any

from bench.processes import free_port, running, wait_until
from bench.prometheus_server import prometheus
from bench.tool_folder import tools
from dashboards.queries import FOLDER, RULES
from dashboards.render import __main__ as render

PICTURES = FOLDER.parent / "docs" / "dashboards"
MINUTES = 12
SCRAPE_S = 2
STARTS_WITHIN_S = 600.0
_PROMETHEUS = "prometheus-0.315.0"


def main() -> None:
    """Write the pictures of one run, and print their paths."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the programs too
    with ExitStack() as started:
        folder = Path(started.enter_context(tempfile.TemporaryDirectory(prefix="backlog-adapter-")))
        port, out = free_port(), folder / "adapter.out"
        adapter = started.enter_context(running([sys.executable, "-m", "adapter", "run", "--port", str(port)], out))
        wait_until(lambda: "first decision" in out.read_text(), adapter, out, STARTS_WITHIN_S)
        program, query = tools() / _PROMETHEUS / "prometheus", "count(backlog_adapter_required_workers)"
        url = started.enter_context(prometheus(program, folder, _settings(port), query))
        end_s = time.monotonic() + 60 * MINUTES
        # Fails when the adapter ends: the pictures would be empty.
        wait_until(lambda: time.monotonic() > end_s, adapter, out, inf)
        times = [f"--minutes={MINUTES}", f"--scrape={SCRAPE_S}"]
        render.main([f"--prometheus={url}", *times, "--select=workload=sine", f"--out={PICTURES}"])


def _settings(adapter_port: int) -> dict[str, Any]:
    """Scrape the adapter and evaluate the rules every SCRAPE_S seconds."""
    targets = [{"targets": [f"127.0.0.1:{adapter_port}"]}]
    return {
        "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"},
        "rule_files": [str(FOLDER / "rules" / f"{name}.yaml") for name in RULES],
        "scrape_configs": [{"job_name": "backlog-adapter", "honor_labels": True, "static_configs": targets}],
    }


if __name__ == "__main__":
    main()
