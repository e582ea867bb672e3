"""The one thing `serve` asks a cluster for, told on loopback: the ConfigMap that names the front proxy's CA."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adapter.serving.authn import CONFIG_MAP
from bench.loopback import served

_KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: bench
contexts: [{{name: bench, context: {{cluster: bench, user: bench}}}}]
clusters: [{{name: bench, cluster: {{server: "{url}"}}}}]
users: [{{name: bench, user: {{}}}}]
"""


@contextmanager
def told(front_proxy_ca_pem: str, kubeconfig: Path) -> Iterator[None]:
    """Answer for the ConfigMap while the block lasts; kubeconfig: where to write how to reach it."""
    data = {
        "requestheader-client-ca-file": front_proxy_ca_pem,
        "requestheader-allowed-names": "[]",
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "data": data}).encode()
    with served(lambda path: body if path == CONFIG_MAP else None) as url:
        kubeconfig.write_text(_KUBECONFIG.format(url=url))
        yield
