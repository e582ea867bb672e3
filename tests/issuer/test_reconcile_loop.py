"""Replicas that issue together: who leads, what is written, and what is repaired."""

import stat
from pathlib import Path
from threading import Event
from threading import enumerate as threads

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from issuer_builders import (
    API_SERVICES_PATH,
    HOST,
    LEASE,
    LIVES,
    OURS,
    OWN,
    PEER,
    PEER_HOST,
    PERIOD_S,
    THEIRS,
    TOKEN,
    Cluster,
    Replica,
    issued,
    pass_time,
    served,
    verifies,
)
from structlog.testing import capture_logs

from adapter.issuer.keys import bundle_pem, read_bundle
from adapter.issuer.reconcile_loop import ReconcileLoop
from adapter.issuer.token import SharedToken


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def replica(cluster: Cluster, tmp_path: Path) -> Replica:
    return Replica(cluster, tmp_path / "one", "one")


@pytest.fixture
def other(cluster: Cluster, tmp_path: Path) -> Replica:
    return Replica(cluster, tmp_path / "other", "other")


# The first round.


def test_the_first_round_makes_everything(cluster: Cluster, replica: Replica) -> None:
    replica.rounds.run_once()
    (authority,) = cluster.bundle()
    assert verifies((authority,), issued(cluster), cluster.now_s)
    assert verifies((authority,), issued(cluster, PEER), cluster.now_s)
    assert served(replica).certificate == issued(cluster).certificate
    assert read_bundle(replica.files.authorities.read_bytes()) == (authority,)
    assert replica.token.read_bytes() == cluster.data(TOKEN)["token"]
    assert len(replica.token.read_bytes()) == 48


@pytest.mark.parametrize(("path", "host"), [(OWN, HOST), (PEER, PEER_HOST)])
def test_each_server_has_a_certificate_for_its_own_host_alone(
    cluster: Cluster, replica: Replica, path: str, host: str
) -> None:
    replica.rounds.run_once()
    names = issued(cluster, path).certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [host]


def test_the_key_of_the_ca_is_in_one_secret_alone(cluster: Cluster, replica: Replica) -> None:
    replica.rounds.run_once()
    assert sorted(cluster.data(OWN)) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]
    assert sorted(cluster.data(PEER)) == ["ca.crt", "tls.crt", "tls.key"]
    assert b"ca.key" not in replica.files.certificate.read_bytes()
    assert cluster.data(OWN)["ca.key"] not in replica.files.certificate.read_bytes()


def test_only_this_user_can_read_the_files(replica: Replica) -> None:
    replica.rounds.run_once()
    files = [replica.files.certificate, replica.files.authorities, replica.token]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_before_the_first_round_a_server_has_a_certificate_that_nobody_trusts(replica: Replica) -> None:
    assert not replica.certificates.is_issued()
    before = served(replica)
    assert before.covers(HOST)
    replica.rounds.run_once()
    assert replica.certificates.is_issued()
    assert served(replica).certificate != before.certificate


def test_a_restarted_server_keeps_its_certificate_without_the_cluster(
    cluster: Cluster, replica: Replica, tmp_path: Path
) -> None:
    replica.rounds.run_once()
    before = served(replica)
    cluster.is_away = True
    restarted = Replica(cluster, tmp_path / "one", "one")
    restarted.rounds.run_once()
    assert restarted.certificates.is_issued()
    assert served(restarted).certificate == before.certificate


def test_nothing_but_the_lease_is_written_while_nothing_is_due(cluster: Cluster, replica: Replica) -> None:
    replica.rounds.run_once()
    cluster.writes.clear()
    pass_time(cluster, 600, replica)
    assert set(cluster.writes) == {LEASE}


# Who leads.


def test_one_replica_issues_and_every_replica_serves_it(cluster: Cluster, replica: Replica, other: Replica) -> None:
    for each in (replica, other, replica):
        each.rounds.run_once()
    assert cluster.objects[LEASE]["spec"]["holderIdentity"] == "one"
    assert served(other).certificate == served(replica).certificate == issued(cluster).certificate


def test_a_leader_that_is_gone_is_replaced_when_its_lease_expires(
    cluster: Cluster, replica: Replica, other: Replica
) -> None:
    pass_time(cluster, 20, replica, other)
    pass_time(cluster, 20, other)
    assert cluster.objects[LEASE]["spec"]["holderIdentity"] == "one"
    pass_time(cluster, 20, other)
    assert cluster.objects[LEASE]["spec"]["holderIdentity"] == "other"
    assert cluster.objects[LEASE]["spec"]["leaseTransitions"] == 1


