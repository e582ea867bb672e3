"""A pod's container as a real process in namespaces of its own: network address, host name, mounts, process tree."""

import base64
import itertools
import math
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from parts.controlplane import Api
from parts.process import HOST, UNVERIFIED_TLS, Process

_numbers = itertools.count(10)

# A shell function: later changes of a folder (a path without the leading slash) stay in this mount namespace.
COVER = """\
cover() {{
  mkdir -p {overlay}/$1/upper {overlay}/$1/work {overlay}/$1/pieces
  layers=lowerdir=/$1,upperdir={overlay}/$1/upper,workdir={overlay}/$1/work
  mount -t overlay overlay -o $layers /$1 2> /dev/null || piece_together $1
}}
# In a user namespace an overlay cannot cover a folder that holds an earlier mount. A file that disappears meanwhile is
# none that a pod needs.
piece_together() {{
  for each in /$1/* /$1/.[!.]*; do
    place={overlay}/$1/pieces/${{each##*/}}
    if [ -L "$each" ]; then cp -P "$each" "$place"
    elif [ -d "$each" ]; then mkdir "$place" && mount --rbind "$each" "$place"
    elif [ -e "$each" ]; then touch "$place" && mount --bind "$each" "$place"
    fi || true
  done
  mount --rbind {overlay}/$1/pieces /$1
}}"""

# The shell runs this inside the new namespaces. Changes of /etc, /run, /tmp and /var stay in overlays of the pod.
_INIT = """\
set -eu
ip link set lo up
# The sockets of a killed container can hold its network, with this address and this link, for minutes.
nsenter -t {tests} -n ip link del {veth} 2> /dev/null || true
nsenter -t {tests} -n ip link add {veth} master e2e0 up type veth peer name eth0 netns $$
ip addr add {ip}/16 dev eth0
ip link set eth0 up
hostname {name}
mount -t proc proc /proc
mount -t tmpfs tmpfs {overlay}
{cover}
cover etc
cover run
cover var
mount --bind {hosts} /etc/hosts
{mounts}
# Last, because volumes may be in /tmp; covered, not replaced, because the programs may be there too.
cover tmp
cd /
{user}
exec env -i {env} {as_user} {command}
"""

# Only one user is mapped here. Another user is mapped in its place: the same owner of files under another number,
# without capabilities. The Java of the images needs no entry in /etc/passwd; Java 17 of a test machine does.
_IMAGE_USER = 10001
_PASSWD = f"""\
(cat /etc/passwd; echo adapter:x:{_IMAGE_USER}:{_IMAGE_USER}::/nonexistent:/usr/sbin/nologin) > /run/passwd
mount --bind /run/passwd /etc/passwd"""


