"""The types of settings beyond text and numbers, each with its validation."""

import re
from datetime import datetime
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, PlainValidator

from adapter.config.faults import SECRET, refusal, suggestion, value_text
from adapter.config.patterns import matcher

_LABEL_VALUE = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_DNS_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_DNS_NAME = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_SERVICE = rf"{_DNS_LABEL}/{_DNS_LABEL}"
_API = re.compile(r"/api/v1(/query(_range)?)?/?$")
_PAGE = re.compile(r"/graph/?$|/(graph|query)/?\?g0\..*$")  # of Prometheus' pages; /query is also a usual prefix
_VARIABLE = re.compile(r"^~/|\$[{A-Z_]")
_HEADER_NAME = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"  # a token of RFC 9110
_TOPIC = r"[A-Za-z0-9._-]{1,249}"  # as Kafka allows
_MEMORY = r"[1-9][0-9]*[kmgt]"
_LEAST_MEMORY = 512 << 20  # bytes; Spark refuses 400m
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_TIME_OF_DAY = r"([01]?[0-9]|2[0-3]):([0-5][0-9])"
_LONGEST_PREFIX = 253  # characters before the slash of a label key, as in Kubernetes
_RESERVED_LABELS = ("workload", "stage")  # labels that the adapter adds
# The part of SECRET that JSON Schema can express: it has neither flags nor look-around.
_REFUSED_KEYS = "password|passphrase|secret|cookie|jaas|authorization|token$"
_NO_SECRET = {"not": {"pattern": re.sub("[a-z]", lambda found: f"[{found[0]}{found[0].upper()}]", _REFUSED_KEYS)}}
_BROKER = re.compile(  # as librdkafka reads it; the protocol, if any, has to be security.protocol
    r"((sasl_)?(plaintext|ssl)://)?([\w.-]+|\[[0-9a-f:.]+\]):(?P<port>[0-9]{1,5})", re.IGNORECASE
)
_USUAL_PORT = 9092  # what librdkafka takes for a missing port, whatever the listener has
_SERVER_PROPERTIES = ("bootstrap.servers", "metadata.broker.list")


def _name(text: str) -> str:
    if not re.fullmatch(_LABEL_VALUE, text):
        allowed = "at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit"
        raise refusal(f"expected {allowed}, got {value_text(text)}")
    return text


def _namespace(text: str) -> str:
    if not re.fullmatch(_DNS_LABEL, text):
        raise refusal(f"expected at most 63 lower-case letters, digits or '-' (a DNS label), got {value_text(text)}")
    return text


def _service(text: str) -> str:
    if not re.fullmatch(_SERVICE, text):
        raise refusal(
            f"expected the namespace and the name of a Service, as monitoring/backlog-adapter, got {value_text(text)}"
        )
    return text


def _label_key(text: str) -> str:
    prefix, slash, name = text.rpartition("/")
    prefix_is_valid = not slash or (len(prefix) <= _LONGEST_PREFIX and re.fullmatch(_DNS_NAME, prefix))
    if not (prefix_is_valid and re.fullmatch(_LABEL_VALUE, name)):
        raise refusal(f"expected a label key such as team or example.com/team, got {value_text(text)}")
    if text in _RESERVED_LABELS:
        raise refusal("is reserved: the adapter sets it; choose another label key")
    return text


def _label_value(text: str) -> str:
    return text and _name(text)


def _url(text: str) -> str:
    if not _is_url(text):
        fix = f"; write http://{text}" if "://" not in text and _is_url(f"http://{text}") else ""
        fix = "; variables of the environment are not replaced in this file" if "$" in text else fix
        raise refusal(f"expected http://host or https://host, got {_shown_address(text)}{fix}")
    return text


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and not parts.username
    except ValueError:  # an invalid bracket or port
        return False
    return valid and not re.search(r"\s", text) and not re.search("[${}]", parts.netloc)


