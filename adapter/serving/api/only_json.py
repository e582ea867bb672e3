"""Documents that are written in JSON alone: who does not take it is refused."""

from collections.abc import Collection

from adapter.serving.api.request import Request
from adapter.serving.api.status import Answer, failure


def refusal(request: Request, ranges: Collection[str]) -> Answer | None:
    """None for a caller who takes JSON, else the 406. ranges: what of an Accept header means JSON."""
    accept = request.header("accept") or "*/*"
    if any(clause.partition(";")[0].strip() in ranges for clause in accept.split(",")):
        return None
    message = "406: Not Acceptable\n\nAvailable representations: application/json"
    return failure(406, "NotAcceptable", message, {})
