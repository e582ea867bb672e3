"""Warnings about a values file of the chart: settings that the chart overwrites."""

from collections.abc import Mapping
from typing import Any

from adapter.config.faults import Fault
from adapter.config.models import Config

# A value of the chart, "" for none -> the settings below `config` that the chart sets, from that value if there is one.
OVERWRITTEN: Mapping[str, str] = {
    "": "pipeline.checkpoint pipeline.port serving.service serving.snapshot_url serving.issuer.lease",
    "apiService": "serving.issuer.api_services",
    "serve.port": "serving.port",
    "tls": "pipeline.cert_file pipeline.key_file serving.cert_file serving.key_file serving.snapshot_ca_file "
    "serving.issuer.secret serving.issuer.pipeline_secret",
    "token": "pipeline.token_file serving.snapshot_token_file serving.issuer.token_secret",
}


def overwritten_settings(values: Mapping[str, Any], _: Config) -> list[str]:
    """A sentence for each setting that the chart overwrites."""
    found = []
    for value, names in OVERWRITTEN.items():
        fix = f"remove it, and set {value} of the values" if value else "remove it"
        paths = (tuple(name.split(".")) for name in names.split())
        given = (path for path in paths if _value(values, ("config", *path)) is not None)
        found += [Fault(path, f"has no effect, because the chart sets it; {fix}").sentence() for path in given]
    return found


def _value(values: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The value at a path, None without one."""
    part: Any = values
    for step in path:
        part = part.get(step) if isinstance(part, Mapping) else None
    return part
