"""What is kept of requests: nothing that anybody could fill the memory with."""

import pytest

from adapter.serving.api.request import Request

METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/required_workers"


@pytest.mark.parametrize(
    ("uri", "is_remembered"),
    [
        pytest.param(f"{METRIC}?labelSelector=workload%3Dorders", True, id="an HPA's"),
        pytest.param(f"/healthz?{'&'.join('abcdefghijk')}", False, id="many parameters"),
        pytest.param(f"/healthz?a={'b' * 600}", False, id="long"),
    ],
)
def test_only_small_targets_are_remembered_for_anybody_may_send_others(uri: str, is_remembered: bool) -> None:
    assert (Request.of("GET", uri).query is Request.of("GET", uri).query) == is_remembered


def test_a_target_that_is_not_remembered_is_read_all_the_same() -> None:
    assert list(Request.of("GET", f"/healthz?{'&'.join('abcdefghijk')}").query) == list("kjihgfedcba")


def test_of_a_thousand_parameters_and_more_the_first_thousand_are_read() -> None:
    uri = f"/healthz?{'&'.join(f'p{number}' for number in range(1_000))}"
    assert Request.of("GET", f"{uri}&late=1&later=2").query == Request.of("GET", uri).query
    assert len(Request.of("GET", uri).query) == 1_000


@pytest.mark.parametrize("pair", ["a=1;b=2", "a=%zz", "a=%4", "a=%", "%zz=a"])
def test_a_pair_that_is_not_well_formed_is_as_good_as_not_sent(pair: str) -> None:
    assert dict(Request.of("GET", f"/healthz?{pair}&c=%33").query) == {"c": "3"}