def test_a_leader_that_stops_gives_its_lease_back(cluster: Cluster, replica: Replica, other: Replica) -> None:
    replica.rounds.run_once()
    replica.rounds.stop()
    other.rounds.run_once()
    assert cluster.objects[LEASE]["spec"]["holderIdentity"] == "other"
    assert cluster.objects[LEASE]["spec"]["leaseTransitions"] == 1


def test_a_leader_that_stops_while_the_cluster_is_slow_keeps_its_lease_and_issues_nothing_more(
    cluster: Cluster, replica: Replica, other: Replica
) -> None:
    is_slow, answers = Event(), Event()

    def lose_secrets() -> None:  # after the Lease is renewed, the certificate is written, then the token
        cluster.edit(PEER, {"data": {}})
        cluster.edit(TOKEN, {"data": {}})
        cluster.before_write = delay

    def delay() -> None:
        cluster.before_write = lambda: None
        is_slow.set()
        answers.wait(10)

    tasks = [replica.certificates, SharedToken(cluster, TOKEN, replica.token)]
    loop = ReconcileLoop(replica.lease, tasks, period_s=0.001, stops_within_s=0.0)
    loop.start()
    (thread,) = [each for each in threads() if each.name == "issuer"]
    cluster.before_write = lose_secrets
    assert is_slow.wait(10)
    loop.stop()
    assert not other.lease.hold()
    answers.set()
    thread.join(10)
    assert cluster.objects[LEASE]["spec"]["holderIdentity"] == "one"
    assert cluster.data(TOKEN) == {}


def test_the_first_replica_creates_the_lease_and_the_secrets_own_it(cluster: Cluster, replica: Replica) -> None:
    assert replica.lease.hold()
    owners = [("Secret", name, f"uid-of-{name}") for name in ("adapter-tls", "adapter-token")]
    references = cluster.objects[LEASE]["metadata"]["ownerReferences"]
    assert [(each["kind"], each["name"], each["uid"]) for each in references] == owners


def test_a_lost_secret_does_not_end_the_election(cluster: Cluster, replica: Replica) -> None:
    del cluster.objects[OWN]
    replica.rounds.run_once()
    assert cluster.data(TOKEN)["token"] == replica.token.read_bytes()


def test_a_replica_whose_lease_another_one_creates_at_the_same_time_waits(cluster: Cluster, replica: Replica) -> None:
    cluster.refused[LEASE] = 409
    assert not replica.lease.hold()


def test_a_lease_that_another_replica_creates_first_stays_as_it_is(
    cluster: Cluster, replica: Replica, other: Replica
) -> None:
    def take_first() -> None:
        cluster.before_write = lambda: None
        assert other.lease.hold()

    cluster.before_write = take_first
    assert not replica.lease.hold()
    assert cluster.objects[LEASE]["spec"]["holderIdentity"] == "other"


def test_of_two_replicas_that_take_the_lease_at_once_one_holds_it(cluster: Cluster, replica: Replica) -> None:
    cluster.make(LEASE, {})
    cluster.before_write = lambda: cluster.edit(LEASE, {"spec": {"holderIdentity": "faster"}})
    assert not replica.lease.hold()
    assert cluster.objects[LEASE]["spec"]["holderIdentity"] == "faster"


# Faults.


def test_an_api_service_of_another_adapter_is_never_written(cluster: Cluster, replica: Replica) -> None:
    pass_time(cluster, 3600, replica)
    assert f"{API_SERVICES_PATH}/{OURS}" in cluster.writes
    assert f"{API_SERVICES_PATH}/{THEIRS}" not in cluster.writes
    assert cluster.bundle(THEIRS) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"ca_crt": None, "ca_key": None, "tls_crt": None, "tls_key": None},
        {"ca_key": b"nonsense"},
        {"ca_crt": b"\xff\x00"},
        {"tls_crt": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
        {"tls_key": None},
    ],
    ids=[
        "all of it is gone",
        "the CA's key is nonsense",
        "the CA is nonsense",
        "the certificate is",
        "the key is gone",
    ],
)
def test_a_damaged_secret_is_repaired_and_what_is_served_stays_trusted(
    cluster: Cluster, replica: Replica, changes: dict[str, bytes | None]
) -> None:
    replica.rounds.run_once()
    before = served(replica)
    cluster.edit_data(OWN, **changes)
    with capture_logs():
        replica.rounds.run_once()
    assert verifies(cluster.bundle(), before, cluster.now_s)
    assert verifies(cluster.bundle(), served(replica), cluster.now_s)
    pass_time(cluster, LIVES.publish_s + PERIOD_S, replica)
    assert served(replica).certificate == issued(cluster).certificate != before.certificate
    assert verifies(cluster.bundle()[:1], served(replica), cluster.now_s), "of the newest CA"


