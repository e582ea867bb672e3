"""Kafka client properties, from the configuration and a file; and messages without the secrets in them."""

import re
from collections.abc import Mapping
from pathlib import Path

from adapter.config import KafkaSource
from adapter.config.faults import SECRET
from adapter.errors import SourceError

_PAIR = re.compile(r"(?P<key>[^\s=:]+)\s*[=:\s]\s*(?P<value>.*)")


def parse(text: str) -> dict[str, str]:
    """key=value lines as a mapping; `key: value`, comments (# and !) and lines continued with a backslash as in Java.

    Raises ValueError with the line's number, not its text, which may hold a secret.
    """
    settings: dict[str, str] = {}
    joined = re.sub(r"\\\r?\n[ \t]*", "", text)
    for number, line in enumerate(joined.splitlines(), start=1):
        line = line.strip()
        if not line or line[0] in "#!":
            continue
        pair = _PAIR.fullmatch(line)
        if pair is None:
            raise ValueError(f"line {number}: expected key=value")
        settings[pair["key"]] = pair["value"]
    return settings


def merged(name: str, settings: KafkaSource) -> dict[str, str]:
    """The file's properties under those of the configuration. Raises SourceError when the file cannot be read."""
    if settings.properties_file is None:
        return dict(settings.properties)
    try:
        text = Path(settings.properties_file).read_text(encoding="utf-8")
        return {**parse(text), **settings.properties}
    except (OSError, ValueError) as error:
        raise SourceError(name, f"properties_file: {error}") from None


def without_secrets(message: str, settings: Mapping[str, str]) -> str:
    """The message with every secret value of the settings as ***."""
    for key, value in settings.items():
        if value and SECRET.search(key):
            message = message.replace(value, "***")
    return message
