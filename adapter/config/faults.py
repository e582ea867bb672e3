"""The faults of settings as sentences that begin with the path of the setting."""

import difflib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from adapter.config.foreign_names import FOREIGN_NAMES, SYNONYMS
from adapter.config.number_hints import EXPONENT, number_hint
from adapter.core.rules import Rules

Path = tuple[str | int, ...]

FAULT = "fault"  # the pydantic error type of a complete message
# Names of settings, headers and librdkafka properties whose value is a secret. Most values of sasl.oauthbearer.* are
# not secret (addresses, methods, the client id), so `auth` alone does not match there.
SECRET = re.compile(
    r"password|passphrase|secret|token(?!\.endpoint)|(?<!sasl\.o)auth(?!entication\.type)|credential(?!s\.client\.id)"
    r"|cookie|api-?key|jaas|oauthbearer\.config|key\.pem",
    re.IGNORECASE,
)

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_STEP = re.compile(r'\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\.?([A-Za-z_][A-Za-z0-9_-]*)')
_LONGEST_SHOWN = 60  # characters of a value; a longer one hides the message
_WIDEST_NUMBER_BITS = 128  # Python refuses to print very long integers

_PERCENT = 100
_MOST_LISTED = 20  # settings in a message
_RULES = frozenset(rule.name for rule in fields(Rules) if "hidden" not in rule.metadata)
_BESIDE_RULES = ("pause", "excluded_periods", "expected", "failover")
_SOURCES = '{kafka: {kind: kafka, bootstrap_servers: "kafka:9092"}}'
_READ = "[{source: kafka, group: orders, topics: [orders]}]"
# Examples for a value of the wrong type. Key: the type of the error, and the setting or the model.
_EXAMPLES = {
    ("model_type", "Pause"): "{direction: both}",
    ("dict_type", "sources"): _SOURCES,
    ("too_short", "sources"): _SOURCES,
    ("string_type", "bootstrap_servers"): '"kafka-0:9092,kafka-1:9092"',
    ("tuple_type", "days"): "[sat, sun]",
    ("tuple_type", "excluded_periods"): '[{from: "22:00", to: "06:00"}]',
    ("tuple_type", "read"): _READ,
    ("tuple_type", "workloads"): f"[{{name: orders, read: {_READ}}}]",
    ("tuple_type", "topics"): "[orders, payments]",
}

_EXPECTED = {
    "bool_type": "true or false",
    "datetime_type": "a time such as 2026-01-31T18:00:00Z",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "int_type": "a whole number",
    "invalid_key": "text as the key",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "list_type": "a list",
    "model_attributes_type": "a mapping",
    "model_type": "a mapping",
    "string_too_short": "text that is not empty",
    "string_type": "text",
    "too_short": "at least one entry",
    "tuple_type": "a list",
}
_SECONDS = re.compile("(?<!_per)_s$")  # names of settings in seconds


@dataclass(frozen=True, slots=True)
class Fault:
    """The fault of one setting."""

    path: Path  # keys and indices from the top of the file
    text: str  # the expected and the given value, and the fix
    explains_entry: bool = False  # the other faults of the entry that contains the setting follow from this one

    def sentence(self) -> str:
        """The fault as a sentence that begins with its path."""
        return f"{path_text(self.path)}: {self.text}"


def path_text(path: Path) -> str:
    """A path as text: workloads[1].labels["example.com/team"]."""
    return "".join(_written_step(step) for step in path).removeprefix(".") or "the file"


def _written_step(step: object) -> str:
    """One step of a path. A YAML key need not be text."""
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN_KEY.fullmatch(str(step)) else f"[{json.dumps(str(step), ensure_ascii=False)}]"


def path_of(sentence: str) -> Path:
    """The path at the beginning of a sentence, () without one."""
    steps: list[str | int] = []
    at = 0
    while match := _STEP.match(sentence, at):
        index, quoted, plain = match.groups()
        steps.append(int(index) if index else json.loads(quoted) if quoted else plain)
        at = match.end()
    return tuple(steps) if sentence.startswith(":", at) else ()


def nearest(name: object, names: Iterable[str]) -> str | None:
    """The name that an unknown one stands for, or that is most similar; None if none is similar."""
    names = list(names)
    if (meant := SYNONYMS.get(str(name))) in names:
        return meant
    near = difflib.get_close_matches(str(name)[:_LONGEST_SHOWN], names, n=1)
    return near[0] if near else None


def suggestion(name: object, names: Iterable[str]) -> str:
    """The end of a message about an unknown name: the most similar name, "" if none is similar."""
    near = nearest(name, names)
    return f"; did you mean {near}?" if near else ""


