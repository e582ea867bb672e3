"""The folder of the programs that `make tools` and `make tools-all` build."""

import os
from pathlib import Path


def tools() -> Path:
    """The folder into which tests/e2e/tools/build.sh builds."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("BACKLOG_ADAPTER_TOOLS") or cache / "backlog-adapter" / "tools")
