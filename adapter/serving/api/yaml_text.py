"""A document as YAML, as sigs.k8s.io/yaml writes it: sorted keys, lists no deeper than their key, lines folded."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from adapter.serving.api.status import Document

_WIDTH = 80
_DUMPER = getattr(yaml, "CDumper", yaml.Dumper)  # ten times as fast, where PyYAML was built with libyaml

# What YAML 1.1 takes for something else than text, and what is close to it: it stands in quotes.
_NO_TEXT = re.compile(
    r"""
    |~|=|<<|y|yes|true|on|n|no|false|off|null|\.nan|[-+]?\.inf
    |[-+]?(\.[\d_]+|\d[\d_]*(\.[\d_]*)?)(e[-+]?\d+)?        # numbers
    |[-+]?0(x[\da-f_]+|o[0-7_]+|b[01_]+)                    # of another base
    |[-+]?\d[\d_]*(:[0-5]?\d)+(\.[\d_]*)?                   # of base 60
    |\d{4}-\d{1,2}-\d{1,2}([t\ ][\d:.,]+(z|[-+]\d+:\d+)?)?  # times
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)


def written(document: Document) -> bytes:
    """The document as YAML, encoded."""
    begin = [yaml.StreamStartEvent(), yaml.DocumentStartEvent(explicit=False)]
    end = [yaml.DocumentEndEvent(explicit=False), yaml.StreamEndEvent()]
    events = [*begin, *_events(document), *end]
    return str(yaml.emit(events, Dumper=_DUMPER, width=_WIDTH, allow_unicode=True)).encode()


def _events(value: Any) -> Iterator[yaml.Event]:
    if isinstance(value, dict):
        yield yaml.MappingStartEvent(None, None, implicit=True, flow_style=not value)
        for key in sorted(value):
            yield _text(key)
            yield from _events(value[key])
        yield yaml.MappingEndEvent()
    elif isinstance(value, list | tuple):
        yield yaml.SequenceStartEvent(None, None, implicit=True, flow_style=not value)
        for item in value:
            yield from _events(item)
        yield yaml.SequenceEndEvent()
    else:
        yield _text(value) if isinstance(value, str) else _scalar(_plain(value))


def _text(text: str) -> yaml.Event:
    if "\n" in text:
        return _scalar(text, "|")
    return _scalar(text, '"' if _NO_TEXT.fullmatch(text) else None)


def _plain(value: float | None) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scalar(text: str, style: str | None = None) -> yaml.Event:
    return yaml.ScalarEvent(None, None, (True, True), text, style=style)