def unknown(name: object, names: Collection[str]) -> str:
    """The message for a setting that does not exist."""
    if "policy" in names and name in _BESIDE_RULES:
        return "is no rule; move it out of rules, one level up"
    if name in FOREIGN_NAMES:
        return f"is not a setting here; {FOREIGN_NAMES[str(name)]}"
    if "rules" in names and name in _RULES:
        return "is a rule; move it below rules"
    many = len(names) > _MOST_LISTED
    listed = "; `backlog-adapter schema` lists the settings" if many else f"; expected one of {', '.join(names)}"
    return f"is not a setting here{suggestion(name, names) or listed}"


def one_of(name: object, names: Iterable[str]) -> str:
    """The message for an unknown name."""
    known = list(names)
    whole = next((f"; did you mean {each}?" for each in known if str(name).lower().startswith(each)), "")  # saturday
    return f"expected one of {', '.join(known)}, got {value_text(name)}{suggestion(name, known) or whole}"


def value_text(value: object) -> str:
    """A value as short text; a mapping or list only by its type."""
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if isinstance(value, int) and value.bit_length() > _WIDEST_NUMBER_BITS:
        return "a number with too many digits"
    if value is None:
        return "nothing"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def refusal(text: str) -> PydanticCustomError:
    """The error that a validator raises. text: the message after the path."""
    return PydanticCustomError(FAULT, text)


def line_errors(faults: Iterable[Fault]) -> list[InitErrorDetails]:
    """Faults in the form in which pydantic passes them from a model to its parent."""
    return [InitErrorDetails(type=refusal(fault.text), loc=fault.path, input=None) for fault in faults]


def translate(error: ErrorDetails, settings: Mapping[str, FieldInfo]) -> Fault:
    """Convert an error of pydantic to a Fault. settings: those of the validated model."""
    path = error["loc"][:-1] if error["loc"][1:] and error["loc"][-1] == "[key]" else error["loc"]
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    if kind == FAULT:
        return Fault(path, error["msg"])
    if kind == "missing":
        meaning = settings[str(path[-1])].description
        return Fault(path, f"is required: {meaning}" if meaning else "is required")
    if kind == "extra_forbidden":
        return Fault(path, unknown(path[-1], settings))
    if kind == "literal_error":
        return Fault(path, one_of(given, _quoted(context["expected"])))
    if kind.startswith("union_tag"):
        return _unknown_kind(path, given, context)
    expected = _EXPECTED.get(kind, error["msg"]).format(**context)
    return Fault(path, f"expected {expected}, got {_without_secret(path, given)}{_fix(error, settings)}")


def _unknown_kind(path: Path, given: object, context: Mapping[str, Any]) -> Fault:
    kind = given.get("kind") if isinstance(given, Mapping) else None
    return Fault((*path, "kind"), one_of(kind, _quoted(context["expected_tags"])))


def _quoted(text: str) -> list[str]:
    return re.findall(r"'([^']*)'", text)


def _without_secret(path: Path, given: object) -> str:
    """A value as text, unless its name suggests a secret: messages appear in logs."""
    return "a value that is not shown" if any(SECRET.search(str(step)) for step in path) else value_text(given)


def _fix(error: ErrorDetails, settings: Mapping[str, FieldInfo]) -> str:
    """The end of a message: how to write the value, "" if its intent is unknown."""
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    name = str(error["loc"][-1]) if error["loc"] else context.get("class_name", "")
    if example := _EXAMPLES.get((kind, name)):
        return f"; an example is {example}"
    if name.endswith("_ratio") and context.get("le") == 1 and 2 <= given <= _PERCENT:
        return f"; write {given / _PERCENT:g} for {given:g} %"
    is_ms = kind == "less_than_equal" and _SECONDS.search(name) and given <= 1000 * context["le"]
    if is_ms and _accepts(settings[name], f"{given / 1000:g}"):
        return f"; if {value_text(given)} is in ms, write {given / 1000:g}"
    if kind in ("float_type", "int_type") and isinstance(given, str):
        cause = ", which YAML reads as text" if EXPONENT.fullmatch(given) else ""
        return cause + number_hint(given, name, partial(_accepts, settings[name]))
    return "; write it in quotes" if kind == "string_type" and isinstance(given, bool | int | float) else ""


def _accepts(setting: FieldInfo, number: str) -> bool:
    """Whether the type and the bounds of a setting allow a number."""
    try:
        TypeAdapter(setting.rebuild_annotation()).validate_json(number, strict=True)
    except ValidationError:
        return False
    return True
