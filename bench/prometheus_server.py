"""A Prometheus that scrapes for a benchmark or a picture."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from bench.processes import free_port, running, wait_until

_HAS_DATA_WITHIN_S = 180.0


@contextmanager
def prometheus(program: Path, folder: Path, settings: Mapping[str, Any], query: str) -> Iterator[str]:
    """The address of a Prometheus while the block lasts, once the query has a result.

    Raises RuntimeError with its output if it does not start, or if the query finds nothing.
    """
    config, out, address = folder / "prometheus.yaml", folder / "prometheus.out", f"127.0.0.1:{free_port()}"
    config.write_bytes(msgspec.json.encode(settings))  # JSON is YAML
    options = (f"--config.file={config}", f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address={address}")
    url = f"http://{address}"
    with running([str(program), *options], out) as process:
        wait_until(lambda: _has_result(url, query), process, out, _HAS_DATA_WITHIN_S)
        yield url


def _has_result(url: str, query: str) -> bool:
    """False while Prometheus starts: it refuses connections, then answers with a text."""
    try:
        answer = httpx.get(f"{url}/api/v1/query", params={"query": query}, trust_env=False).json()
        return bool(answer["data"]["result"])
    except (httpx.HTTPError, ValueError, LookupError):
        return False
