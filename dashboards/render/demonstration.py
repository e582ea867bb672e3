"""Run the simulated fleet under a Prometheus and draw every dashboard: `python -m dashboards.render.demonstration`."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import yaml

from dashboards.queries import FOLDER, NAMES, RULES
from dashboards.render.data import PanelData, Span
from dashboards.render.picture import draw

PICTURES = FOLDER.parent / "docs" / "dashboards"
MINUTES = 12
SCRAPE_S = 2
WORKLOAD = "sine"
STARTS_WITHIN_S = 600.0
_PROMETHEUS = "prometheus-0.315.0"


def main() -> None:
    """Write the pictures of one run, and print their paths."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with ExitStack() as started:
        folder = Path(started.enter_context(tempfile.TemporaryDirectory(prefix="backlog-adapter-")))
        port = started.enter_context(_adapter())
        url = started.enter_context(_prometheus(folder, port))
        _wait_for_decisions(url)
        time.sleep(60 * MINUTES)
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


@contextmanager
def _adapter() -> Iterator[int]:
    """The port of `backlog-adapter run`."""
    port = _free_port()
    with _process([sys.executable, "-m", "adapter", "run", "--port", str(port)]):
        yield port


@contextmanager
def _prometheus(folder: Path, adapter_port: int) -> Iterator[str]:
    """The address of a Prometheus that scrapes the adapter and evaluates the rules, both every SCRAPE_S seconds."""
    targets = [{"targets": [f"127.0.0.1:{adapter_port}"]}]
    settings = {
        "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"},
        "rule_files": [str(path) for path in _quick_rules(folder)],
        "scrape_configs": [{"job_name": "backlog-adapter", "honor_labels": True, "static_configs": targets}],
    }
    file, address = folder / "prometheus.yml", f"127.0.0.1:{_free_port()}"
    file.write_text(yaml.safe_dump(settings))
    options = [f"--config.file={file}", f"--web.listen-address={address}", f"--storage.tsdb.path={folder}/data"]
    with _process([str(_tools() / _PROMETHEUS / "prometheus"), *options, "--log.level=error"]):
        yield f"http://{address}"


def _quick_rules(folder: Path) -> Iterator[Path]:
    """Copies of the rules without intervals of their own."""
    for name in RULES:
        content = yaml.safe_load((FOLDER / "rules" / f"{name}.yaml").read_text("utf-8"))
        for group in content["groups"]:
            group.pop("interval", None)
        path = folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(content))
        yield path


@contextmanager
def _process(command: Sequence[str]) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:  # noqa: S603 - our own programs
        try:
            yield
        finally:
            child.send_signal(signal.SIGTERM)
            child.wait()


def _wait_for_decisions(url: str) -> None:
    """Raises TimeoutError if there is none within STARTS_WITHIN_S."""
    end_s = time.monotonic() + STARTS_WITHIN_S
    query = {"query": "count(backlog_adapter_required_workers)"}
    while time.monotonic() < end_s:
        try:
            if httpx.get(f"{url}/api/v1/query", params=query).json()["data"]["result"]:
                return
        except httpx.HTTPError:  # it starts
            pass
        time.sleep(1)
    raise TimeoutError(f"no decision within {STARTS_WITHIN_S:g} s")


def _tools() -> Path:
    """The folder of the programs that `make tools` builds."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(os.environ.get("BACKLOG_ADAPTER_TOOLS", cache / "backlog-adapter" / "tools"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    main()
