"""The manifests of the cluster's DNS: CoreDNS with the plugins of tests/e2e/tools/coredns."""

from typing import Any

from parts.controlplane import SERVICES

SERVER = f"{SERVICES}.10"
_LABELS = {"k8s-app": "kube-dns"}
_ZONES = """\
.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        ttl 5
    }
    cache 5
}
"""
_RBAC = "rbac.authorization.k8s.io"


def _meta(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": "kube-system", "labels": _LABELS}


_CONTAINER = {
    "name": "coredns", "image": "localhost/coredns:1", "imagePullPolicy": "Never",
    "args": ["-conf", "/etc/coredns/Corefile"],
    "securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}},
    "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
    "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
}  # fmt: skip
_POD = {
    "serviceAccountName": "coredns", "dnsPolicy": "Default", "priorityClassName": "system-cluster-critical",
    "containers": [_CONTAINER], "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
}  # fmt: skip
_RULES = [
    {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": ["list", "watch"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
]

MANIFESTS: tuple[dict[str, Any], ...] = (
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta("coredns")},
    {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "system:coredns"}, "rules": _RULES},
    {
        "apiVersion": f"{_RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "system:coredns"},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "system:coredns"},
        "subjects": [{"kind": "ServiceAccount", "name": "coredns", "namespace": "kube-system"}],
    },
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta("coredns"), "data": {"Corefile": _ZONES}},
    {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": _meta("coredns"),
        "spec": {
            "replicas": 1, "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": _POD},
        },
    },
    {
        "apiVersion": "v1", "kind": "Service", "metadata": _meta("kube-dns"),
        "spec": {
            "selector": _LABELS, "clusterIP": SERVER,
            "ports": [{"name": protocol.lower(), "port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")],
        },
    },
)  # fmt: skip
