"""The settings of the certificates and the token that `serve` issues itself."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from adapter.config.faults import Fault
from adapter.config.model import Model, has
from adapter.config.values import Text

_DAY_S = 86_400
_LIFETIMES = {"leaf_lifetime_s": 90 * _DAY_S, "ca_lifetime_s": 365 * _DAY_S, "publish_s": 60}
# A certificate is renewed after two thirds of its life. The last third has room for the publication of a CA, twice; of
# a CA it has room for the life of a certificate.
_MULTIPLES = (("leaf_lifetime_s", 6, "publish_s"), ("ca_lifetime_s", 3, "leaf_lifetime_s"))
API_SERVICES = (
    "v1beta1.external.metrics.k8s.io",
    "v1beta1.custom.metrics.k8s.io",
    "v1beta2.custom.metrics.k8s.io",
)
_FILES = {
    "secret": ("cert_file", "key_file", "snapshot_url", "snapshot_ca_file"),
    "token_secret": ("snapshot_token_file",),
}


class Issuer(Model):
    """What `serve` issues itself: the replica that holds the Lease issues, and all objects are in its namespace."""

    lease: Text = Field(description="Name of the Lease; its holder issues the certificates.")
    secret: Text | None = Field(
        default=None, description="Secret of the CA and of serve's certificate, which is copied to cert_file."
    )
    pipeline_secret: Text | None = Field(default=None, description="Secret of the pipeline's certificate.")
    token_secret: Text | None = Field(default=None, description="Secret of the token, copied to snapshot_token_file.")
    leaf_lifetime_s: int = Field(
        default=_LIFETIMES["leaf_lifetime_s"],
        ge=6,
        le=365 * _DAY_S,
        description="Lifetime of a certificate; two thirds of it are used. A kubelet needs minutes to mount a new one.",
    )
    ca_lifetime_s: int = Field(
        default=_LIFETIMES["ca_lifetime_s"], ge=18, le=3650 * _DAY_S, description="Lifetime of the CA."
    )
    publish_s: int = Field(
        default=_LIFETIMES["publish_s"], ge=1, le=3600, description="Seconds between publishing a CA and using it."
    )

    @classmethod
    def relation_faults(cls, given: Mapping[Any, Any]) -> list[Fault]:
        """The certificates come in pairs, and one life has room for the other."""
        faults = [
            Fault((absent,), f"is required with {present}: one CA signs both certificates")
            for present, absent in (("secret", "pipeline_secret"), ("pipeline_secret", "secret"))
            if has(given, present) and not has(given, absent)
        ]
        lifetimes = {**_LIFETIMES, **{name: given[name] for name in _LIFETIMES if type(given.get(name)) is int}}
        for name, times, other in _MULTIPLES:
            if lifetimes[name] < times * lifetimes[other]:
                text = f"expected at least {times} * {other} = {times * lifetimes[other]}, got {lifetimes[name]}"
                faults.append(Fault((name,), text))
        return faults


def issuer_faults(serving: Mapping[Any, Any]) -> list[Fault]:
    """Settings of `serving` that an issuer needs. One file has certificate and key, so that both change at once."""
    given = serving.get("issuer")
    if not isinstance(given, Mapping):
        return []
    needed = ["service", *(file for secret, files in _FILES.items() if has(given, secret) for file in files)]
    faults = [Fault((name,), "is required with issuer") for name in needed if not has(serving, name)]
    if has(given, "secret") and serving.get("cert_file") != serving.get("key_file"):
        faults.append(
            Fault(("key_file",), "expected the path of cert_file with issuer: serve writes both into one file")
        )
    return faults
