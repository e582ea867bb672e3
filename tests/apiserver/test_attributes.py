"""What access is reviewed for: cases 52, 53, 56 and 61 as far as method and path decide them."""

import pytest

from adapter.apiserver.attributes import Attributes, attributes, forbidden

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
def test_a_path_without_resource_is_reviewed_as_a_path(path: str) -> None:
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
        ("namespaces//m", ("list", "", "m", "", "")),
        ("m", ("list", "", "m", "", "")),
        ("m/x/y", ("get", "", "m", "y", "x")),
    ],
)
def test_the_segments_of_a_path_have_their_places(tail: str, expected: tuple[str, ...]) -> None:
    found = attributes("GET", f"{EXTERNAL}/{tail}")
    assert (found.verb, found.namespace, found.resource, found.subresource, found.name) == expected


def test_a_metric_of_an_object_is_a_subresource() -> None:
    found = attributes("GET", PODS)
    assert (found.verb, found.resource, found.subresource, found.name) == ("get", "pods", "some-metric", "*")


def test_a_path_of_any_length_is_read() -> None:
    assert attributes("GET", f"{METRIC}{'y' * 100_000}").resource.endswith("yyy")
    assert attributes("GET", EXTERNAL + "/" * 100_000).is_resource is False


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
    ],
)
def test_a_forbidden_request_is_answered_with_user_verb_and_object(
    method: str, path: str, user: str, message: str, details: dict[str, str]
) -> None:
    answer = forbidden(attributes(method, path), user, DENIED)
    assert answer.code == 403
    assert (answer.reason, answer.message) == ("Forbidden", message)
    assert answer.details == details


def test_a_message_without_reason_ends_with_the_object() -> None:
    message = forbidden(attributes("GET", "/apis"), "bob", "").message
    assert message == 'forbidden: User "bob" cannot get path "/apis"'
