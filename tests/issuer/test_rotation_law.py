"""The law of a rotation: a client verifies what every running replica serves, whatever happens to the replicas."""

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from issuer_builders import OWN, PEER, PERIOD_S, Cluster, Replica, issued, pass_time, served, verifies
from structlog.testing import capture_logs

from adapter.issuer.keys import read_bundle
from adapter.issuer.steps import Bundle, Lifetimes

SHORT = Lifetimes(leaf_s=360, authority_s=1080, publish_s=60)
EVENTS = st.sampled_from(["nothing", "one is away", "other is away", "the Secret is lost", "the CA's key is lost"])


class Client:
    """Learns the CAs of an APIService late, but within the time that a rotation waits for it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seen: list[tuple[float, Bundle]] = [(cluster.now_s - SHORT.publish_s, cluster.bundle())]

    def trusted(self) -> Bundle:
        now_s = self._cluster.now_s
        self._seen.append((now_s, self._cluster.bundle()))
        return next(bundle for at_s, bundle in reversed(self._seen) if at_s <= now_s - SHORT.publish_s + PERIOD_S)


@settings(max_examples=8, phases=[Phase.explicit, Phase.generate])  # an example has seconds of signatures
@given(events=st.lists(EVENTS, min_size=5, max_size=7))
def test_every_certificate_that_is_served_can_be_verified_at_any_time(
    tmp_path_factory: pytest.TempPathFactory, events: list[str]
) -> None:
    cluster, folder = Cluster(), tmp_path_factory.mktemp("law")
    replicas = {name: Replica(cluster, folder / name, name, SHORT) for name in ("one", "other")}
    with capture_logs():
        pass_time(cluster, PERIOD_S, *replicas.values())
        client = Client(cluster)
        for event in events:
            if event == "the Secret is lost":
                cluster.edit(OWN, {"data": {}})
            elif event == "the CA's key is lost":
                cluster.edit_data(OWN, ca_key=b"nonsense")
            running = [each for name, each in replicas.items() if event != f"{name} is away"]
            for present in (*[running] * 8, *[list(replicas.values())] * 12):
                pass_time(cluster, PERIOD_S, *present)
                trusted = client.trusted()
                assert all(verifies(trusted, served(each), cluster.now_s) for each in present)
                assert verifies(replica_trust(present[0]), issued(cluster, PEER), cluster.now_s)


def replica_trust(replica: Replica) -> Bundle:
    return read_bundle(replica.files.authorities.read_bytes())
