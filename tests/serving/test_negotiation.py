import pytest

from adapter.serving.negotiation import takes_aggregated, takes_json

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "application/json",
        "application/*",
        "application/json;q=0",
        "application/json; charset=utf-8",
        "application/vnd.kubernetes.protobuf, */*",
        f"{TABLE},application/json",
    ],
)
def test_json_is_taken(accept: str) -> None:
    assert takes_json(accept) is None


@pytest.mark.parametrize(
    "accept", ["text/html", "application/vnd.kubernetes.protobuf", "APPLICATION/JSON", "garbage", TABLE, V2, ";;=,;"]
)
def test_json_is_not_taken(accept: str) -> None:
    refused = takes_json(accept)
    assert refused is not None
    assert refused.code == 406


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        (V2, True),
        (f"{V2},application/json", True),
        (f"application/vnd.kubernetes.protobuf,{V2}", True),
        (f"application/json,{V2}", False),
        ("application/json", False),
        (V2.replace("v2;", "v2beta1;"), False),
        (f"{V2.replace('v2;', 'v2beta1;')},{V2}", True),
    ],
)
def test_aggregated_discovery_is_for_those_who_prefer_it(accept: str, wanted: bool) -> None:
    assert takes_aggregated(accept) is wanted