def test_a_trusted_ca_with_an_unknown_kind_of_key_has_signed_nothing(cluster: Cluster, replica: Replica) -> None:
    replica.rounds.run_once()
    (authority,) = cluster.bundle()
    known, unknown = bytes.fromhex("2a8648ce3d0201"), bytes.fromhex("2a8648ce3d0209")  # the first is id-ecPublicKey
    der = authority.public_bytes(Encoding.DER).replace(known, unknown)
    cluster.edit_data(OWN, ca_crt=bundle_pem([x509.load_der_x509_certificate(der), authority]))
    with capture_logs() as logs:
        replica.rounds.run_once()
    assert {line["log_level"] for line in logs} == {"info"}
    assert verifies(cluster.bundle(), served(replica), cluster.now_s)


def test_a_damaged_secret_of_the_pipeline_is_repaired(cluster: Cluster, replica: Replica) -> None:
    replica.rounds.run_once()
    cluster.edit(PEER, {"data": {}})
    replica.rounds.run_once()
    assert verifies(cluster.bundle(), issued(cluster, PEER), cluster.now_s)
    assert read_bundle(cluster.data(PEER)["ca.crt"]) == cluster.bundle()


@pytest.mark.parametrize("token", [b"", b" \n", "schlüssel".encode(), b"two\nlines"])
def test_a_token_that_no_header_can_carry_is_replaced(cluster: Cluster, replica: Replica, token: bytes) -> None:
    cluster.edit_data(TOKEN, token=token)
    replica.rounds.run_once()
    assert len(cluster.data(TOKEN)["token"]) == 48


def test_a_given_token_is_kept(cluster: Cluster, replica: Replica) -> None:
    cluster.edit_data(TOKEN, token=b"secret\n")
    replica.rounds.run_once()
    assert cluster.data(TOKEN)["token"] == b"secret\n"
    assert replica.token.read_bytes() == b"secret"


def test_a_removed_bundle_is_written_again(cluster: Cluster, replica: Replica) -> None:
    replica.rounds.run_once()
    before = cluster.bundle()
    spec = cluster.objects[f"{API_SERVICES_PATH}/{OURS}"]["spec"]
    cluster.edit(f"{API_SERVICES_PATH}/{OURS}", {"spec": {**spec, "caBundle": None}})
    replica.rounds.run_once()
    assert cluster.bundle() == before


@pytest.mark.parametrize(
    ("path", "status", "cause"),
    [
        (OWN, 403, f"PATCH {OWN}: expected an object, got 403; allow create and patch of it: refused"),
        (PEER, 409, f"PATCH {PEER}: another writer changed it meanwhile; trying again"),
        (TOKEN, 500, f"PATCH {TOKEN}: expected an object, got 500: refused"),
    ],
)
def test_a_refused_write_is_logged_with_the_fix_and_the_other_parts_go_on(
    cluster: Cluster, replica: Replica, path: str, status: int, cause: str
) -> None:
    cluster.refused[path] = status
    with capture_logs() as logs:
        replica.rounds.run_once()
    warnings = [line["cause"] for line in logs if line["event"] == "cannot be issued; retrying"]
    assert warnings == [f"kubernetes: {cause}"]
    assert replica.token.exists() == (path != TOKEN)
    assert replica.certificates.is_issued() == (path == TOKEN)


def test_a_deleted_secret_is_logged_with_the_fix_and_the_certificate_stays(cluster: Cluster, replica: Replica) -> None:
    replica.rounds.run_once()
    before = served(replica)
    del cluster.objects[OWN]
    with capture_logs() as logs:
        replica.rounds.run_once()
        replica.rounds.run_once()
    warnings = {(line["event"], line["cause"]) for line in logs}
    cause = f"kubernetes: GET {OWN}: it does not exist; helm upgrade makes it again, a server may not"
    assert warnings == {("cannot be issued; retrying", cause), ("cannot be read; the last one stays", cause)}
    assert len(logs) == 2, "each once"
    assert served(replica).certificate == before.certificate
