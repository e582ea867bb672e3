"""A stand-in cluster that knows the certificates of the tests, and our client of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from access_builders import CONFIG
from stand_in_cluster import StandInCluster, kubeconfig, stand_in

from adapter.apiserver.cluster_api import ClusterApi


@pytest.fixture
def cluster() -> Iterator[StandInCluster]:
    with stand_in() as running:
        running.config_map = dict(CONFIG)
        yield running


@pytest.fixture
def api(cluster: StandInCluster, tmp_path: Path) -> Iterator[ClusterApi]:
    client = ClusterApi(kubeconfig(tmp_path, cluster.port))
    yield client
    client.close()
