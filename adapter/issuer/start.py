"""Start the issuer of a replica: certificates and a token, as far as its settings ask for them."""

import socket
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from adapter.apiserver.cluster_api import ClusterApi
from adapter.apiserver.probes import Checks
from adapter.config import Issuer, Serving
from adapter.errors import SetupError
from adapter.issuer.certificates import Certificates, Files
from adapter.issuer.lease import Lease, LeasePaths
from adapter.issuer.objects import secret_path
from adapter.issuer.reconcile_loop import LeaderTask, ReconcileLoop
from adapter.issuer.state import ObjectPaths
from adapter.issuer.steps import Lifetimes
from adapter.issuer.token import SharedToken

# Rounds while a CA is published: each replica trusts the CA before a certificate of it is used.
_ROUNDS = 6
_MISSED_ROUNDS = 3  # until another replica leads


def host_of(service: str) -> str:
    """The host name of a Service, which is given as namespace/name."""
    namespace, _, name = service.partition("/")
    return f"{name}.{namespace}.svc"


def start_issuer(settings: Serving, api: ClusterApi, stack: ExitStack) -> Checks:
    """Start to issue, if the settings want it; closing the stack stops it. Returns the checks of readiness.

    Raises SetupError if the certificate cannot be written.
    """
    issuer = settings.issuer
    if issuer is None:
        return {}
    period_s = issuer.publish_s / _ROUNDS
    namespace = str(settings.service).partition("/")[0]
    paths = LeasePaths(
        lease=f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{issuer.lease}",
        owners=tuple(secret_path(namespace, name) for name in (issuer.secret, issuer.token_secret) if name is not None),
    )
    lease = Lease(api, paths, socket.gethostname(), _MISSED_ROUNDS * period_s)
    tasks: list[LeaderTask] = []
    checks: Checks = {}
    if issuer.secret is not None:
        certificates = _certificates(settings, issuer, api)
        _begin(certificates, Path(str(settings.cert_file)))
        checks = {"certificate": certificates.is_issued}
        tasks.append(certificates)
    if issuer.token_secret is not None:
        tasks.append(
            SharedToken(api, secret_path(namespace, issuer.token_secret), Path(str(settings.snapshot_token_file)))
        )
    loop = ReconcileLoop(lease, tasks, period_s)
    loop.start()
    stack.callback(loop.stop)
    return checks


def _begin(certificates: Certificates, file: Path) -> None:
    try:
        certificates.begin()
    except OSError as error:
        fix = f"mount a writable volume at {file.parent}"
        raise SetupError(f"serving.cert_file: {file} cannot be written: {error.strerror}; {fix}") from error


def _certificates(settings: Serving, issuer: Issuer, api: ClusterApi) -> Certificates:
    service = str(settings.service)
    namespace = service.partition("/")[0]
    paths = ObjectPaths(
        own=secret_path(namespace, str(issuer.secret)),
        own_host=host_of(service),
        peer=secret_path(namespace, str(issuer.pipeline_secret)),
        peer_host=str(urlsplit(str(settings.snapshot_url)).hostname),
        service=service,
        api_services=settings.api_services,
    )
    files = Files(Path(str(settings.cert_file)), Path(str(settings.snapshot_ca_file)))
    return Certificates(api, paths, files, Lifetimes(issuer.leaf_lifetime_s, issuer.ca_lifetime_s, issuer.publish_s))
