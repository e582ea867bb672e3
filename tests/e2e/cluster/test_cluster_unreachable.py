"""A server that starts while the API of the cluster is unreachable is ready, refuses metrics and recovers."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from parts.adapter import NAME, NAMESPACE, SEGMENTS, Adapter
from parts.certificates import Authority
from parts.controlplane import ControlPlane, User
from parts.direct import DirectClient
from parts.port_forward import PortForward
from parts.process import HOST, Process, free_port, until
from parts.service import EXTERNAL

SERVE = str(Path(sys.executable).parent / "backlog-adapter")
RECOVERED_S = 60


@pytest.fixture
def forward(controlplane: ControlPlane, run: Path) -> Iterator[PortForward]:
    """The address of the cluster's API in the server's kubeconfig; not started."""
    folder = run / "unreachable"
    folder.mkdir()
    forward = PortForward(folder, controlplane.port)
    yield forward
    forward.stop()


@pytest.fixture
def server(forward: PortForward, clicks: str, adapter: Adapter, controlplane: ControlPlane) -> Iterator[DirectClient]:
    """A third server with the account and the pipeline of the installed ones."""
    folder = forward.folder
    authority = Authority(folder, "ca")
    certificate, key = authority.issue("server", addresses=(NAME,))
    port = free_port()
    serving = {
        "host": HOST, "port": port, "cert_file": str(certificate), "key_file": str(key),
        "kubeconfig": str(kubeconfig(folder, controlplane, forward)),
        "snapshot_url": f"https://{NAME}-pipeline.{NAMESPACE}.svc:8443", **pipeline_secrets(folder, adapter),
    }  # fmt: skip
    config = {"sources": {"cluster": {"kind": "kubernetes"}}, "pipeline": {"checkpoint": "unused"}, "serving": serving}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    # It uses the DNS names of the cluster.
    names = shlex.quote(str(adapter.pipeline().hosts))
    script = f"mount --bind {names} /etc/hosts && exec {SERVE} serve --config config.yaml"
    with Process("serve", ["unshare", "--mount", "sh", "-c", script], folder) as process:
        server = DirectClient(HOST, NAME, authority.path.read_text(), port)
        process.ready(lambda: server.get("/readyz").is_success)
        yield server


def kubeconfig(folder: Path, plane: ControlPlane, forward: PortForward) -> Path:
    """A kubeconfig of the account of serve, with the address of the port forward."""
    content = yaml.safe_load(plane.admin.kubeconfig.read_text())
    content["clusters"][0]["cluster"]["server"] = f"https://{HOST}:{forward.port}"
    content["users"][0]["user"] = {"token": plane.kubectl("create", "token", NAME, "-n", NAMESPACE).strip()}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


def pipeline_secrets(folder: Path, adapter: Adapter) -> dict[str, str]:
    """The settings for access to the pipeline."""
    ca, token = folder / "pipeline-ca.crt", folder / "pipeline-token"
    ca.write_bytes(adapter.secret(f"{NAME}-pipeline-given")["ca.crt"])
    token.write_bytes(adapter.secret(f"{NAME}-token")["token"])
    return {"snapshot_ca_file": str(ca), "snapshot_token_file": str(token)}


def test_without_the_clusters_api_a_server_is_ready_refuses_metrics_and_recovers(
    server: DirectClient, forward: PortForward, reader: User
) -> None:
    for path in ("/livez", "/readyz", "/apis", f"/apis/{EXTERNAL}", "/openapi/v2"):
        assert server.get(path).status_code == 200, path
    answers = server.get(SEGMENTS), server.get(SEGMENTS, reader.certificate)
    assert [answer.status_code for answer in answers] == [403, 403]
    assert all("the authentication settings of the cluster are unknown" in each.json()["message"] for each in answers)
    assert server.get(SEGMENTS, headers={"Authorization": "Bearer abc"}).status_code == 401
    log = forward.folder / "serve.log"
    cause = "the authentication settings of the cluster cannot be read; retrying"
    until(lambda: cause in log.read_text(), 30, cause)

    forward.start()
    until(lambda: server.get(SEGMENTS, reader.certificate).status_code == 200, RECOVERED_S, "the reader is authorized")
    assert server.get(SEGMENTS).status_code == 403
    recovery = "the authentication settings of the cluster can be read again"
    until(lambda: recovery in log.read_text(), 30, recovery)
