"""A source that is wrong or hostile loses its own numbers. A workload of another source, `shop/healthy`, keeps them.

Each test runs sources, shards, fold and snapshot as the pipeline does, without Spark.
"""

import gzip
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from builders import history as decisions_of
from hostile_server import Answer, Form, http_server, send
from rich.console import Console

from adapter.config import Basic, Config, KubernetesSource, rule_book
from adapter.core.decisions import Decision, Reason
from adapter.core.messages import sentence
from adapter.core.state import EMPTY
from adapter.errors import LONGEST_FAULT
from adapter.http_body import LARGEST_BODY
from adapter.pipeline.datasource import Reader
from adapter.pipeline.fold import by_shard, fold_ticks
from adapter.pipeline.packing import pack_decisions, unpack
from adapter.pipeline.publish import SnapshotBuilder
from adapter.pipeline.query import OPENER
from adapter.pipeline.shards import shard_of
from adapter.pipeline.source_runner import serialize
from adapter.serving.snapshots.snapshot import Snapshot, encode
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.ui import terminal
from adapter.sources.prometheus import MOST_VALUES

FIRST_S = 1_750_000_020
DEADLINE_S = 14  # on a busy machine
SHORT_S = 5  # where the deadline itself is tested
WORKERS = ("spec_workers", "workers", "ready_workers")
SIGNALS = ("backlog_records", "throughput_records_per_s", "input_rate_records_per_s", *WORKERS)
SMALL_BYTES = 1_000_000  # of a snapshot of 1 000 workloads
EVIL = 'a\r\nforged: line\x1b[2J\x1b]0;title\x07"\\<script>\u202eevil\u2066\x00'
Labels = Mapping[str, str]
ORDERS = {"app": "orders"}


def vector(form: Form, *series: tuple[Labels, str], age_s: float = 0) -> bytes:
    at_s = float(form["time"]) - age_s
    result = [{"metric": labels, "value": [at_s, value]} for labels, value in series]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


def good(request: Any, form: Form) -> None:
    send(request, vector(form, ({"app": "healthy"}, "7")))


def answer_with(body: bytes | Callable[[Form], bytes], **more: Any) -> Answer:
    return lambda request, form: send(request, body(form) if callable(body) else body, **more)


def orders(value: str, change: Callable[[bytes], bytes] = bytes, **more: Any) -> Answer:
    return answer_with(lambda form: change(vector(form, (ORDERS, value))), **more)


def config(bad: str, healthy: str, workloads: int = 1, deadline_s: float = DEADLINE_S, **fleet: Any) -> Config:
    def reads(source: str, name: str) -> dict[str, Any]:
        signals = {signal: f"{signal}{{$match}} == on ($by) 1" for signal in SIGNALS}
        return {
            "name": name,
            "namespace": "shop",
            "read": [{"source": source, "match": {"app": name}, "signals": signals}],
        }

    named = [reads("bad", "orders"), *(reads("bad", f"w{number}") for number in range(1, workloads))]
    settings = {"kind": "prometheus", "deadline_s": deadline_s}
    return Config.model_validate(
        {
            "sources": {"bad": {**settings, "url": bad}, "good": {**settings, "url": healthy}},
            "workloads": [reads("good", "healthy"), *([] if fleet else named)],
            "fleets": [{"name": "all", "source": "bad", **fleet}] if fleet else [],
            "pipeline": {"checkpoint": "/nowhere"},
            "serving": {},
        }
    )


def snapshot(settings: Config, at_s: int) -> Snapshot:
    """What the pipeline publishes after one tick."""
    reader = Reader(serialize(settings), OPENER)
    tick_s = settings.timing.tick_s
    shards: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for part in reader.partitions({"at": at_s - tick_s}, {"at": at_s}):
        for shard, at, samples in reader.read(part):
            shards[shard].append((at, samples))
    rules = rule_book(settings)
    after = [fold_ticks(EMPTY, unpack(rows), by_shard(rules)[shard]) for shard, rows in shards.items()]
    assert not any(each.faults for each in after)
    packed = [pack_decisions(each.decisions) for each in after if each.decisions is not None]
    return SnapshotBuilder(settings, rules).snapshot(at_s, packed)