def _folder(text: str) -> str:
    if "://" in text:
        fix = f"; write {path}" if (path := text.removeprefix("file://")).startswith("/") else ""
        given = f"got {_shown_address(text)}{fix}"
        raise refusal(f"expected a directory on a volume, such as /var/lib/backlog-adapter, {given}")
    return text


def _file(text: str) -> str:
    """Do not show the value: it may be a secret in the place of its file."""
    if "\n" in text or "-----BEGIN" in text:
        fix = "mount a Secret with it, and write the path of its file"
        raise refusal(f"expected the path of a file, got its content, which does not belong here; {fix}")
    if _VARIABLE.search(text):
        raise refusal("expected the path of a file; ~ and variables of the environment are not replaced in this file")
    return text


def _prometheus_url(text: str) -> str:
    if page := _PAGE.search(text):
        given = f"{page[0].partition('?')[0]}, which is a page, got {value_text(text.partition('?')[0])}"
        raise refusal(f"expected {_PAGE.sub('', text)} without {given}")
    if "?" in text or "#" in text:
        raise refusal("expected an address without ? and #, got one with them; put them under `parameters`")
    if _API.search(text):
        raise refusal(f"expected {_API.sub('', text)} without /api/v1, which the adapter adds, got {value_text(text)}")
    return text


def _shown_address(text: str) -> str:
    return "a text with @ that is not shown; user and password do not belong here" if "@" in text else value_text(text)


def _brokers(text: str) -> str:
    brokers = [broker for broker in map(str.strip, text.split(",")) if broker]
    invalid = [broker for broker in brokers if not _is_broker(broker)]
    if invalid or not brokers:
        wrong = invalid[0] if invalid else text
        plain = re.sub("^https?://|/$", "", wrong)
        completed = f"{plain}:{_USUAL_PORT}"
        fix = f"; write {plain}" if _is_broker(plain) else ""
        fix = f"; write the port too, such as {completed}" if _is_broker(completed) else fix
        expected = "expected host:port, separated by commas, with ports from 1 to 65535"
        raise refusal(f"{expected}, got {_shown_address(wrong)}{fix}")
    return ",".join(brokers)  # librdkafka does not remove the blank of "a , b"


def _is_broker(text: str) -> bool:
    found = _BROKER.fullmatch(text)
    return found is not None and 1 <= int(found["port"]) <= 65535


def _pattern(text: str) -> str:
    try:
        matcher(text)
    except ValueError as error:
        raise refusal(f"expected a regular expression, got {value_text(text)}: {error}") from error
    return text


def _memory(text: str) -> str:
    if not re.fullmatch(_MEMORY, text):
        found = re.fullmatch(rf"({_MEMORY})i?b?", text.lower().replace(" ", ""))  # 4Gi, 1 GB
        fix = f"; write {found[1]}" if found else ""
        raise refusal(f"expected a size such as 1g or 1500m, got {value_text(text)}{fix}")
    if int(text[:-1]) << 10 * ("kmgt".index(text[-1]) + 1) < _LEAST_MEMORY:
        raise refusal(f"expected at least 512m, which Spark needs to start, got {value_text(text)}")
    return text


def _instant(value: object) -> object:
    if not isinstance(value, str):
        return value
    expected = f"expected a time such as 2026-01-31T18:00:00Z, got {value_text(value)}"
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise refusal(expected) from error
    if moment.tzinfo is None:
        fix = f"write {moment.isoformat()}Z, or an offset such as +02:00 for Z"
        raise refusal(f"expected a time with its zone, got {value_text(value)}; {fix}")
    if not _RFC_3339.fullmatch(value):  # helm accepts no other form
        raise refusal(f"{expected}; write {moment.isoformat()}")
    return moment


