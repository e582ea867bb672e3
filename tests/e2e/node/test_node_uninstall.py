"""helm uninstall, after all other tests of this folder."""

from parts.adapter import NAME, NAMESPACE, Adapter
from parts.controlplane import ControlPlane
from parts.process import until

# Kubernetes itself makes these in every namespace.
_OF_EVERY_NAMESPACE = {"configmaps/kube-root-ca.crt", "serviceaccounts/default"}
_KINDS = (
    "configmaps", "secrets", "serviceaccounts", "services", "deployments.apps", "pods", "persistentvolumeclaims",
    "poddisruptionbudgets.policy", "networkpolicies.networking.k8s.io", "leases.coordination.k8s.io",
    "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io",
)  # fmt: skip
_CLUSTER_KINDS = ("apiservices.apiregistration.k8s.io", "clusterroles", "clusterrolebindings")


def test_helm_uninstall_leaves_nothing(adapter: Adapter, controlplane: ControlPlane) -> None:
    assert {name for name in of_the_cluster(controlplane) if name.startswith("apiservices")} != set()
    adapter.uninstall()
    until(lambda: of_the_namespace(controlplane) == _OF_EVERY_NAMESPACE, 120, "the namespace is as before")
    assert of_the_cluster(controlplane) == set()
    assert of_kube_system(controlplane) == set()


def of_the_namespace(plane: ControlPlane) -> set[str]:
    return names(plane, _KINDS, "--namespace", NAMESPACE)


def of_kube_system(plane: ControlPlane) -> set[str]:
    """The rights to read the cluster's authentication settings are there."""
    return {name for name in names(plane, _KINDS, "--namespace", "kube-system") if NAME in name}


def of_the_cluster(plane: ControlPlane) -> set[str]:
    """The objects outside namespaces that carry our name or an API group that we served."""
    return {name for name in names(plane, _CLUSTER_KINDS) if NAME in name or "metrics.k8s.io" in name}


def names(plane: ControlPlane, kinds: tuple[str, ...], *options: str) -> set[str]:
    found = set()
    for kind in kinds:
        listed = plane.kubectl(
            "get", kind, *options, "--output", 'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}'
        )
        found |= {f"{kind}/{name}" for name in listed.split()}
    return found
