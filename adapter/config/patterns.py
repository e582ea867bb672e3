"""Regular expressions that match names of other systems in linear time."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from pydantic import StringConstraints, TypeAdapter, ValidationError
from pydantic_core import SchemaError

_GLOB = re.compile(r"(?<!\\)([A-Za-z0-9_-])\*")
LONGEST_PATTERN = 1000  # characters; the time of a match is the product of both lengths


@cache  # of the patterns of a configuration: with a limit, more patterns would be compiled in each tick
def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that returns whether a pattern matches a whole name. Raises ValueError for an invalid pattern.

    pydantic matches with Rust's regex crate, which never backtracks: with Python's `re`, `(a+)+b` and a name of 25
    characters stop a tick for seconds. It therefore has neither look-around nor back-references.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"it has {len(pattern)} characters, more than {LONGEST_PATTERN}")
    try:
        TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])  # alone, so that no bracket closes ours
        whole = TypeAdapter(Annotated[str, StringConstraints(pattern=rf"\A(?:{pattern})\z")])
    except SchemaError as error:
        text = str(error)
        raise ValueError(text[text.lower().rindex("error: ") :].partition(": ")[2]) from error

    def matches(name: str) -> bool:
        try:
            whole.validate_python(name)
        except ValidationError:
            return False
        return True

    return matches


def glob_hint(pattern: str) -> str:
    """What a pattern matches that looks like a glob, such as report-*; "" for any other."""
    glob = _GLOB.search(pattern)
    if glob is None or "[" in pattern:
        return ""
    meant = _GLOB.sub(r"\1.*", pattern)
    return f"is a regular expression, in which {glob[0]} is any number of {glob[1]}; for any text write {meant}"


@dataclass(frozen=True, slots=True)
class WorkloadMatch:
    """Workloads by the whole of their namespace and name."""

    namespace: str | None  # pattern, None matches all
    name: str | None

    def __call__(self, workload: str) -> bool:
        """Whether "namespace/name" matches both patterns."""
        namespace, _, name = workload.partition("/")
        return _fits(self.namespace, namespace) and _fits(self.name, name)

    def covers(self, other: "WorkloadMatch") -> bool:
        """Whether it surely matches all that another one matches: each pattern is the same, or matches everything."""
        pairs = ((self.namespace, other.namespace), (self.name, other.name))
        return all(own in (None, ".*", ".+", pattern) for own, pattern in pairs)


def _fits(pattern: str | None, text: str) -> bool:
    return pattern is None or matcher(pattern)(text)
