"""As many connections as a process may have files."""

import resource

import structlog

# Files a process needs besides its connections: its listeners, the cluster's API, pulled snapshots, libraries.
OTHER_FILES = 256
_MOST_FILES = 64 * 1024  # more are not asked for

_log = structlog.get_logger(__name__)


def affordable(connections: int) -> int:
    """As many connections as the process may have files; its soft limit of files is raised first, as far as it may."""
    files = _raised()
    if files >= connections + OTHER_FILES:
        return connections
    fewer = max(files - OTHER_FILES, files // 2)
    fix = f"raise the hard limit of open files (ulimit -Hn) to {connections + OTHER_FILES}"
    _log.warning("fewer connections than wanted", wanted=connections, connections=fewer, fix=fix)
    return fewer


def _raised() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST_FILES
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return max(soft, most)
