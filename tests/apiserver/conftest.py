"""A stand-in cluster with the certificates of the tests, a client for it, and a clock."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from access_builders import CONFIG, Clock

from adapter.apiserver.cluster_api import ClusterApi
from conformance.cluster import Cluster, run_cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with run_cluster(CONFIG, tmp_path) as running:
        yield running


@pytest.fixture
def api(cluster: Cluster) -> Iterator[ClusterApi]:
    client = ClusterApi(cluster.kubeconfig)
    yield client
    client.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()