def published(settings: Config) -> dict[str, Decision]:
    """The decisions after one tick, as `serve` receives them, by workload. Checks what holds for every source."""
    tick_s = settings.timing.tick_s
    made = snapshot(settings, int(time.time()) // tick_s * tick_s)
    store = SnapshotStore()
    assert store.put(encode(made)), "serve accepts the snapshot"
    assert len(encode(made)) < SMALL_BYTES
    decisions = {entry.decision.workload: entry.decision for entry in made.entries}
    assert decisions["shop/healthy"].backlog_records == 7
    assert decisions["shop/healthy"].fault == ""
    for decision in decisions.values():
        texts = (decision.workload, decision.stage, decision.bottleneck, decision.dispute, sentence(decision))
        assert all(text.isprintable() for text in texts), "no line, escape sequence or mark that reorders a line"
        assert len(decision.fault) <= LONGEST_FAULT
    return decisions


@contextmanager
def servers(answer: Answer) -> Iterator[Callable[..., Config]]:
    """Gives the configuration with a bad server that answers this, and a good one."""
    with http_server(answer) as bad, http_server(good) as healthy:
        yield partial(config, bad, healthy)


def error(text: str) -> bytes:
    return json.dumps({"status": "error", "errorType": "internal", "error": text}).encode()


def endless(request: Any, form: Form) -> None:
    request.send_response(200)
    request.end_headers()
    while True:
        request.wfile.write(b" " * 2**20)


def dripping(request: Any, form: Form) -> None:
    request.send_response(200)
    request.end_headers()
    while True:
        request.wfile.write(b" ")
        time.sleep(0.05)


NOT_PROMETHEUS = "is not in Prometheus' format"
WRONG: dict[str, tuple[Answer, str]] = {
    "an error page of 70 KB": (answer_with(error("a" * 70_000), status=500), "500 internal: aaa"),
    "an error with forged lines": (answer_with(error(EVIL * 1000), status=500), r"500 internal: a forged: line\x1b[2J"),
    "a web page": (answer_with(b"x" * 70_000, content_type="text/html"), "the answer is a web page"),
    "a compressed body that is too large": (
        answer_with(gzip.compress(b" " * (LARGEST_BODY + 1)), Content_Encoding="gzip"),
        f"the answer is larger than {LARGEST_BODY} bytes",
    ),
    "half a compressed body": (
        orders("3", lambda body: gzip.compress(body)[:-10], Content_Encoding="gzip"),
        "expected a complete gzipped answer",
    ),
    "a body that only claims to be compressed": (orders("3", Content_Encoding="gzip"), "expected a gzipped answer"),
    "an encoding that was not offered": (orders("3", Content_Encoding="br"), "got Content-Encoding 'br'"),
    "an endless body": (endless, f"the answer is larger than {LARGEST_BODY} bytes"),
    "a slow endless body": (dripping, f" within {SHORT_S} s"),
    "10^6 series": (
        orders("3", lambda body: body.replace(b"]}}", b',{"metric":{},"value":[1,"2"]}' * 10**6 + b"]}}")),
        f"backlog_records (workloads[1].read[0]): the answer has 1000001 values, more than {MOST_VALUES['query']}",
    ),
    "a series without the workload label": (
        answer_with(lambda form: vector(form, ({"pod": EVIL}, "3"))),
        "a series of backlog_records lacks the label 'app'",
    ),
    "the same series twice": (
        answer_with(lambda form: vector(form, (ORDERS, "3"), (ORDERS, "4"))),
        "backlog_records has two series",
    ),
    "NaN": (orders("NaN"), "backlog_records is NaN and is ignored"),
    "a value that is a novel": (orders(EVIL * 10_000), r"backlog_records is a forged: line\x1b[2J"),
    "a time after the end of the sun": (answer_with(lambda form: vector(form, (ORDERS, "3"), age_s=-1e300)), ""),
    "values of ten minutes ago": (answer_with(lambda form: vector(form, (ORDERS, "3"), age_s=600)), ""),
    "a clock that is ahead": (orders("3", Date="Mon, 23 Nov 2099 00:00:00 GMT"), "s ahead of this one"),
    "a clock that is behind": (orders("3", Date="Mon, 23 Nov 2020 00:00:00 GMT"), "s behind this one"),
    "bytes that are not UTF-8": (orders("3", lambda body: body.replace(b"orders", b"\xff")), NOT_PROMETHEUS),
    "an answer nested too deeply": (answer_with(b'{"data":' + b"[" * 100_000), NOT_PROMETHEUS),
    "a series nested too deeply": (
        orders("3", lambda body: body.replace(b'"orders"', b'"orders","x":' + b"[" * 90_000 + b"]" * 90_000)),
        NOT_PROMETHEUS,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_costs_its_own_query_only(name: str) -> None:
    answer, cause = WRONG[name]

    def of_query(request: Any, form: Form) -> None:
        wrong = form["query"].startswith("backlog_records")
        answer(request, form) if wrong else send(request, vector(form, (ORDERS, "12")))

    with servers(of_query) as settings:
        deadline_s = SHORT_S if answer is dripping else DEADLINE_S
        orders = published(settings(deadline_s=deadline_s))["shop/orders"]
    assert orders.backlog_records is None, "unknown is never 0"
    assert orders.spec_workers == 12
    assert cause in orders.fault


def job(form: Form, **changes: Callable[[float], float]) -> bytes:
    """A job of 10 workers that carries 800/s and is 30 s behind. changes: signal -> its value at a time."""
    at_s = float(form["time"])
    values: dict[str, Callable[[float], float]] = {
        "processed_records": lambda at_s: 800.0 * at_s,
        "appended_records": lambda at_s: 800.0 * at_s + 24_000,
        "backlog_records": lambda at_s: 24_000.0,
        "utilization_ratio": lambda at_s: 0.8,
        **dict.fromkeys(WORKERS, lambda at_s: 10.0),
        **changes,
    }
    value = next(value for signal, value in values.items() if form["query"].startswith(signal))
    return vector(form, (ORDERS, repr(value(at_s))))


def decided(answer: Answer, ticks: int = 24) -> list[Decision]:
    """The decisions of `orders` on a server, tick by tick."""
    signals = ("processed_records", "appended_records", "backlog_records", "utilization_ratio", *WORKERS)
    read = {"source": "bad", "signals": {signal: f"{signal}{{$match}} == on ($by) 1" for signal in signals}}
    with http_server(answer) as bad:
        settings = Config.model_validate(
            {
                "sources": {"bad": {"kind": "prometheus", "url": bad, "deadline_s": DEADLINE_S}},
                "workloads": [{"name": "orders", "namespace": "shop", "read": [{**read, "match": ORDERS}]}],
                "rules": {"policy": "dataflow", "max_workers": 50},
                "timing": {"history_s": 0},
                "pipeline": {"checkpoint": "/nowhere"},
            }
        )
        reader, rows = Reader(serialize(settings), OPENER), list[tuple[int, bytes]]()
        for at_s in range(FIRST_S, FIRST_S + 15 * ticks, 15):
            for part in reader.partitions({"at": at_s - 15}, {"at": at_s}):
                rows += [(at, samples) for shard, at, samples in reader.read(part) if shard == shard_of("shop/orders")]
        return decisions_of(unpack(rows), rule_book(settings), "shop/orders")


def counters(change: Callable[[float, float], float]) -> Answer:
    """A job whose counters are changed. change: the true value and the time -> the reported value."""
    return answer_with(
        lambda form: job(
            form,
            processed_records=lambda at_s: change(800.0 * at_s, at_s),
            appended_records=lambda at_s: change(800.0 * at_s + 24_000, at_s),
        )
    )


def values_at(shift_s: float) -> Answer:
    """Samples with the time of another tick."""
    return answer_with(lambda form: job({**form, "time": str(float(form["time"]) + shift_s)}))


def clock(shift_s: float) -> Answer:
    return lambda request, form: send(request, job(form), Date=formatdate(time.time() + shift_s, usegmt=True))


UNDECIDED: dict[str, tuple[Answer, str]] = {
    "counters that fall at every tick": (counters(lambda value, at_s: 1e13 - value), "its counters fell 8 times"),
    "two exporters in turn": (counters(lambda value, at_s: value - at_s % 30 * 1e6), "or several sources report the"),
    "samples of ten minutes ago": (values_at(-600), "are 600 s older than the tick; is it running, and scraped?"),
    "samples of the future": (values_at(600), "are 600 s newer than the tick; synchronize the clocks"),
    "a clock ten minutes behind": (clock(-600), "s behind this one; synchronize the clocks"),
    "a clock ten minutes ahead": (clock(600), "s ahead of this one; synchronize the clocks"),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_no_size_follows_from_counters_that_fall_or_times_that_are_wrong(name: str) -> None:
    answer, cause = UNDECIDED[name]
    decisions = decided(answer)
    assert {(each.required_workers, each.throughput_records_per_s) for each in decisions} == {(None, None)}
    assert decisions[-1].reason is Reason.NO_DATA
    assert cause in sentence(decisions[-1])


def test_a_counter_that_falls_once_holds_the_target_until_there_is_a_rate_again() -> None:
    falls_s = FIRST_S + 16 * 15
    after = decided(counters(lambda value, at_s: value - 800.0 * falls_s * (at_s >= falls_s)))
    sizes = [each.required_workers for each in after if each.required_workers is not None]
    assert set(sizes) == {sizes[0]}
    assert [each.reason for each in after[15:20]] == [Reason.UP, Reason.NO_DATA, Reason.NO_DATA, Reason.UP, Reason.UP]
    assert all(each.fault == "" for each in after), "a job may restart"


@pytest.mark.parametrize("name", ["an error with forged lines", "an encoding that was not offered", "a web page"])
def test_a_server_whose_every_answer_is_wrong_costs_its_own_workloads_only(name: str) -> None:
    answer, cause = WRONG[name]
    with servers(answer) as settings:
        orders = published(settings())["shop/orders"]
    assert orders.spec_workers is None
    assert cause in orders.fault


def test_an_unusable_kubeconfig_is_named_beside_the_fault_of_another_source(tmp_path: Path) -> None:
    cluster = KubernetesSource(kind="kubernetes", kubeconfig=str(tmp_path / "absent"))
    with servers(answer_with(b"", status=500)) as settings:
        made = settings()
        made = made.model_copy(update={"sources": {**made.sources, "cluster": cluster}})
        at_s = int(time.time()) // 15 * 15
        decisions = {entry.decision.workload: entry.decision for entry in snapshot(made, at_s).entries}
    assert "cluster: expected a kubeconfig in " in sentence(decisions["shop/healthy"])
    assert "cluster: expected a kubeconfig in " in sentence(decisions["shop/orders"])
    assert "bad: " in sentence(decisions["shop/orders"])


def test_a_thousand_workloads_with_an_error_of_70_kb_are_a_small_snapshot() -> None:
    with servers(answer_with(error(EVIL * 2000), status=500)) as settings:
        decisions = published(settings(workloads=1000))
    assert len(decisions) == 1001


def test_hostile_labels_reach_neither_a_name_nor_the_terminal() -> None:
    series = [({"app": EVIL, "ns": "shop"}, "3"), ({"app": "orders", "ns": "shop"}, "4"), ({"app": "", "ns": "x"}, "5")]
    with servers(answer_with(lambda form: vector(form, *series))) as settings:
        made = settings(workload_label="app", namespace_label="ns", signals={"spec_workers": "max by ($by) (depth)"})
        decisions = published(made)
        screen = StringIO()
        at_s = int(time.time()) // 15 * 15
        console = Console(file=screen, width=300, force_terminal=True, color_system=None)
        console.print(terminal.table(console, snapshot(made, at_s), at_s))
    assert decisions["shop/orders"].spec_workers == 4
    assert set(decisions) == {"shop/healthy", "shop/orders", "shop/a--forged--line--2J--0-title----script--evil"}
    assert all(line.isprintable() for line in screen.getvalue().split("\n"))


@pytest.mark.parametrize("stray", ["orders-", "-orders", "orders\n", "orders\u202e"])
def test_a_stray_name_does_not_freeze_the_workload_whose_name_it_resembles(stray: str) -> None:
    series = [
        ({"app": name, "ns": "shop"}, value) for name, value in [(stray, "900"), ("orders", "4"), (stray + "-", "8")]
    ]
    with servers(answer_with(lambda form: vector(form, *series))) as settings:
        signals = {"spec_workers": "max by ($by) (depth)"}
        orders = published(settings(workload_label="app", namespace_label="ns", signals=signals))["shop/orders"]
    assert orders.spec_workers == 4
    assert "have the same workload name; only shop/orders is read" in orders.fault


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_credentials_never_follow_a_redirect(status: int, tmp_path: Any) -> None:
    (tmp_path / "token").write_text("secret-token")
    reached: list[Any] = []
    with http_server(lambda request, form: reached.append(request.headers)) as thief:
        location = f"{thief}/{EVIL.encode('unicode_escape').decode()}"
        with servers(answer_with(b"", status=status, Location=location)) as settings:
            made = settings()
            bad = made.sources["bad"].model_copy(update={"bearer_token_file": str(tmp_path / "token")})
            orders = published(made.model_copy(update={"sources": {**made.sources, "bad": bad}}))["shop/orders"]
    assert reached == []
    assert "which is not followed" in orders.fault


def test_basic_credentials_never_follow_a_redirect(tmp_path: Any) -> None:
    (tmp_path / "password").write_text("secret")
    reached: list[Any] = []
    with (
        http_server(lambda request, form: reached.append(request.headers)) as thief,
        servers(answer_with(b"", status=307, Location=f"{thief}/api/v1/query")) as settings,
    ):
        made = settings()
        basic = Basic(username="me", password_file=str(tmp_path / "password"))
        bad = made.sources["bad"].model_copy(update={"basic": basic})
        orders = published(made.model_copy(update={"sources": {**made.sources, "bad": bad}}))["shop/orders"]
    assert reached == []
    assert "which is not followed" in orders.fault
