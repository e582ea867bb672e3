"""Kafka client properties from the configuration and a file, and messages without their secrets."""

import os
import re
from collections.abc import Mapping

from adapter.config import KafkaSource
from adapter.config.faults import SECRET
from adapter.errors import SourceError
from adapter.file_stamps import FileStamp, file_stamps
from adapter.sources.source_files import read_text

Inputs = tuple[dict[str, str], tuple[FileStamp, ...]]

_PAIR = re.compile(r"(?P<key>[^\s=:]+)\s*[=:\s]\s*(?P<value>.*)")


def parse(text: str) -> dict[str, str]:
    """Parse lines: `key=value`, `key: value`, `key value`, or a comment that begins with # or !.

    A value is the rest of its line without blanks at its ends, because passwords may contain any other character:
    there are no escapes and no continued lines. Raises ValueError with the number of the line, without its text, which
    may contain a secret.
    """
    settings: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip()
        if not line or line[0] in "#!":
            continue
        pair = _PAIR.fullmatch(line)
        if pair is None:
            raise ValueError(f"line {number}: expected key=value")
        settings[pair["key"]] = pair["value"]
    return settings


def merge(name: str, settings: KafkaSource) -> dict[str, str]:
    """The properties of the configuration over those of the file. Raises SourceError if the file cannot be read."""
    if settings.properties_file is None:
        return dict(settings.properties)
    text = read_text(name, "properties_file", settings.properties_file)
    try:
        return {**parse(text), **settings.properties}
    except ValueError as error:
        raise SourceError(name, f"properties_file: {error}") from None


def exists(file: str | None) -> bool:
    """Whether this machine has a file; without a name nothing is missing."""
    return file is None or os.path.exists(file)  # False for a folder that may not be read


def inputs(name: str, settings: KafkaSource) -> Inputs:
    """What librdkafka reads only when a client is opened: the properties, and the files of keys and certificates."""
    properties = merge(name, settings)
    return properties, file_stamps(properties[key] for key in sorted(properties) if key.endswith(".location"))


def mask_secrets(message: str, settings: Mapping[str, str]) -> str:
    """Replace every secret value of the settings in a message with ***."""
    for key, value in settings.items():
        if value and SECRET.search(key):
            message = message.replace(value, "***")
    return message
