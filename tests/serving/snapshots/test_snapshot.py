"""A snapshot as bytes: columns that fit each other, of this release, or a refusal that says what is wrong."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving_builders import edited, entry, snapshot

from adapter.core.decisions import Bound, Decision, Reason
from adapter.serving.snapshots.columns import Entries
from adapter.serving.snapshots.snapshot import VERSION, decode, encode

BODY = encode(snapshot(entry(stages=("join",), reason=Reason.HOLD, bound=Bound.MAX)))
SIGNALS = [field.name for field in fields(Decision) if field.default is None]
Edit = Callable[[dict[str, Any]], None]


@given(
    st.dictionaries(st.sampled_from(SIGNALS), st.none() | st.floats(allow_nan=False, allow_infinity=False)),
    st.dictionaries(st.text(), st.text(), max_size=3),
    st.lists(st.text(), max_size=3).map(tuple),
    st.sampled_from(Bound),
)
def test_an_encoded_snapshot_is_decoded(
    signals: dict[str, Any], labels: dict[str, str], stages: tuple[str, ...], bound: Bound
) -> None:
    first, second = entry("shop/orders", labels, stages, bound=bound, **signals), entry("web/clicks", error_after_s=90)
    found = decode(encode(snapshot(first, second)))
    assert tuple(found.entries) == (first, second)
    assert found == snapshot(first, second)


def test_a_column_of_unknown_numbers_is_not_encoded() -> None:
    numbers = msgspec.msgpack.decode(BODY)["columns"]["numbers"]
    assert numbers.keys() == {"required_workers"}


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
@pytest.mark.parametrize("rest", [{}, {"columns": 7}], ids=["nothing else", "all of it"])
def test_the_fault_of_another_release_is_its_version(version: int, rest: dict[str, Any]) -> None:
    sentence = f"snapshot of version {version}, expected {VERSION}: run one release of pipeline and serve"
    with pytest.raises(ValueError, match=sentence):
        decode(edited(BODY, lambda message: message.update(version=version, **rest)))


@pytest.mark.parametrize(
    "body",
    [b"", b"\x90", b"\x80", BODY[:-20], b"\x81\xa7version" + b"\x91" * 100_000, b'{"version":3}'],
    ids=["empty", "a list", "no version", "truncated", "nested too deep", "JSON"],
)
def test_other_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="not a snapshot"):
        decode(body)


def column(name: str, value: Any) -> Edit:
    return lambda message: message["columns"].update({name: value})


def text(name: str, **parts: Any) -> Edit:
    return lambda message: message["columns"]["texts"][name].update(parts)


def number(name: str, value: bytes) -> Edit:
    return lambda message: message["columns"]["numbers"].update({name: value})


MISFITS: dict[str, Edit] = {
    "a number too few": number("required_workers", b""),
    "a cut column": number("required_workers", b"1234567"),
    "a column of texts that is missing": lambda message: message["columns"]["texts"].pop("policy"),
    "a text that has no name": text("policy", names=[]),
    "an unknown reason": text("reason", names=["Foreseen"]),
    "an unknown bound": text("bound", names=["moon"]),
    "a workload that is a number": column("workloads", [7]),
    "a workload too many": column("workloads", ["shop/orders", "shop/payments"]),
    "labels that are a list": column("label_sets", [["team"]]),
    "labels without a workload": column("label_sets", []),
    "a stage without a workload": column("stage_workloads", b"\x09\0\0\0"),
    "a stage without a name": column("stages", {"names": [], "codes": b"\0\0\0\0"}),
    "an unknown signal of a stage": column("stage_numbers", {"weather": b"12345678"}),
}


@pytest.mark.parametrize("edit", MISFITS.values(), ids=MISFITS)
def test_columns_that_do_not_fit_each_other_are_refused(edit: Edit) -> None:
    with pytest.raises(ValueError, match=r"not a snapshot|not a valid"):
        decode(edited(BODY, edit))


def test_the_entries_of_a_snapshot_are_built_once() -> None:
    entries = decode(encode(snapshot(entry(), entry("shop/other")))).entries
    assert isinstance(entries, Entries)
    assert all(one is other for one, other in zip(list(entries), list(entries), strict=True))
