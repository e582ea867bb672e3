"""The limits of the metrics API's server, as settings."""

from pydantic import Field

from adapter.apiserver.limits import ServerLimits
from adapter.config.model import Model


class Limits(Model):
    """What one client of the metrics API may use. Sizes in bytes, times in seconds."""

    connections: int = Field(
        default=ServerLimits.connections,
        ge=1,
        description="Open connections; one more closes the least recently used, one without a certificate first.",
    )
    handshakes: int = Field(
        default=ServerLimits.handshakes, ge=1, description="TLS handshakes in progress; one more closes the oldest."
    )
    handshake_s: float = Field(default=ServerLimits.handshake_s, gt=0, description="For a TLS handshake.")
    header_s: float = Field(
        default=ServerLimits.header_s, gt=0, description="From the first byte of a request to the last of its body."
    )
    header_bytes: int = Field(
        default=ServerLimits.header_bytes, ge=1, description="Of the request line and headers; more are a 431."
    )
    header_fields: int = Field(default=ServerLimits.header_fields, ge=1, description="Headers; more are a 431.")
    body_bytes: int = Field(default=ServerLimits.body_bytes, ge=0, description="Of a request body; more are a 413.")
    requests: int = Field(
        default=ServerLimits.requests,
        ge=1,
        description="In progress for clients with a certificate, and as many for others; more are a 429.",
    )
    request_s: float = Field(default=ServerLimits.request_s, gt=0, description="For a response; longer is a 504.")
    write_s: float = Field(
        default=ServerLimits.write_s, gt=0, description="For a client that stops reading to read on."
    )
    idle_s: float = Field(
        default=ServerLimits.idle_s,
        gt=0,
        description="Between two requests; above the 90 s after which an API server closes its side.",
    )
