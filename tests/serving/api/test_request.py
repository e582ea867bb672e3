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
