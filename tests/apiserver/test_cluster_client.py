"""The cluster's API through the real client, from a stand-in on loopback: answers, faults, deadlines."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from hostile_server import http_server, trickle
from pod_environment import unused_proxy

from adapter.apiserver.cluster_api import LARGEST_BYTES, ClusterApi
from adapter.errors import SourceError
from conformance.cluster import CONFIG_MAP, OWN_TOKEN, Cluster, status, write_kubeconfig

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
BOOM = status(500, "boom")[1]
BODY = {"kind": "SubjectAccessReview", "spec": {"user": "alice"}}


def test_a_document_is_read(api: ClusterApi, cluster: Cluster) -> None:
    code, document = api.get(CONFIG_MAP)
    assert code == 200
    assert document["data"] == cluster.config_map


def test_a_document_is_sent_and_answered(api: ClusterApi) -> None:
    code, document = api.post(REVIEWS, BODY)
    assert code == 201
    assert document["status"] == {"allowed": True}


def test_a_document_is_applied_with_a_field_manager(api: ClusterApi, cluster: Cluster) -> None:
    document = {"apiVersion": "v1", "kind": "Secret", "data": {"token": "YQ=="}}
    assert api.apply("/api/v1/namespaces/a/secrets/b", document) == (200, document)
    ((path, kind, body),) = cluster.applied
    assert path == "/api/v1/namespaces/a/secrets/b?fieldManager=backlog-adapter&force=true"
    assert (kind, body) == ("application/apply-patch+yaml", document)


@pytest.mark.parametrize(
    ("body", "expected"),
    [(BOOM, json.loads(BOOM)), (b"boom", "boom"), (b"", ""), (b"\xff", "\ufffd")],
    ids=["a Status", "text", "nothing", "bytes"],
)
def test_an_error_status_is_returned_unchanged(
    api: ClusterApi, cluster: Cluster, body: bytes, expected: object
) -> None:
    cluster.failures.append((500, body))
    code, document = api.get(CONFIG_MAP)
    assert code == 500
    assert document == expected


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"{", b'"\\ud800"', b"\xff", b"[" * 100_000],
    ids=["nothing", "HTML", "half", "a half character", "bytes", "deep"],
)
def test_a_success_without_json_is_a_fault(api: ClusterApi, cluster: Cluster, body: bytes) -> None:
    cluster.failures.append((200, body))
    with pytest.raises(SourceError, match="expected JSON in an answer of 200"):
        api.get(CONFIG_MAP)


def test_an_answer_that_is_too_long_is_not_read(api: ClusterApi, cluster: Cluster) -> None:
    cluster.failures.append((200, b"[" + b" " * LARGEST_BYTES + b"]"))
    with pytest.raises(SourceError, match=f"the answer is larger than {LARGEST_BYTES} bytes"):
        api.get(CONFIG_MAP)
    assert api.get(CONFIG_MAP)[0] == 200


def test_all_threads_share_the_connections(api: ClusterApi, cluster: Cluster) -> None:
    with ThreadPoolExecutor(4) as threads:
        codes = list(threads.map(lambda _: api.post(REVIEWS, BODY)[0], range(100)))
    assert codes == [201] * 100
    assert cluster.connections <= 4


def test_an_api_that_does_not_answer_costs_no_more_than_the_deadline(api: ClusterApi, cluster: Cluster) -> None:
    cluster.silent = True
    with pytest.raises(SourceError, match="timed out"):
        api.get(CONFIG_MAP, deadline_s=0.1)


def test_an_answer_that_trickles_ends_at_the_deadline(tmp_path: Path) -> None:
    with http_server(trickle) as url:
        api = ClusterApi(write_kubeconfig(tmp_path, int(url.rpartition(":")[2])))
        with closing(api), pytest.raises(SourceError, match="the answer did not end in time"):
            api.get(CONFIG_MAP, deadline_s=1.0)


def test_an_unreachable_api_raises_a_source_error(api: ClusterApi, cluster: Cluster) -> None:
    cluster.stop()
    with pytest.raises(SourceError, match=f"GET {CONFIG_MAP}: .*refused"):
        api.get(CONFIG_MAP)


@pytest.mark.parametrize("path", [None, "/nowhere/kubeconfig"], ids=["outside a pod", "no such file"])
def test_missing_credentials_raise_a_source_error(path: str | None) -> None:
    with pytest.raises(SourceError, match="kubernetes"):
        ClusterApi(path).get(CONFIG_MAP)


HALF_OF_IT = [0, 20, 40, 150, 200, 250, -2]


@pytest.mark.parametrize(
    "change",
    [
        *(pytest.param(lambda text, n=n: text[:n], id=f"up to {n}") for n in HALF_OF_IT),
        pytest.param(lambda _: "a: [", id="no YAML"),
        pytest.param(lambda _: "[]", id="a list"),
        pytest.param(lambda _: "1", id="a number"),
        pytest.param(lambda _: "contexts: 1\ncurrent-context: c", id="contexts that are none"),
        pytest.param(lambda text: text.replace('"user": {"token"', '"token": {"user"'), id="a key that is missing"),
    ],
)
def test_an_invalid_kubeconfig_raises_an_error_with_file_and_fix_without_the_token(
    tmp_path: Path, change: Callable[[str], str]
) -> None:
    file = Path(write_kubeconfig(tmp_path, 1))
    file.write_text(change(file.read_text()))
    with pytest.raises(SourceError) as raised:
        ClusterApi(str(file)).get(CONFIG_MAP)
    message = str(raised.value)
    assert message.startswith(f"kubernetes: expected a kubeconfig in {file}: ")
    assert message.endswith("; set serving.kubeconfig to a complete file, or run in a pod")
    assert OWN_TOKEN not in message


def test_a_rejected_credential_is_read_again(cluster: Cluster, tmp_path: Path) -> None:
    api = ClusterApi(write_kubeconfig(tmp_path, cluster.port, token="old"))
    assert api.get(CONFIG_MAP)[0] == 401
    write_kubeconfig(tmp_path, cluster.port)
    assert api.get(CONFIG_MAP)[0] == 200
    api.close()


def test_a_closed_client_connects_again(api: ClusterApi) -> None:
    api.get(CONFIG_MAP)
    api.close()
    assert api.get(CONFIG_MAP)[0] == 200


def test_the_proxy_of_the_environment_is_not_used_in_the_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with unused_proxy(monkeypatch, tmp_path), pytest.raises(SourceError, match=f"kubernetes: GET {CONFIG_MAP}: "):
        ClusterApi(None).get(CONFIG_MAP, deadline_s=0.5)
