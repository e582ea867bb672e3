"""An adapter that reads Pravega alone: what the cluster makes of the API needs no load."""

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
    """A workload that has a number and needs no load: it is sized by the segments of its stream."""
    pravega.create_stream("shop", "clicks", 2)
    # Either server may be asked, and each has its own second in which it pulls the new snapshot.
    until(lambda: all(each.is_success for each in adapter.ask_every_server(SEGMENTS)), 120, "its segments are served")
    return "clicks"


@pytest.fixture(scope="session")
def reader(adapter: Adapter, controlplane: ControlPlane) -> User:
    """Somebody who may read every metric in one namespace, and has to be reviewed for that as the HPA controller is."""
    role = f"--clusterrole={NAMESPACE}-{NAME}-metrics-reader"
    controlplane.kubectl("create", "rolebinding", "reader", "--namespace=default", role, "--user=reader")
    return controlplane.user("reader")
