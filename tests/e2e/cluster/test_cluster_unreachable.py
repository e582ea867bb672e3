"""A server that starts while the cluster's API cannot be reached: it is there, it refuses metrics, and it recovers."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from parts.adapter import EXTERNAL, NAME, NAMESPACE, SEGMENTS, Adapter
from parts.certificates import Authority
from parts.controlplane import ControlPlane, User
from parts.direct import Direct
from parts.door import Door
from parts.process import HOST, Process, free_port, until

SERVE = str(Path(sys.executable).parent / "backlog-adapter")
RECOVERED_S = 60


@pytest.fixture
def door(controlplane: ControlPlane, run: Path) -> Iterator[Door]:
    """The address of the cluster's API in the server's kubeconfig; shut."""
    folder = run / "unreachable"
    folder.mkdir()
    door = Door(folder, controlplane.port)
    yield door
    door.stop()


@pytest.fixture
def server(door: Door, clicks: str, adapter: Adapter, controlplane: ControlPlane) -> Iterator[Direct]:
    """A server beside the installed ones, with their account, on the same pipeline."""
    folder = door.folder
    authority = Authority(folder, "ca")
    certificate, key = authority.issue("server", addresses=(NAME,))
    port = free_port()
    serving = {
        "host": HOST, "port": port, "cert_file": str(certificate), "key_file": str(key),
        "kubeconfig": str(kubeconfig(folder, controlplane, door)),
        "snapshot_url": f"https://{NAME}-pipeline.{NAMESPACE}.svc:8443", **pipeline_secrets(folder, adapter),
    }  # fmt: skip
    config = {"sources": {"cluster": {"kind": "kubernetes"}}, "pipeline": {"checkpoint": "unused"}, "serving": serving}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    # It finds the pipeline by the names that pods know.
    names = shlex.quote(str(adapter.pipeline().hosts))
    script = f"mount --bind {names} /etc/hosts && exec {SERVE} serve --config config.yaml"
    with Process("serve", ["unshare", "--mount", "sh", "-c", script], folder) as process:
        server = Direct(HOST, NAME, authority.path.read_text(), port)
        process.ready(lambda: server.get("/readyz").is_success)
        yield server


def kubeconfig(folder: Path, plane: ControlPlane, door: Door) -> Path:
    """Of the account of serve, at another address."""
    content = yaml.safe_load(plane.admin.kubeconfig.read_text())
    content["clusters"][0]["cluster"]["server"] = f"https://{HOST}:{door.port}"
    content["users"][0]["user"] = {"token": plane.kubectl("create", "token", NAME, "-n", NAMESPACE).strip()}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


def pipeline_secrets(folder: Path, adapter: Adapter) -> dict[str, str]:
    """The settings of what it takes to be answered by the pipeline."""
    ca, token = folder / "pipeline-ca.crt", folder / "pipeline-token"
    ca.write_bytes(adapter.secret(f"{NAME}-pipeline-tls")["ca.crt"])
    token.write_bytes(adapter.secret(f"{NAME}-token")["token"])
    return {"snapshot_ca_file": str(ca), "snapshot_token_file": str(token)}


def test_without_the_clusters_api_a_server_answers_for_itself_refuses_metrics_and_recovers(
    server: Direct, door: Door, reader: User
) -> None:
    for path in ("/livez", "/readyz", "/apis", f"/apis/{EXTERNAL}", "/openapi/v2", "/version"):
        assert server.get(path).status_code == 200, path
    answers = server.get(SEGMENTS), server.get(SEGMENTS, reader.certificate)
    assert [answer.status_code for answer in answers] == [403, 403]
    assert all("the authentication settings of the cluster are unknown" in each.json()["message"] for each in answers)
    assert server.get(SEGMENTS, headers={"Authorization": "Bearer abc"}).status_code == 401
    log = door.folder / "serve.log"
    cause = "the authentication settings of the cluster cannot be read; retrying"
    until(lambda: cause in log.read_text(), 30, cause)

    door.start()
    until(lambda: server.get(SEGMENTS, reader.certificate).status_code == 200, RECOVERED_S, "the reader is answered")
    assert server.get(SEGMENTS).status_code == 403
    until(
        lambda: "the authentication settings of the cluster can be read again" in log.read_text(),
        30,
        "and its log says so",
    )
