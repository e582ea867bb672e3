"""An adapter that reads only Pravega: the tests of the API need no load."""

import pytest
from parts.adapter import NAME, NAMESPACE, SEGMENTS, Adapter, Systems
from parts.controlplane import ControlPlane, User
from parts.pravega import Pravega
from parts.process import until


@pytest.fixture(scope="session")
def systems(pravega: Pravega) -> Systems:
    return Systems(pravega=pravega)


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
    role = f"--clusterrole={NAMESPACE}-{NAME}-metrics-reader"
    controlplane.kubectl("create", "rolebinding", "reader", "--namespace=default", role, "--user=reader")
    return controlplane.user("reader")
