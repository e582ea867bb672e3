"""Fetch the record of a decision from a running pipeline."""

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

from adapter.client_tls import client_context
from adapter.config import Config
from adapter.errors import AdapterError, plain
from adapter.http_body import ACCEPTED, BodyError, read_body
from adapter.serving.snapshots.records import PATH
from adapter.serving.snapshots.transport import bearer

LOCAL_URL = "http://127.0.0.1:8080"  # where `run` listens
_DEADLINE_S = 10.0
_FIX = "give the address of a pipeline of this release, or of `run`, with --url"


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address of a pipeline and its credentials."""

    url: str = LOCAL_URL
    ca_file: str | None = None  # the CA of its certificate; None for the system's CAs
    token_file: str | None = None  # its bearer token; None for no token
    command: str = "backlog-adapter run"  # starts a pipeline that listens there


def address_of(config: Config) -> Address:
    """The address of the configured pipeline: the one that `serve` uses, otherwise this machine."""
    settings, serving = config.pipeline, config.serving
    command = "backlog-adapter pipeline --config FILE"
    if serving.snapshot_url is not None:
        # Both roles may have one configuration, and each the token in a file of its own.
        files = [file for file in (serving.snapshot_token_file, settings.token_file) if file is not None]
        token_file = next((file for file in files if Path(file).is_file()), serving.snapshot_token_file)
        url, ca_file = serving.snapshot_url, serving.snapshot_ca_file
        return Address(url=url, ca_file=ca_file, token_file=token_file, command=command)
    scheme = "http" if settings.cert_file is None else "https"
    url = f"{scheme}://{_connect_host(settings.host)}:{settings.port}"
    return Address(url=url, token_file=settings.token_file, command=command)


def fetch(workload: str, address: Address) -> bytes:
    """The record of "namespace/name" as JSON. Raises AdapterError with the fault and its remedy."""
    namespace, _, name = workload.partition("/")
    if {namespace, name} & {"", ".", ".."} or "/" in name:
        raise AdapterError(f"expected a workload as namespace/name, such as shop/orders, got {workload!r}")
    if not address.url.lower().startswith(("http://", "https://")):
        raise AdapterError(f"--url: expected an address with http:// or https://, got {address.url!r}")
    path = f"{PATH}/{quote(namespace, safe='')}/{quote(name, safe='')}"
    status, body = _get(address, path)
    parsed = _parse_object(body)
    if status == httpx.codes.OK and parsed:
        return body
    if status == httpx.codes.UNAUTHORIZED:
        given = f"does not accept the token in {address.token_file}" if address.token_file else "requires a token"
        raise AdapterError(f"{address.url} {given}: give the pipeline's own with --token-file or --config")
    if "message" in parsed and "details" not in parsed:  # a Status, but not that of an unknown path
        raise AdapterError(plain(str(parsed["message"])))
    raise AdapterError(f"{address.url} answers {status} and knows no records: {_FIX}")


def _get(address: Address, path: str) -> tuple[int, bytes]:
    url = address.url.rstrip("/")
    ends_s = time.monotonic() + _DEADLINE_S
    try:
        with (
            httpx.Client(verify=_ssl_context(address), timeout=_DEADLINE_S, trust_env=False) as client,
            client.stream("GET", url + path, headers={**ACCEPTED, **_headers(address)}) as answer,
        ):
            return answer.status_code, read_body(answer, BytesIO(), ends_s).getvalue()
    except BodyError as error:
        raise AdapterError(f"{url}: {error}; {_FIX}") from error
    except httpx.ConnectError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            cause = f"the certificate of {url} is not trusted ({error})"
            raise AdapterError(f"{cause}: give its CA with --ca-file, and an address it names with --url") from error
        cause = f"no answer from {url} ({error})"
        raise AdapterError(f"{cause}: start `{address.command}`, or name the pipeline with --url") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise AdapterError(f"{url} cannot be reached ({cause}): check --url, http or https too") from error


def _headers(address: Address) -> Mapping[str, str]:
    if address.token_file is None:
        return {}
    if not address.url.lower().startswith("https://"):
        raise AdapterError(f"a token is sent over https only: {address.url} has to be https, or needs no token")
    try:
        return {"Authorization": bearer(address.token_file)}
    except (OSError, ValueError) as error:
        raise AdapterError(f"the token file {address.token_file} cannot be read: {error}") from error


def _ssl_context(address: Address) -> ssl.SSLContext:
    try:
        return client_context(address.ca_file)
    except (OSError, ValueError) as error:
        raise AdapterError(f"expected PEM certificates in {address.ca_file}: {error}") from error


def _parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object of an answer, empty if it is not one."""
    try:
        parsed = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _connect_host(host: str) -> str:
    """The address to connect to for an address to listen on."""
    try:
        listening = ip_address(host)
    except ValueError:
        return host
    if listening.is_unspecified:
        return "127.0.0.1"  # `::` listens on IPv4, too
    return host if listening.version == 4 else f"[{host}]"
