"""All decisions of one tick, immutable and versioned: what the pipeline publishes and every `serve` holds."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from adapter.core.decisions import Decision, StageSignals

VERSION = 2  # grows with every change of Decision, its defaults, Reason, Bound or what is below
MOST_TICKS_AHEAD = 2  # clocks differ a little; a tick further in the future is a clock that was wrong

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One workload: its decision, the labels a selector can use, and its visible stages.

    error_after_s: a number made from samples that are older is no answer.
    """

    decision: Decision
    error_after_s: float
    labels: dict[str, str] = field(default_factory=dict)
    stages: tuple[StageSignals, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """at_s: the tick; tick_s: seconds between ticks; window_s: the window of its rates; error_after_s: the largest of
    its entries, older than that it answers nothing. entries are sorted by workload."""

    version: int = VERSION
    at_s: float
    tick_s: float
    window_s: float
    error_after_s: float
    entries: Collection[Entry]

    def is_ahead(self, now_s: float) -> bool:
        """Whether its tick lies in the future, farther than clocks may differ."""
        return self.at_s > now_s + MOST_TICKS_AHEAD * self.tick_s


# An entry, or the JSON of one.
Told = Entry | msgspec.Raw


class Texts(Collection[Entry]):
    """Entries as they came. As objects those of 40 000 workloads would double the memory of a server, and HPAs ask for
    some of them: each is read when it is looked at. Raises ValueError for one that is none."""

    def __init__(self, texts: Sequence[msgspec.Raw]) -> None:
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[Entry]:
        return map(entry_of, self.texts)

    def __contains__(self, entry: object) -> bool:
        return any(entry == each for each in self)

    def __eq__(self, other: object) -> bool:
        """Whether those are the entries, however they are held."""
        return isinstance(other, Collection) and tuple(self) == tuple(other)


class _Named(msgspec.Struct, gc=False):
    workload: str


class _NamedStage(msgspec.Struct, gc=False):
    stage: str


class Key(msgspec.Struct, gc=False):
    """As much of an Entry as it is found by."""

    decision: _Named
    labels: dict[str, str] = {}
    stages: tuple[_NamedStage, ...] = ()


class _Versioned(msgspec.Struct):
    """As much of a snapshot as every version of it has."""

    version: int


class _Outline(_Versioned):
    """A snapshot whose entries are still to be read."""

    at_s: float
    tick_s: float
    window_s: float
    error_after_s: float
    entries: list[msgspec.Raw]


def _sparing(kind: type[Decision | StageSignals]) -> Callable[[Any], msgspec.Struct]:
    """What a record of a kind is written as: without what has its default. To say of each unknown number that it is
    null takes up to two thirds of a snapshot, and whoever reads it takes what is not there for unknown."""
    given = fields(kind)
    form = msgspec.defstruct(
        kind.__name__,
        [(each.name, Any) if each.default is MISSING else (each.name, Any, each.default) for each in given],
        omit_defaults=True,
    )
    values = attrgetter(*(each.name for each in given))
    return lambda record: form(*values(record))


class _Written(msgspec.Struct, omit_defaults=True):
    """An Entry as it is written."""

    decision: msgspec.Struct
    error_after_s: float
    labels: dict[str, str] = {}
    stages: list[msgspec.Struct] = []


_written_decision, _written_stage = _sparing(Decision), _sparing(StageSignals)
_encoder = msgspec.json.Encoder()
_version_decoder, _outline_decoder = msgspec.json.Decoder(_Versioned), msgspec.json.Decoder(_Outline)
_key_decoder, _entry_decoder = msgspec.json.Decoder(Key), msgspec.json.Decoder(Entry)


def encode(snapshot: Snapshot) -> bytes:
    """The snapshot as JSON."""
    return _encoder.encode(
        _Outline(
            version=snapshot.version,
            at_s=snapshot.at_s,
            tick_s=snapshot.tick_s,
            window_s=snapshot.window_s,
            error_after_s=snapshot.error_after_s,
            entries=[_text(entry) for entry in snapshot.entries],
        )
    )


def decode(body: bytes | memoryview) -> Snapshot:
    """JSON as a snapshot, its entries as Texts. Raises ValueError when it is not one, or of another version.

    A field that only another release knows is no other fault than its version.
    """
    try:
        outline = _read(_outline_decoder, body, "not a snapshot")
    except ValueError:
        _check(_read(_version_decoder, body, "not a snapshot").version)
        raise
    _check(outline.version)
    return Snapshot(
        version=outline.version,
        at_s=outline.at_s,
        tick_s=outline.tick_s,
        window_s=outline.window_s,
        error_after_s=outline.error_after_s,
        entries=Texts(outline.entries),
    )


def key_of(told: Told) -> Entry | Key:
    """What an entry is found by. Raises ValueError where its JSON does not say it: nobody could tell whose it is."""
    return told if isinstance(told, Entry) else _read(_key_decoder, told, "not a snapshot: an entry of it is none")


def entry_of(told: Told) -> Entry:
    """The whole entry. Raises ValueError where its JSON is none of this release."""
    return told if isinstance(told, Entry) else _read(_entry_decoder, told, "not an entry of a snapshot")


def _text(entry: Entry) -> msgspec.Raw:
    written = _Written(
        _written_decision(entry.decision), entry.error_after_s, entry.labels, [_written_stage(s) for s in entry.stages]
    )
    return msgspec.Raw(_encoder.encode(written))


def _read(decoder: msgspec.json.Decoder[_T], text: bytes | memoryview | msgspec.Raw, fault: str) -> _T:
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{fault}: {error}") from error


def _check(version: int) -> None:
    if version != VERSION:
        raise ValueError(f"snapshot of version {version}, expected {VERSION}: run one release of pipeline and serve")
