"""What access is reviewed for: cases 31 (verb watch), 52, 53, 56 and 61 as far as method and path decide them."""

import pytest

from adapter.serving.api.attributes import Attributes, NoResourceError, attributes, forbidden, of_request
from adapter.serving.api.request import Request
from adapter.serving.api.status import Refusal, encode

EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
METRIC = f"{EXTERNAL}/namespaces/default/my-external-metric"
PODS = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/ns/pods/*/some-metric"
DENIED = "no RBAC policy matched"


def external(verb: str, path: str, **parts: str) -> Attributes:
    return Attributes(verb, path, True, "external.metrics.k8s.io", "v1beta1", **parts)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/healthz",
        "/apis",
        "/apis/external.metrics.k8s.io",
        EXTERNAL,
        f"{EXTERNAL}/",
        "/openapi/v3/apis/a/b/c/d",
        "/api/v1",
        "",
    ],
)
def test_a_path_of_no_resource_is_reviewed_by_itself(path: str) -> None:
    assert attributes("GET", path) == Attributes("get", path)
    assert attributes("OPTIONS", path) == Attributes("options", path)


@pytest.mark.parametrize(
    ("method", "verb"),
    [
        pytest.param("GET", "list", id="case 61: a metric is listed, not got"),
        ("HEAD", "list"),
        pytest.param("POST", "create", id="auth-185"),
        ("PUT", "update"),
        ("PATCH", "patch"),
        ("DELETE", "deletecollection"),
        ("OPTIONS", ""),
        ("get", ""),
    ],
)
def test_a_method_on_a_metric_is_a_verb(method: str, verb: str) -> None:
    assert attributes(method, METRIC) == external(verb, METRIC, namespace="default", resource="my-external-metric")


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        pytest.param("namespaces/foo/a/b", ("get", "foo", "a", "", "b"), id="auth-188"),
        ("namespaces/foo/a/b/c/d", ("get", "foo", "a", "c", "b")),
        ("namespaces", ("list", "", "namespaces", "", "")),
        ("namespaces/foo", ("get", "foo", "namespaces", "", "foo")),
        ("namespaces/foo/", ("get", "foo", "namespaces", "", "foo")),
        ("namespaces/foo/status", ("get", "foo", "namespaces", "status", "foo")),
        ("namespaces/foo/finalize/x", ("get", "foo", "namespaces", "finalize", "foo")),
        ("namespaces//m", ("list", "", "m", "", "")),
        ("m", ("list", "", "m", "", "")),
        ("m/x/y", ("get", "", "m", "y", "x")),
        ("watch/namespaces/foo/m", ("watch", "foo", "m", "", "")),
        ("proxy/namespaces/foo/m/x/y", ("proxy", "foo", "m", "", "x")),
    ],
)
def test_the_segments_of_a_path_have_their_places(tail: str, expected: tuple[str, ...]) -> None:
    found = attributes("GET", f"{EXTERNAL}/{tail}")
    assert (found.verb, found.namespace, found.resource, found.subresource, found.name) == expected


def test_a_metric_of_an_object_is_a_subresource() -> None:
    found = attributes("GET", PODS)
    assert (found.verb, found.resource, found.subresource, found.name) == ("get", "pods", "some-metric", "*")


def test_the_core_group_has_no_name() -> None:
    found = attributes("GET", "/api/v1/namespaces/x/pods/y/log")
    assert (found.is_resource, found.group, found.version, found.subresource) == (True, "", "v1", "log")


def test_only_a_list_is_a_watch() -> None:
    assert attributes("GET", METRIC, watch=True).verb == "watch"
    assert attributes("POST", METRIC, watch=True).verb == "create"
    assert attributes("GET", PODS, watch=True).verb == "get"


def test_a_path_of_any_length_is_read() -> None:
    assert attributes("GET", f"{METRIC}{'y' * 100_000}").resource.endswith("yyy")
    assert attributes("GET", EXTERNAL + "/" * 100_000).is_resource is False


@pytest.mark.parametrize(
    ("query", "verb", "name"),
    [
        ("", "list", ""),
        ("?labelSelector=a%3Db", "list", ""),
        ("?watch=true", "watch", ""),
        ("?watch=false", "list", ""),
        ("?watch=x&limit=y", "watch", ""),
        ("?fieldSelector=metadata.name%3Dx", "list", "x"),
        ("?fieldSelector=metadata.name%3Dx&limit=y", "list", ""),
        ("?fieldSelector=metadata.name%3Dx&watch=1", "watch", "x"),
    ],
)
def test_a_list_is_what_its_query_makes_of_it(query: str, verb: str, name: str) -> None:
    found = of_request(Request.of("GET", METRIC + query))
    assert found == external(verb, METRIC, namespace="default", resource="my-external-metric", name=name)


def test_a_query_makes_nothing_of_anything_else() -> None:
    assert of_request(Request.of("GET", f"{PODS}?watch=true&fieldSelector=metadata.name%3Dx")).verb == "get"
    assert of_request(Request.of("GET", "/apis?watch=true")) == Attributes("get", "/apis")


@pytest.mark.parametrize("verb", ["watch", "proxy"])
def test_a_verb_in_a_path_with_nothing_behind_it_is_a_500_as_in_kubernetes(verb: str) -> None:
    path = f"{EXTERNAL}/{verb}"
    with pytest.raises(NoResourceError):
        attributes("GET", path)
    with pytest.raises(Refusal) as raised:
        of_request(Request.of("GET", f"{path}/?a=<b>"))
    answer = raised.value.answer
    assert answer.code == 500
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.body is not None
    assert answer.body.decode() == (
        f'Internal Server Error: "{path}/?a=&lt;b&gt;": failed to create RequestInfo: '
        f"unable to determine kind and namespace from url, {path}/?a=&lt;b&gt;\n"
    )


@pytest.mark.parametrize(
    ("method", "path", "user", "message", "details"),
    [
        pytest.param(
            "GET",
            METRIC,
            "system:anonymous",
            'my-external-metric.external.metrics.k8s.io is forbidden: User "system:anonymous" cannot list resource '
            '"my-external-metric" in API group "external.metrics.k8s.io" in the namespace "default": '
            "no RBAC policy matched",
            {"group": "external.metrics.k8s.io", "kind": "my-external-metric"},
            id="case 52, auth-164",
        ),
        pytest.param(
            "GET",
            EXTERNAL,
            "system:anonymous",
            f'forbidden: User "system:anonymous" cannot get path "{EXTERNAL}": no RBAC policy matched',
            {},
            id="case 53, auth-165",
        ),
        pytest.param(
            "POST",
            METRIC,
            "bob",
            'my-external-metric.external.metrics.k8s.io is forbidden: User "bob" cannot create resource '
            '"my-external-metric" in API group "external.metrics.k8s.io" in the namespace "default": '
            "no RBAC policy matched",
            {"group": "external.metrics.k8s.io", "kind": "my-external-metric"},
            id="auth-185",
        ),
        pytest.param(
            "GET",
            f"{EXTERNAL}/namespaces/foo/a/b",
            "bob",
            'a.external.metrics.k8s.io "b" is forbidden: User "bob" cannot get resource "a" in API group '
            '"external.metrics.k8s.io" in the namespace "foo": no RBAC policy matched',
            {"name": "b", "group": "external.metrics.k8s.io", "kind": "a"},
            id="auth-188",
        ),
        pytest.param(
            "GET",
            "/apis/custom.metrics.k8s.io/v1beta1/nodes/n/m",
            'a"<b>',
            'nodes.custom.metrics.k8s.io "n" is forbidden: User "a\\"&lt;b&gt;" cannot get resource "nodes/m" in API '
            'group "custom.metrics.k8s.io" at the cluster scope: no RBAC policy matched',
            {"name": "n", "group": "custom.metrics.k8s.io", "kind": "nodes"},
            id="of no namespace, by a name that is no name",
        ),
    ],
)
def test_who_may_not_is_told_what(method: str, path: str, user: str, message: str, details: dict[str, str]) -> None:
    answer = forbidden(attributes(method, path), user, DENIED)
    assert answer.code == 403
    assert (answer.document["reason"], answer.document["message"]) == ("Forbidden", message)
    assert answer.document["details"] == details
    assert answer.headers == {"X-Content-Type-Options": "nosniff"}


def test_auth_186_the_body_is_the_recorded_one() -> None:
    assert encode(forbidden(attributes("GET", EXTERNAL), "bob", DENIED).document) == (
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"forbidden: User \\"bob\\" '
        b'cannot get path \\"/apis/external.metrics.k8s.io/v1beta1\\": no RBAC policy matched","reason":"Forbidden",'
        b'"details":{},"code":403}\n'
    )


def test_without_a_reason_there_is_none() -> None:
    message = forbidden(attributes("GET", "/apis"), "bob", "").document["message"]
    assert message == 'forbidden: User "bob" cannot get path "/apis"'
