"""`/explain/<namespace>/<name>`: the record behind a number, as the pipeline hands it out."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import structlog
from serving_builders import decision, entry, get, snapshot

from adapter import __version__
from adapter.apiserver.app import create_app
from adapter.core.decisions import Decision
from adapter.core.messages import sentence
from adapter.serving.routes import publisher_routes
from adapter.serving.snapshots.records import decode
from adapter.serving.snapshots.store import SnapshotStore

DECIDED = decision(workers=3.0)
NUMBERS = {"policy_input.workers": 3.0, "fit.a": None}


def record_of(workload: str) -> tuple[Decision, Mapping[str, float | None]] | None:
    return (DECIDED, NUMBERS) if workload == "shop/orders" else None


def store_of(*names: str) -> SnapshotStore:
    store = SnapshotStore()
    store.put(snapshot(*(entry(name) for name in names)))
    return store


def publisher(store: SnapshotStore, token_file: Path | None = None) -> Any:
    """Answers a path."""
    token = None if token_file is None else str(token_file)
    return partial(get, create_app(publisher_routes(store, record_of, token)))


def test_a_record_has_the_decision_its_sentence_and_every_number_or_null() -> None:
    answer = publisher(store_of("shop/orders"))("/explain/shop/orders")
    assert answer.status_code == 200
    assert answer.json["record"] == NUMBERS
    assert answer.json["decision"]["required_workers"] == 3
    assert (answer.json["version"], answer.json["sentence"]) == (__version__, sentence(DECIDED))
    assert decode(answer.data).decision == DECIDED


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("shop/order", 404, "did you mean 'shop/orders'?"),
        ("shp/orders", 404, "did you mean 'shop/orders'?"),
        ("x/y", 404, "2 workloads are known"),
        ("shop/late", 503, "the last tick has no decision for"),
        ("shop/%3Cb%3E", 404, "there is no workload"),
    ],
)
def test_an_unknown_workload_is_answered_with_the_nearest_name(path: str, code: int, words: str) -> None:
    answer = publisher(store_of("shop/late", "shop/orders"))(f"/explain/{path}")
    assert answer.status_code == code
    assert answer.json["code"] == code
    assert words in answer.json["message"]


def test_before_the_first_decision_there_is_no_record() -> None:
    answer = publisher(SnapshotStore())("/explain/shop/orders")
    assert answer.status_code == 503
    assert "no decision yet" in answer.json["message"]


def test_a_record_requires_the_token_of_a_snapshot(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    read = publisher(store_of("shop/orders"), token)
    assert read("/explain/shop/orders").status_code == 401
    assert read("/explain/shop/orders", Authorization="Bearer guess").status_code == 401
    assert read("/explain/shop/nobody").status_code == 401, "an unauthenticated client learns no names"
    assert read("/explain/shop/orders", Authorization="Bearer secret").status_code == 200


def test_an_unreadable_token_file_is_logged_once_until_it_can_be_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    read = publisher(store_of("shop/orders"), token)
    with structlog.testing.capture_logs() as logs:
        assert [read("/explain/shop/orders").status_code for _ in range(3)] == [401, 401, 401]
        token.write_text("secret")
        assert read("/explain/shop/orders", Authorization="Bearer secret").status_code == 200
    assert [(log["log_level"], log["file"]) for log in logs] == [("error", str(token)), ("info", str(token))]


def test_records_of_another_release_and_other_bodies_are_refused() -> None:
    body = publisher(store_of("shop/orders"))("/explain/shop/orders").data
    with pytest.raises(ValueError, match="a record of release 9"):
        decode(body.replace(__version__.encode(), b"9"))
    for other in (b'{"version": "1"}', b'{"version": "\xff"}', b'{"more": ' + b"[" * 100_000):
        with pytest.raises(ValueError, match="not a record"):
            decode(other)
