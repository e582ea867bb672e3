"""Run the simulated fleet under a Prometheus and draw every dashboard: `python -m dashboards.render.demonstration`."""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeAlias

import httpx
import yaml

from bench.processes import free_port
from bench.tool_folder import tools
from dashboards.queries import FOLDER, NAMES, RULES
from dashboards.render.data import PanelData, Span
from dashboards.render.picture import draw

PICTURES = FOLDER.parent / "docs" / "dashboards"
MINUTES = 12
SCRAPE_S = 2
WORKLOAD = "sine"
STARTS_WITHIN_S = 600.0
Child: TypeAlias = "subprocess.Popen[bytes]"
_PROMETHEUS = "prometheus-0.315.0"


def main() -> None:
    """Write the pictures of one run, and print their paths."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the children too
    PICTURES.mkdir(parents=True, exist_ok=True)
    with ExitStack() as started:
        folder = Path(started.enter_context(tempfile.TemporaryDirectory(prefix="backlog-adapter-")))
        port, address = free_port(), f"127.0.0.1:{free_port()}"
        adapter = started.enter_context(_process([sys.executable, "-m", "adapter", "run", "--port", str(port)]))
        prometheus = started.enter_context(_process(_prometheus(folder, port, address)))
        children, url = (adapter, prometheus), f"http://{address}"
        _wait_for_decisions(url, children)
        _stay(60 * MINUTES, children)
        _draw(url)


def _draw(url: str) -> None:
    end_s = int(time.time())
    for name in NAMES:
        selected = {"workload": WORKLOAD} if name == "workload" else {}
        data = PanelData(url, Span(end_s - 60 * MINUTES, end_s), selected, SCRAPE_S)
        path = PICTURES / f"{name}.svg"
        path.write_text(draw(name, data), encoding="utf-8")
        data.close()
        sys.stdout.write(f"{path}\n")


def _prometheus(folder: Path, adapter_port: int, address: str) -> list[str]:
    """The command of a Prometheus that scrapes the adapter every SCRAPE_S seconds and evaluates the rules."""
    targets = [{"targets": [f"127.0.0.1:{adapter_port}"]}]
    settings = {
        "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"},
        "rule_files": [str(FOLDER / "rules" / f"{name}.yaml") for name in RULES],
        "scrape_configs": [{"job_name": "backlog-adapter", "honor_labels": True, "static_configs": targets}],
    }
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(settings))
    options = [f"--config.file={file}", f"--web.listen-address={address}", f"--storage.tsdb.path={folder}/data"]
    return [str(tools() / _PROMETHEUS / "prometheus"), *options, "--log.level=error"]


@contextmanager
def _process(command: Sequence[str]) -> Iterator[Child]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:  # noqa: S603 - our own programs
        try:
            yield child
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait()


def _wait_for_decisions(url: str, children: Iterable[Child]) -> None:
    """Raises TimeoutError if there is none within STARTS_WITHIN_S."""
    end_s = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < end_s:
        if _has_decisions(url):
            return
        _stay(1, children)
    raise TimeoutError(f"no decision within {STARTS_WITHIN_S:g} s")


def _has_decisions(url: str) -> bool:
    """False while Prometheus starts: it refuses connections, then answers 503 with a text."""
    try:
        answer = httpx.get(f"{url}/api/v1/query", params={"query": "count(backlog_adapter_required_workers)"})
    except httpx.TransportError:
        return False
    return answer.is_success and bool(answer.json()["data"]["result"])


def _stay(seconds: float, children: Iterable[Child]) -> None:
    """Wait while the children run. Raises RuntimeError when one has ended: the pictures would be empty."""
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        for child in children:
            if child.poll() is not None:
                raise RuntimeError(f"{child.args!r}: ended with exit code {child.returncode}")
        time.sleep(1)


if __name__ == "__main__":
    main()
