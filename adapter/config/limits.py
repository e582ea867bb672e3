"""What one caller may cost the others."""

from pydantic import Field

from adapter.config.model import Model

_KIB = 1024


class Limits(Model):
    """Named limits of the metrics API's server. Sizes in bytes, times in seconds."""

    connections: int = Field(
        default=512, ge=1, description="Connections at once; one more closes the one that was longest of no use."
    )
    handshakes: int = Field(
        default=128,
        ge=1,
        description="Of them, those that did not agree on TLS yet; one costs as much as two others.",
    )
    handshake_s: float = Field(default=10.0, gt=0, description="For TLS to be agreed.")
    uri_bytes: int = Field(default=32 * _KIB, ge=1, description="Of a request's path and query; more is a 414.")
    header_bytes: int = Field(default=64 * _KIB, ge=1, description="Of a request's head in all; more is a 431.")
    header_s: float = Field(
        default=15.0, gt=0, description="For a begun head, or a body, to arrive; more closes the connection."
    )
    body_bytes: int = Field(
        default=16 * _KIB, ge=0, description="Of a body that is read; a larger one closes the connection."
    )
    held_bytes: int = Field(
        default=8 * _KIB * _KIB, ge=1, description="Of all heads together that have arrived in part."
    )
    pipelined: int = Field(default=16, ge=1, description="Requests sent ahead of an answer; more are a 429.")
    requests: int = Field(
        default=128, ge=1, description="In work for callers with a certificate, and as many for others; more are a 429."
    )
    write_s: float = Field(default=20.0, gt=0, description="For a stalled caller to go on reading.")
    idle_s: float = Field(
        default=120.0, gt=0, description="Between two requests; above the 90 s after which an API server hangs up."
    )
    linger_s: float = Field(
        default=1.0, gt=0, description="For a caller to fall silent after the last answer, or the system drops it."
    )
