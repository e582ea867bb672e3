"""How long the fuzz is: short and always the same in the test command, as long as FUZZ_EXAMPLES says in `make fuzz`."""

import ssl
from collections.abc import Iterator, Mapping

import pytest
from fuzz_lengths import LONG
from fuzz_servers import api, guarded
from hypothesis import HealthCheck, settings

from adapter.serving.api.metrics_api import MetricsApi
from conformance.cluster import Cluster, standing_in
from conformance.identities import NAMES, NOBODY, Identities, issue

if LONG:
    # Another seed each time; the one that was used is an option of the command.
    settings.register_profile(
        "fuzz",
        derandomize=False,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("fuzz")


@pytest.fixture(scope="session")
def identities(tmp_path_factory: pytest.TempPathFactory) -> Identities:
    return issue(tmp_path_factory.mktemp("identities"))


@pytest.fixture(scope="session")
def held(identities: Identities) -> Mapping[str, bytes]:
    """The certificate of everybody who has one, DER."""
    names = [name for name in NAMES if name != NOBODY]
    return {name: ssl.PEM_cert_to_DER_cert((identities.folder / f"{name}.pem").read_text()) for name in names}


@pytest.fixture(scope="session")
def cluster(identities: Identities) -> Iterator[Cluster]:
    with standing_in(identities) as running:
        yield running


@pytest.fixture(scope="session")
def everybody_s() -> MetricsApi:
    return api()


@pytest.fixture(scope="session")
def cluster_s(cluster: Cluster) -> Iterator[MetricsApi]:
    with guarded(cluster) as made:
        yield made
