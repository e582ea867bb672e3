"""The base of all configuration models: strict, frozen, and with all faults in one error."""

from collections.abc import Iterable, Mapping
from dataclasses import Field as DataclassField
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails

from adapter.config.faults import Fault, line_errors, nearest, translate

LISTED = Field(strict=False)  # converts the lists of YAML to tuples
_BOUNDS = ("gt", "ge", "lt", "le")


class Model(BaseModel):
    """Rejects unknown settings, type conversions, NaN and infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @classmethod
    def relation_faults(cls, given: Mapping[Any, Any]) -> list[Fault]:
        """Faults between settings. `given` is not validated yet, so settings may be missing or invalid."""
        return []

    @model_validator(mode="wrap")
    @classmethod
    def _every_fault(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        faults = cls.relation_faults(given) if isinstance(given, Mapping) else []
        try:
            model = handler(given)
        except ValidationError as error:
            settings = {field.alias or name: field for name, field in cls.model_fields.items()}
            shape = [translate(detail, settings) for detail in _causes(error.errors(include_url=False), settings)]
            raise ValidationError.from_exception_data(cls.__name__, line_errors([*shape, *faults])) from None
        if faults:
            raise ValidationError.from_exception_data(cls.__name__, line_errors(faults))
        return model


def _causes(errors: Iterable[ErrorDetails], names: Iterable[str]) -> list[ErrorDetails]:
    """The errors without those that follow from another one.

    A setting with a misspelt name is also missing. Pydantic does not count invalid entries, and reports a list of them
    as "too short".
    """
    found = list(errors)
    meant = {nearest(each["loc"][-1], names) for each in found if each["type"] == "extra_forbidden"}
    return [
        each
        for each in found
        if not (each["type"] == "missing" and each["loc"][-1] in meant)
        and not (each["type"] == "too_short" and each["input"])
    ]


def setting(parameter: DataclassField[Any], meaning: str) -> tuple[Any, Any]:
    """A field of a dataclass as a field of a model. Its metadata: bounds (gt, ge, lt, le) and one_of."""
    known = parameter.metadata
    kind = Literal.__getitem__(known["one_of"]) if "one_of" in known else parameter.type
    bounds = {name: known[name] for name in _BOUNDS if name in known}
    return kind, Field(parameter.default, description=meaning, **bounds)


def has(given: Mapping[Any, Any], name: str) -> bool:
    """Whether a setting is present and not null."""
    return given.get(name) is not None


def pair(given: Mapping[Any, Any], *names: str) -> list[Fault]:
    """Two settings that require each other."""
    absent = [name for name in names if not has(given, name)]
    if len(absent) != 1:
        return []
    present = next(name for name in names if name not in absent)
    return [Fault((absent[0],), f"is required with {present}: a certificate needs its key")]