def _minutes(value: object) -> int:
    found = re.fullmatch(_TIME_OF_DAY, value) if isinstance(value, str) else None
    if found is None:
        fix = "; midnight is 00:00" if value == "24:00" else ""
        raise refusal(f"expected a time of the day from 00:00 to 23:59, got {value_text(value)}{fix}")
    return 60 * int(found[1]) + int(found[2])


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (KeyError, ValueError, OSError):  # a missing file, an invalid file name, a folder
        # An abbreviation such as CEST resembles others, and the signs of Etc/GMT+1 are reversed.
        regions = sorted(name for name in available_timezones() if re.match("(?!Etc)[^/]+/", name))
        hint = (
            suggestion(text, regions) or "; a region knows its daylight saving time, an abbreviation or offset does not"
        )
        raise refusal(f"expected a time zone such as UTC or Europe/Berlin, got {value_text(text)}{hint}") from None
    return text


def _header(text: str) -> str:
    if not re.fullmatch(_HEADER_NAME, text):
        raise refusal(f"expected the name of a header such as X-Scope-OrgID, got {value_text(text)}")
    if SECRET.search(text):
        raise refusal("may not carry a secret in this file; use bearer_token_file or basic")
    return text


def _header_value(text: str) -> str:
    if not (text.isascii() and text.isprintable()):
        raise refusal(f"expected one line of ASCII characters, got {value_text(text)}")
    return text


def _kafka_property(text: str) -> str:
    if text in _SERVER_PROPERTIES:
        raise refusal("is set beside properties; use bootstrap_servers")
    if text == "sasl.jaas.config":
        raise refusal(
            "is of Java clients; write sasl.username and sasl.password into the file that properties_file names"
        )
    if SECRET.search(text):
        raise refusal("may not carry a secret in this file; put it into the file that properties_file names")
    return text


def _topic(text: str) -> str:
    if not re.fullmatch(_TOPIC, text):
        raise refusal(f"expected the name of a topic, of letters, digits, '.', '_' and '-', got {value_text(text)}")
    return text


Text = Annotated[str, Field(min_length=1)]
File = Annotated[Text, AfterValidator(_file)]
Folder = Annotated[Text, AfterValidator(_folder)]
Name = Annotated[str, AfterValidator(_name), Field(json_schema_extra={"pattern": f"^{_LABEL_VALUE}$"})]
Namespace = Annotated[str, AfterValidator(_namespace), Field(json_schema_extra={"pattern": f"^{_DNS_LABEL}$"})]
Topic = Annotated[str, AfterValidator(_topic), Field(json_schema_extra={"pattern": f"^{_TOPIC}$"})]
Service = Annotated[str, AfterValidator(_service), Field(json_schema_extra={"pattern": f"^{_SERVICE}$"})]
Labels = dict[Annotated[str, AfterValidator(_label_key)], Annotated[str, AfterValidator(_label_value)]]
Url = Annotated[str, AfterValidator(_url), Field(json_schema_extra={"pattern": "^https?://[^/@${}]+(/.*)?$"})]
PrometheusUrl = Annotated[Url, AfterValidator(_prometheus_url)]
Brokers = Annotated[str, Field(min_length=1), AfterValidator(_brokers)]
Pattern = Annotated[str, Field(min_length=1), AfterValidator(_pattern)]
Memory = Annotated[str, AfterValidator(_memory), Field(json_schema_extra={"pattern": f"^{_MEMORY}$"})]
Instant = Annotated[datetime, BeforeValidator(_instant)]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = get_args(Day)
TimeOfDay = Annotated[  # minutes after midnight
    int,
    PlainValidator(_minutes, json_schema_input_type=Annotated[str, Field(pattern=f"^{_TIME_OF_DAY}$")]),
    PlainSerializer(lambda minutes: f"{minutes // 60:02}:{minutes % 60:02}", return_type=str, when_used="json"),
]
Zone = Annotated[str, Field(min_length=1), AfterValidator(_zone)]
Headers = dict[
    Annotated[str, Field(min_length=1, json_schema_extra=_NO_SECRET), AfterValidator(_header)],
    Annotated[str, AfterValidator(_header_value)],
]
KafkaProperties = dict[
    Annotated[str, Field(min_length=1, json_schema_extra=_NO_SECRET), AfterValidator(_kafka_property)], str
]