class Pod:
    """One pod of one container."""

    # images: image without tag -> entrypoint.
    def __init__(self, api: Api, manifest: dict[str, Any], folder: Path, images: Mapping[str, Sequence[str]]) -> None:
        self.manifest = manifest
        self.namespace: str = manifest["metadata"]["namespace"]
        self.name: str = manifest["metadata"]["name"]
        self.uid: str = manifest["metadata"]["uid"]
        self.path = f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"
        number = next(_numbers)
        self.ip = f"10.244.{number // 250}.{number % 250 + 2}"
        self.restarts = 0
        self.stop_at_s: float | None = None  # end of the grace period of a deleted pod
        self.start_at_s = 0.0  # earliest restart of a container that ended
        self.patched: dict[str, Any] = {}
        self._answered_s = -math.inf  # last success of the readiness probe
        self._api = api
        self._images = images
        self._folder = folder / f"{self.namespace}-{self.name}"
        self._veth = f"pod{number}"
        self.container: dict[str, Any] = manifest["spec"]["containers"][0]
        self.process = Process("container", ["true"], self._folder)

    @property
    def hosts(self) -> Path:
        """The pod's /etc/hosts."""
        return self._folder / "hosts"

    def start(self) -> None:
        """Starts or restarts the container, after `resolve`. A restart keeps the volumes."""
        (self._folder / "overlay").mkdir(parents=True, exist_ok=True)
        script = self._folder / "init.sh"
        script.write_text(self._init(self._volumes()))
        isolated = ["unshare", "--net", "--mount", "--pid", "--uts", "--fork", "--kill-child", "sh", str(script)]
        self.process.stop(0)
        self._answered_s = -math.inf
        self.process = Process("container", isolated, self._folder)
        self.process.start()

    def resolve(self, services: str) -> None:
        """Writes the container's /etc/hosts: its own name and these lines.

        It writes in place because the pod mounts this file, and never empties the file because a program may read it.
        """
        text = f"127.0.0.1 localhost\n{self.ip} {self.name}\n{services}"
        self._folder.mkdir(parents=True, exist_ok=True)
        self.hosts.touch()
        if self.hosts.read_text() != text:
            with self.hosts.open("r+") as hosts:
                hosts.write(text)
                hosts.truncate()

    def refresh(self) -> None:
        """Updates the files of its Secrets and ConfigMaps, and renews its tokens."""
        self._volumes()

    def _init(self, volumes: Mapping[str, Path]) -> str:
        mounts = []
        for mount in self.container.get("volumeMounts", []):
            if mount["mountPath"] != "/tmp":  # noqa: S108  # every pod has an overlay there, see _INIT
                source, target = shlex.quote(str(volumes[mount["name"]])), shlex.quote(mount["mountPath"])
                mounts.append(f"mkdir -p {target}\nmount --bind {source} {target}")
        env = " ".join(shlex.quote(f"{key}={value}") for key, value in self._env().items())
        overlay = self._folder / "overlay"
        user = self.manifest["spec"].get("securityContext", {}).get("runAsUser")
        as_user = "" if user is None else f"unshare --user --map-user={user} --map-group={user}"
        return _INIT.format(
            veth=self._veth, tests=os.getpid(), ip=self.ip, name=self.name, overlay=overlay, hosts=self.hosts,
            cover=COVER.format(overlay=overlay), mounts="\n".join(mounts), env=env, as_user=as_user,
            command=shlex.join(self._command()), user=_PASSWD if user == _IMAGE_USER else "",
        )  # fmt: skip

    def _command(self) -> list[str]:
        entrypoint = self.container.get("command") or self._images[self.container["image"].split(":")[0]]
        return [*entrypoint, *self.container.get("args", [])]

    def _env(self) -> dict[str, str]:
        url = self._api.host
        env = {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/run",
            "HOSTNAME": self.name, "KUBERNETES_SERVICE_HOST": HOST, "KUBERNETES_SERVICE_PORT": str(url.port),
        }  # fmt: skip
        # PYTHONPATH: pods run the same checkout as the tests.
        env |= {key: os.environ[key] for key in ("JAVA_HOME", "LANG", "PYTHONPATH") if key in os.environ}
        return env | {item["name"]: self._value(item) for item in self.container.get("env", [])}

    def _value(self, item: dict[str, Any]) -> str:
        if "valueFrom" not in item:
            return str(item.get("value", ""))
        field: str = item["valueFrom"]["fieldRef"]["fieldPath"]
        return {"metadata.name": self.name, "metadata.namespace": self.namespace, "status.podIP": self.ip}[field]

    def _volumes(self) -> dict[str, Path]:
        found = {}
        for volume in self.manifest["spec"].get("volumes", []):
            folder = self._folder / "volumes" / volume["name"]
            if claim := volume.get("persistentVolumeClaim"):
                folder = self._folder.parent / "claims" / self.namespace / claim["claimName"]
            folder.mkdir(parents=True, exist_ok=True)
            if files := self._files(volume):
                publish(folder, files)
            found[volume["name"]] = folder
        return found

    def _files(self, volume: dict[str, Any]) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        for source in volume.get("projected", {"sources": [volume]})["sources"]:
            if configured := source.get("configMap"):
                found = self._read("configmaps", configured["name"])
                data = {key: text.encode() for key, text in found.get("data", {}).items()}
                files |= picked(data, configured["items"]) if "items" in configured else data
            if secret := source.get("secret"):
                found = self._read("secrets", secret.get("secretName") or secret["name"])
                data = {key: base64.b64decode(text) for key, text in found.get("data", {}).items()}
                files |= picked(data, secret["items"]) if "items" in secret else data
            if token := source.get("serviceAccountToken"):
                files[token["path"]] = self._token(token.get("audience"))
            if source.get("downwardAPI"):
                files["namespace"] = self.namespace.encode()
        return files

    def _read(self, resource: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self._api.get(f"/api/v1/namespaces/{self.namespace}/{resource}/{name}")
        return found

    def _token(self, audience: str | None) -> bytes:
        account = self.manifest["spec"]["serviceAccountName"]
        bound = {"kind": "Pod", "apiVersion": "v1", "name": self.name, "uid": self.uid}
        spec = {"audiences": [audience] if audience else [], "expirationSeconds": 7200, "boundObjectRef": bound}
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{account}/token"
        token: str = self._api.request("POST", path, {"spec": spec})["status"]["token"]
        return token.encode()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the container's first process, as a container runtime does."""
        if number == signal.SIGKILL:
            self.process.kill()
            return
        outer = self.process.child.pid
        for child in Path(f"/proc/{outer}/task/{outer}/children").read_text().split():
            os.kill(int(child), number)

    def ready(self) -> bool:
        """Whether the readiness probe succeeds; without a probe, whether the container runs.

        A ready container stays ready while fewer than failureThreshold probes failed.
        """
        probe = self.container.get("readinessProbe")
        if not self.process.running() or probe is None:
            return self.process.running()
        now_s = time.monotonic()
        if self._probed(probe):
            self._answered_s = now_s
        return now_s - self._answered_s < probe.get("failureThreshold", 3) * probe.get("periodSeconds", 10)

    def _probed(self, settings: Mapping[str, Any]) -> bool:
        probe = settings["httpGet"]
        named = {port.get("name"): port["containerPort"] for port in self.container.get("ports", [])}
        port = named.get(probe["port"], probe["port"])
        url = f"{probe.get('scheme', 'HTTP').lower()}://{self.ip}:{port}{probe['path']}"
        try:
            answer = httpx.get(url, verify=UNVERIFIED_TLS, timeout=settings.get("timeoutSeconds", 1))
        except (httpx.HTTPError, OSError):
            return False
        return answer.is_success

    def status(self, is_ready: bool) -> dict[str, Any]:
        """The status that a kubelet writes."""
        running = self.process.running()
        conditions = {
            "PodScheduled": True, "Initialized": True, "ContainersReady": is_ready, "Ready": is_ready,
        }  # fmt: skip
        state = {"running": {}} if running else {"waiting": {"reason": "CrashLoopBackOff"}}
        container = {
            "name": self.container["name"], "image": self.container["image"], "imageID": "", "ready": is_ready,
            "restartCount": self.restarts, "state": state,
        }  # fmt: skip
        return {
            "phase": "Running", "podIP": self.ip, "podIPs": [{"ip": self.ip}], "hostIP": HOST,
            "conditions": [{"type": kind, "status": str(holds)} for kind, holds in conditions.items()],
            "containerStatuses": [container],
        }  # fmt: skip

    def has_terminated(self) -> bool:
        """Whether a deleted pod's container has ended: SIGTERM first, SIGKILL after the grace period."""
        if self.stop_at_s is None:
            grace_s = self.manifest["spec"].get("terminationGracePeriodSeconds", 30)
            self.stop_at_s = time.monotonic() + grace_s
            if self.process.running():
                self.signal(signal.SIGTERM)
        if self.process.running() and time.monotonic() > self.stop_at_s:
            self.process.kill()
        return not self.process.running()


def picked(data: Mapping[str, bytes], items: Sequence[Mapping[str, str]]) -> Mapping[str, bytes]:
    """The files of these items. FileNotFoundError for a missing key: the pod starts later."""
    if missing := [item["key"] for item in items if item["key"] not in data]:
        raise FileNotFoundError(f"the Secret has no key {', '.join(missing)} yet")
    return {item["path"]: data[item["key"]] for item in items}


def publish(folder: Path, files: Mapping[str, bytes]) -> None:
    """Replaces all files at once as a kubelet does: a link leads to the folder with the newest files."""
    newest = Path(tempfile.mkdtemp(prefix="..", dir=folder))
    newest.chmod(0o755)
    for path, content in files.items():
        (newest / path).write_bytes(content)
    link, before = folder / "..data", (folder / "..data").resolve()
    made = folder / "..data_tmp"
    made.symlink_to(newest.name)
    made.replace(link)
    for path in files:
        if not (folder / path).is_symlink():
            (folder / path).symlink_to(Path("..data") / path)
    if before != link:
        shutil.rmtree(before)
