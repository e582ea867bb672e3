"""Another adapter behind ours: its metrics are answered through us, and its troubles stay its own."""

import json
from collections.abc import Iterator

import httpx
import pytest
from parts.adapter import CUSTOM, EXTERNAL, VERSIONS, Adapter
from parts.controlplane import ControlPlane
from parts.direct import Direct
from parts.goserver import GoServer
from parts.process import until
from parts.traffic import Traffic

THEIRS = f"/apis/{EXTERNAL}/namespaces/default/my-external-metric"
OF_PODS = f"/apis/{CUSTOM[1]}/namespaces/default/pods/*/some-metric"
LISTED_S = 90  # each of our servers asks for its list every 30 s


@pytest.fixture(scope="module")
def neighbour(other: GoServer, adapter: Adapter) -> Iterator[GoServer]:
    if not other.program.exists():
        pytest.skip(f"{other.program} was not built: make tools")
    with other:
        other.ready(lambda: httpx.get(f"{other.url}/livez", verify=False, timeout=2).is_success)  # noqa: S501 - alive?
        yield other


def values(plane: ControlPlane, path: str) -> list[str]:
    return [item["value"] for item in json.loads(plane.kubectl("get", "--raw", path))["items"]]


def test_kubectl_reads_the_metrics_of_another_adapter_through_ours(
    neighbour: GoServer, controlplane: ControlPlane, adapter: Adapter
) -> None:
    for path in (THEIRS, OF_PODS):
        until(lambda path=path: all(each.is_success for each in adapter.ask_every_server(path)), 60, f"{path} is there")
    assert values(controlplane, THEIRS) == ["42", "43"]
    assert values(controlplane, f"{THEIRS}?labelSelector=foo%3Dbaz") == ["43"]
    assert values(controlplane, OF_PODS) == ["300m", "300m"]


def test_who_may_not_read_them_is_refused(neighbour: GoServer, controlplane: ControlPlane) -> None:
    with pytest.raises(AssertionError, match='User "mallory" cannot list resource "my-external-metric"'):
        controlplane.kubectl("get", "--raw", THEIRS, user=controlplane.user("mallory"))


@pytest.mark.parametrize(
    ("version", "both"),
    [
        pytest.param(EXTERNAL, {"my-external-metric", "required_workers"}, id="external"),
        pytest.param(CUSTOM[1], {"pods/some-metric", "pods/utilization"}, id="custom"),
    ],
)
def test_both_adapters_metrics_are_listed_by_every_server(
    version: str, both: set[str], neighbour: GoServer, controlplane: ControlPlane, adapter: Adapter
) -> None:
    for server in map(adapter.direct, adapter.servers()):
        until(lambda server=server: both <= listed(server, controlplane, version), LISTED_S, f"{both} are listed")


def listed(server: Direct, plane: ControlPlane, version: str) -> set[str]:
    answer = server.get(f"/apis/{version}", plane.admin.certificate)
    return {each["name"] for each in answer.json()["resources"]}


def test_when_the_other_adapter_dies_only_its_metrics_are_missing_until_it_is_back(
    neighbour: GoServer, clicks: str, controlplane: ControlPlane, adapter: Adapter
) -> None:
    until(lambda: all(each.is_success for each in adapter.ask_every_server(THEIRS)), 60, "it is answered")
    with Traffic(lambda: adapter.ask("segments", clicks)) as traffic:
        neighbour.kill()
        answer = controlplane.api.raw(THEIRS)
        assert answer.status_code == 503
        address = neighbour.url.removeprefix("https://")
        expected = f"metrics that are not this adapter's are asked of {address}: ConnectError"
        assert answer.json()["message"].startswith(expected)
        assert [controlplane.api.raw(THEIRS).status_code for _ in range(20)] == [503] * 20
        until(lambda: traffic.asked >= 100, 180, "ours is asked all the while")
        assert all(adapter.is_available(each) for each in VERSIONS)
        neighbour.start()
        until(lambda: controlplane.api.raw(THEIRS).is_success, 180, "it is answered again")
    assert traffic.failures == 0, f"{traffic.answers}: {traffic.first_fault}"
