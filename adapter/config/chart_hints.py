"""Warnings about a values file of the chart: settings that the chart overwrites, and files that it does not mount."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from adapter.config.chart_values import value_at
from adapter.config.faults import Fault, Path
from adapter.config.models import Config

# A value of the chart, "" for none -> the settings below `config` that the chart sets, from that value if there is one.
OVERWRITTEN: Mapping[str, str] = {
    "": "pipeline.checkpoint pipeline.host pipeline.port serving.host serving.service serving.snapshot_url "
    "serving.issuer.lease",
    "apiService": "serving.api_services",
    "serve.port": "serving.port",
    "tls": "pipeline.cert_file pipeline.key_file serving.cert_file serving.key_file serving.snapshot_ca_file "
    "serving.issuer.secret serving.issuer.pipeline_secret",
    "token": "pipeline.token_file serving.snapshot_token_file serving.issuer.token_secret",
}
_FILE = re.compile(r"(.*[_.])?(file|kubeconfig)|.*\.(location|keytab)")  # settings, and properties of librdkafka
# Folders of the image, of the service account and of the chart that contain files for a source.
_WITH_FILES = (
    "/etc/ssl",
    "/usr",
    "/run/secrets/kubernetes.io",
    "/run/secrets/backlog-adapter",
    "/var/lib/backlog-adapter",
)
# All folders where the chart refuses a Secret.
USED = (
    *_WITH_FILES,
    "/etc/backlog-adapter",
    "/opt/backlog-adapter",
    "/opt/java",
    "/run/backlog-adapter",
    "/tmp",  # noqa: S108 - a folder of the pod
)


def overwritten_settings(values: Mapping[str, Any], _: Config) -> list[str]:
    """A sentence for each setting that the chart overwrites."""
    found = []
    for value, names in OVERWRITTEN.items():
        fix = f"remove it, and set {value} of the values" if value else "remove it"
        paths = (tuple(name.split(".")) for name in names.split())
        given = (path for path in paths if value_at(values, ("config", *path)) is not None)
        found += [Fault(path, f"has no effect, because the chart sets it; {fix}").sentence() for path in given]
    return found


def unmounted_files(values: Mapping[str, Any], config: Config) -> list[str]:
    """A sentence for each file of a source that is in no folder of the pipeline's pod."""
    mounted = [str(folder) for folder in _mounted_folders(values)]
    found = (each for name, source in config.sources.items() for each in _files(("sources", name), source.model_dump()))
    return [
        Fault(path, _absence(file, mounted)).sentence()
        for path, file in found
        if not any(_in_pod(file).is_relative_to(folder) for folder in (*_WITH_FILES, *mounted))
    ]


def _absence(file: str, mounted: list[str]) -> str:
    """That the pod has no such file. A relative path is not shown: it may be a secret in the place of its file."""
    if not file.startswith("/"):
        folder = "a folder of pipeline.secretMounts, such as /run/secrets/NAME/token"
        return f"is no absolute path; write that of a file in {folder}"
    return f"the chart mounts nothing at {file}; {_mount(_in_pod(file), mounted)}"


def _mount(file: PurePosixPath, mounted: list[str]) -> str:
    """How to mount the Secret of a file: at the folder of the file, unless the chart refuses a Secret there."""
    text, folder = "add its Secret to pipeline.secretMounts, as NAME: ", file.parent
    if any(folder.is_relative_to(used) or PurePosixPath(used).is_relative_to(folder) for used in (*USED, *mounted)):
        other = "/run/secrets/NAME"
        return f"{text}{other}, and write {other}/{file.name} here, because the pod uses {folder}"
    return f"{text}{folder}"


def _mounted_folders(values: Mapping[str, Any]) -> Iterator[PurePosixPath]:
    """The folders where values mount Secrets and volumes. The values need not be valid: helm checks them."""
    secrets, mounts = (value_at(values, ("pipeline", name)) for name in ("secretMounts", "extraVolumeMounts"))
    yield from map(_in_pod, secrets.values() if isinstance(secrets, Mapping) else ())
    yield from (_in_pod(value_at(mount, ("mountPath",))) for mount in (mounts if isinstance(mounts, list) else ()))


def _files(path: Path, settings: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """The paths of files in settings, each with the path of its setting."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _files((*path, name), value)
        elif isinstance(value, str) and _FILE.fullmatch(name) and (value.startswith("/") or "." not in name):
            yield (*path, name), value


def _in_pod(path: object) -> PurePosixPath:
    return PurePosixPath(re.sub("^/var/run/", "/run/", str(path)))  # a link in the images
