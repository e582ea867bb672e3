"""A client of the Kubernetes API, and its settings from the service account of a pod or from a kubeconfig."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.config import load_incluster_config, load_kube_config
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import KUBE_CONFIG_DEFAULT_LOCATION
from yaml import MarkedYAMLError

from adapter.client_tls import client_context
from adapter.errors import SourceError


def read_service_account(source: str, setting: str) -> Configuration:
    """The settings for a pod, whose token the client reads anew every minute. Raises SourceError of that source.

    setting: what names a kubeconfig instead, for the error.
    """
    configuration = Configuration()
    with _source_errors(source, "the service account of a pod", f"set {setting}, or run in a pod with one"):
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # theirs
    configuration.proxy = None  # HTTPS_PROXY is for what is outside the cluster
    return configuration


def read_kubeconfig(source: str, setting: str, file: str | None, context: str | None = None) -> Configuration:
    """The settings in a file, by default kubectl's. Raises SourceError of that source, without credentials.

    setting: what names the file, for the error.
    """
    configuration = Configuration()
    chosen = f" that has the context {context}" if context else ""
    fix = f"set {setting} to a complete file{chosen}, or run in a pod"
    with _source_errors(source, f"a kubeconfig in {file or KUBE_CONFIG_DEFAULT_LOCATION}", fix):
        load_kube_config(  # type: ignore[no-untyped-call]  # theirs
            file, context, client_configuration=configuration, persist_config=False
        )
    return configuration


def api_client(source: str, settings: Configuration) -> ApiClient:
    """A client that verifies the API server with `client_context`.

    It reads the files of the settings once: after one has changed, open a new client. Raises SourceError of the source.
    """
    with _source_errors(source, f"certificates in {settings.ssl_ca_cert}, {settings.cert_file}", "replace the files"):
        context = client_context(settings.ssl_ca_cert)
        if settings.cert_file:
            context.load_cert_chain(settings.cert_file, settings.key_file)
    if not settings.verify_ssl:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    client = ApiClient(settings)
    pool = client.rest_client.pool_manager.connection_pool_kw
    for name in ("ca_certs", "cert_file", "key_file"):  # urllib3 would add them to the context at each connection
        pool.pop(name, None)
    pool["ssl_context"] = context
    return client


@contextmanager
def _source_errors(source: str, expected: str, fix: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a half-written file makes the reader fail in many ways
        raise SourceError(source, f"expected {expected}: {_cause(error)}; {fix}") from None


def _cause(error: Exception) -> str:
    """The cause without the text that the reader did not understand, which may be a token."""
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        return f"no YAML in line {error.problem_mark.line + 1}"
    if isinstance(error, ConfigException | OSError):
        text = str(error).partition("{")[0].strip().removesuffix(".")
        return "the file is missing or empty" if text.endswith("No configuration found") else text
    return type(error).__name__
