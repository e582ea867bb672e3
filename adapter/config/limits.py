"""The limits of the metrics API's server, as settings."""

from dataclasses import fields
from typing import Annotated, Any

import pydantic
from pydantic import PlainSerializer, PlainValidator

from adapter.apiserver.limits import ServerLimits
from adapter.config.model import Model, setting

_SETTINGS: dict[str, Any] = {limit.name: setting(limit, limit.metadata["meaning"]) for limit in fields(ServerLimits)}
_Limits = pydantic.create_model("Limits", __base__=Model, __doc__=ServerLimits.__doc__, **_SETTINGS)


def _limits(given: Any) -> ServerLimits:
    return given if isinstance(given, ServerLimits) else ServerLimits(**_Limits.model_validate(given).model_dump())


Limits = Annotated[ServerLimits, PlainValidator(_limits, json_schema_input_type=_Limits), PlainSerializer(vars)]
