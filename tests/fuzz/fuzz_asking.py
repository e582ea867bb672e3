"""A request, asked in process of the metrics API."""

import re
import time
from collections.abc import Sized
from typing import Any

from fuzz_answers import check
from fuzz_inputs import Sent

from adapter.serving.api.metrics_api import MetricsApi
from adapter.serving.api.rendering import Response
from adapter.serving.api.request import MustWait
from adapter.serving.front import request_of

# Far more than any answer takes, on the busiest machine, and far less than a hang.
BOUNDED_S = 1.0


def asked(of: MetricsApi, sending: Sent, *, patient: bool = True) -> Response | None:
    """The answer in time; None where it has to be waited for."""
    began_s = time.monotonic()
    try:
        return of.respond(request_of(sending.scope, patient=patient))
    except MustWait:
        assert not patient
        return None
    finally:
        assert time.monotonic() - began_s < BOUNDED_S


def answered(of: MetricsApi, sending: Sent) -> Response:
    """The answer to one who may wait."""
    found = asked(of, sending)
    assert found is not None
    return found


def sound(of: MetricsApi, sending: Sent, reviews: Sized = ()) -> None:
    """Who may not wait is sent elsewhere, or answered as everybody else. reviews: those that the cluster made."""
    reviewed = len(reviews)
    hurried = asked(of, sending, patient=False)
    assert len(reviews) == reviewed
    response = answered(of, sending)
    again = asked(of, sending, patient=False)
    said = _lasting(check(response))
    for each in (hurried, again):
        assert each is None or (each.code, _lasting(check(each))) == (response.code, said)


def _lasting(said: Any) -> Any:
    """What an answer says twice: of an exposition its names, for its numbers move on between two questions."""
    if isinstance(said, str) and said.startswith("# HELP"):
        return re.findall(r"^# .*", said, re.MULTILINE)
    return said
