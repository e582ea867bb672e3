"""An adapter that reads only Pravega, because the tests of the API need no load, with certificates that are given."""

import base64
from pathlib import Path
from typing import Any

import pytest
from parts.adapter import NAME, NAMESPACE, SEGMENTS, Adapter, Systems, values
from parts.certificates import Authority
from parts.controlplane import ControlPlane, User
from parts.kubelet import Kubelet
from parts.pravega import Pravega
from parts.process import until


@pytest.fixture(scope="session")
def systems(pravega: Pravega) -> Systems:
    return Systems(pravega=pravega)


@pytest.fixture(scope="session")
def adapter(run: Path, controlplane: ControlPlane, kubelet: Kubelet, systems: Systems) -> Adapter:
    controlplane.kubectl("create", "namespace", NAMESPACE)
    authorities = {role: given_secret(controlplane, run / "given", role) for role in (NAME, f"{NAME}-pipeline")}
    ca = base64.b64encode(authorities[NAME].path.read_bytes()).decode()
    tls: dict[str, Any] = {"mode": "secret", "pipeline": {"existingSecret": f"{NAME}-pipeline-given"}}
    tls["serve"] = {"existingSecret": f"{NAME}-given", "caBundle": ca}
    adapter = Adapter(controlplane, kubelet, run / "adapter")
    adapter.install({**values(systems), "tls": tls})
    return adapter


def given_secret(plane: ControlPlane, folder: Path, role: str) -> Authority:
    """Makes the Secret ROLE-given; returns its CA."""
    folder.mkdir(exist_ok=True)
    authority = Authority(folder, f"{role}-ca")
    certificate, key = authority.issue(role, addresses=(f"{role}.{NAMESPACE}.svc",))
    files = {"ca.crt": authority.path, "tls.crt": certificate, "tls.key": key}
    options = [f"--from-file={name}={path}" for name, path in files.items()]
    plane.kubectl("create", "secret", "generic", f"{role}-given", "-n", NAMESPACE, *options)
    return authority


@pytest.fixture(scope="session")
def clicks(adapter: Adapter, pravega: Pravega) -> str:
    """A workload with a number that needs no load: the segments of its stream."""
    pravega.create_stream("shop", "clicks", 2)
    # Each server pulls the new snapshot at a time of its own.
    until(lambda: all(each.is_success for each in adapter.read_every_server(SEGMENTS)), 120, "its segments are served")
    return "clicks"


@pytest.fixture(scope="session")
def reader(adapter: Adapter, controlplane: ControlPlane) -> User:
    """A user who may read every metric in one namespace, by RBAC as the HPA controller."""
    role = f"--clusterrole={NAMESPACE}:{NAME}-metrics-reader"
    controlplane.kubectl("create", "rolebinding", "reader", "--namespace=default", role, "--user=reader")
    return controlplane.user("reader")
