"""The embedded fleet: its samples, its scaling by the API, and its end."""

import json
import socket
from collections import defaultdict
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest
from sample_rows import Row, rows_of

from adapter.core.engine import advance
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.samples import STAGE_SIGNALS, WORKLOAD_SIGNALS
from adapter.core.state import EMPTY
from adapter.simulator import demo
from adapter.simulator.fleet import PAST_S, SimulatedFleet, required_workers
from adapter.sources.sample_table import FAULT, samples_of

START_S = 1_000_000


class Clock:
    def __init__(self, now_s: float = START_S) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


def result(rows: list[Row], workload: str) -> dict[str, float]:
    return {row.signal: row.value for row in rows if row.workload == f"demo/{workload}"}


def test_a_fleet_has_a_history_when_it_starts() -> None:
    fleet = SimulatedFleet(1, Clock())

    rows = rows_of(fleet.samples(START_S - 600, START_S + 600, 15))

    assert sorted({row.at_s for row in rows}) == list(range(START_S - PAST_S, START_S + 1, 15))


def test_the_fleet_reports_only_known_signals() -> None:
    rows = rows_of(SimulatedFleet(1, Clock()).samples(START_S, START_S, 1))

    signals = {row.signal for row in rows}
    assert signals == {
        "appended_records",
        "processed_records",
        "backlog_records",
        "utilization_ratio",
        "partitions",
        "spec_workers",
        "workers",
        "ready_workers",
        "min_workers",
        "max_workers",
    }
    assert signals <= {*STAGE_SIGNALS, *WORKLOAD_SIGNALS}


def test_steady_is_exact() -> None:
    clock = Clock()
    fleet = SimulatedFleet(1, clock)
    clock.now_s += 900

    first, last = (result(rows_of(fleet.samples(at_s, at_s, 1)), "steady") for at_s in (START_S, START_S + 900))

    assert last["appended_records"] - first["appended_records"] == 900 * 370
    assert last["processed_records"] == last["appended_records"]
    assert (last["backlog_records"], last["utilization_ratio"], last["ready_workers"]) == (0, 0.925, 4)


def test_the_reported_counts_are_whole_and_complete() -> None:
    clock = Clock()
    fleet = SimulatedFleet(1, clock)
    clock.now_s += 120
    seen: dict[tuple[int, str], dict[str, float]] = defaultdict(dict)
    for row in rows_of(fleet.samples(START_S, START_S + 120, 1)):
        seen[row.at_s, row.workload][row.signal] = row.value

    for counts in seen.values():
        if "appended_records" in counts:
            assert counts["appended_records"] == counts["processed_records"] + counts["backlog_records"]
            assert all(counts[name].is_integer() and counts[name] >= 0 for name in counts if name.endswith("records"))


def test_equal_seeds_give_equal_fleets_for_any_clock_steps() -> None:
    clock, jumping = Clock(START_S + 0.4), Clock(START_S + 0.4)
    one, other = SimulatedFleet(5, clock), SimulatedFleet(5, jumping)
    for _ in range(100):
        clock.now_s += 1
        one.advance()
    jumping.now_s += 100

    assert one.samples(START_S, START_S + 100, 5).equals(other.samples(START_S, START_S + 100, 5))


def test_a_clock_that_runs_backwards_changes_nothing() -> None:
    clock = Clock()
    fleet = SimulatedFleet(1, clock)
    before = rows_of(fleet.samples(START_S, START_S, 1))
    clock.now_s -= 50

    assert rows_of(fleet.samples(START_S, START_S, 1)) == before


def test_flaky_metrics_reports_a_fault_instead_of_counts_and_its_workers() -> None:
    clock = Clock()
    fleet = SimulatedFleet(1, clock)
    clock.now_s += 75

    rows = [
        row for row in rows_of(fleet.samples(START_S + 75, START_S + 75, 1)) if row.workload == "demo/flaky-metrics"
    ]

    assert [row.text for row in rows if row.signal == FAULT] == [
        "its exporter does not answer (part of the demonstration)"
    ]
    assert {row.signal for row in rows} - {FAULT} == {
        "spec_workers",
        "workers",
        "ready_workers",
        "min_workers",
        "max_workers",
    }


def test_the_fleet_scales_like_an_hpa_and_records_each_change() -> None:
    clock = Clock()
    fleet = SimulatedFleet(1, clock)
    clock.now_s += 5
    fleet.sync(lambda name: 8 if name == "sine" else None)
    clock.now_s += 3
    seconds = [rows_of(fleet.samples(at_s, at_s, 1)) for at_s in range(START_S + 4, START_S + 9)]

    assert [result(rows, "sine")["spec_workers"] for rows in seconds] == [6, 6, 8, 8, 8]
    assert rescaled(fleet) == {"demo/sine"}
    assert fleet.worker_counts()["demo/sine"] == (6, 8)
    assert fleet.worker_counts()["demo/steady"] == (4,)


def test_a_new_worker_is_ready_only_after_its_start() -> None:
    clock = Clock()
    fleet = SimulatedFleet(1, clock)
    fleet.sync(lambda name: 8 if name == "sine" else None)
    clock.now_s += 10

    ready = [
        result(rows_of(fleet.samples(at_s, at_s, 1)), "sine")["ready_workers"] for at_s in range(START_S, START_S + 6)
    ]

    assert ready == [6, 6, 6, 6, 8, 8]


def test_no_number_freezes_every_workload() -> None:
    clock = Clock()
    fleet = SimulatedFleet(1, clock)
    for _ in range(20):
        clock.now_s += 5
        fleet.sync(lambda name: None)

    assert not rescaled(fleet)


def requested(answer: httpx.Response | httpx.HTTPError) -> tuple[int | None, list[httpx.Request]]:
    requests: list[httpx.Request] = []

    def answered(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        if isinstance(answer, httpx.HTTPError):
            raise answer
        return answer

    with httpx.Client(base_url="http://api.test", transport=httpx.MockTransport(answered)) as client:
        return required_workers(client, "sine"), requests


def test_the_fleet_sends_the_request_of_an_hpa() -> None:
    value, (request,) = requested(httpx.Response(200, json={"items": [{"value": "7"}]}))

    assert value == 7
    assert request.url.raw_path == (
        b"/apis/external.metrics.k8s.io/v1beta1/namespaces/demo/required_workers?labelSelector=workload%3Dsine"
    )


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(httpx.Response(503, json={"message": "no sample"}), id="no number"),
        pytest.param(httpx.Response(200, json={"items": []}), id="an empty list"),
        pytest.param(httpx.Response(200, json={"items": [{"value": "NaN"}]}), id="not a quantity"),
        pytest.param(httpx.Response(200, text="<html>"), id="not JSON"),
        pytest.param(httpx.ConnectError("refused"), id="connection refused"),
        pytest.param(httpx.ReadTimeout("late"), id="too late"),
    ],
)
def test_an_invalid_answer_is_no_number(answer: httpx.Response | httpx.HTTPError) -> None:
    value, _ = requested(answer)

    assert value is None


def test_samples_over_http_until_it_is_stopped() -> None:
    fleet = SimulatedFleet(1, Clock())
    fleet.start()
    try:
        port = urlsplit(fleet.url).port
        with httpx.Client(base_url=fleet.url, timeout=5) as client:
            answer = client.get("/samples", params={"start": START_S - 30, "end": START_S, "step": 15})
            bad = client.get("/samples", params={"start": START_S, "end": START_S, "step": 0})
            incomplete = client.get("/samples", params={"start": "soon"})
            missing = client.get("/")
            foreign = client.get("/samples", headers={"Host": "rebound.example"})
    finally:
        fleet.stop()
        fleet.stop()

    assert [Row(**json.loads(line)) for line in answer.text.splitlines()] == rows_of(
        fleet.samples(START_S - 30, START_S, 15)
    )
    assert (bad.status_code, bad.json()["message"]) == (400, "step must be at least 1 s, got 0")
    assert (incomplete.status_code, missing.status_code, foreign.status_code) == (400, 404, 403)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port or 0), timeout=1)


def test_following_an_unreachable_api_ends_with_the_fleet() -> None:
    fleet = SimulatedFleet(1, Clock())
    fleet.start()
    fleet.follow("http://127.0.0.1:1")
    fleet.stop()

    assert not rescaled(fleet)


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("tick_s", "window_s"),
    [(1, 15), (5, 60), *(pytest.param(*other, marks=pytest.mark.full) for other in ((1, 60), (5, 15)))],
)
def test_in_a_closed_loop_steady_needs_four_workers_at_every_tick(tick_s: int, window_s: int) -> None:
    rules = Rules(rate_window_s=window_s, settle_s=10, max_workers=12)

    sizes, changed = closed_loop(rules, tick_s, 60 * tick_s)

    assert set(sizes["demo/steady"]) == {4}
    assert "demo/steady" not in changed


def test_in_a_closed_loop_two_minutes_show_scale_ups_and_scale_downs() -> None:
    rules = Rules(
        rate_window_s=15,
        settle_s=10,
        backlog_time_target_s=30,
        rescale_pause_s=2,
        worker_start_s=3,
        down_window_s=20,
        cooldown_down_s=20,
        rescale_worth_s=2,
        max_workers=12,
    )

    sizes, changed = closed_loop(rules, 5, 120)

    assert min(sizes["demo/sine"]) < 6 < max(sizes["demo/sine"])
    assert {"demo/sine", "demo/onboarding-step", "demo/spikes"} <= changed
    assert set(sizes["demo/idle"]) == {1}


@pytest.mark.simulation
def test_waves_and_spikes_as_short_as_the_rate_window_show_the_capacity_of_a_worker() -> None:
    rules = Rules(
        rate_window_s=10,
        settle_s=6,
        backlog_time_target_s=20,
        rescale_pause_s=2,
        warm_up_s=6,
        worker_start_s=3,
        down_window_s=20,
        cooldown_down_s=20,
        rescale_worth_s=6,
        max_workers=12,
    )

    capacities, _ = closed_loop(rules, 2, 300, "worker_capacity_records_per_s")

    for name in ("demo/sine", "demo/spikes"):
        known = [capacity for capacity in capacities[name] if not np.isnan(capacity)]
        assert min(known) > 0.9 * demo.WORKER_CAPACITY_RECORDS_PER_S
        assert max(known) < 1.2 * demo.WORKER_CAPACITY_RECORDS_PER_S


def closed_loop(
    rules: Rules, tick_s: int, seconds: int, number: str = "required_workers"
) -> tuple[dict[str, list[float]], set[str]]:
    """A number of every decided tick, and the rescaled workloads, without Spark and HTTP."""
    clock = Clock()
    fleet = SimulatedFleet(1, clock)
    book = RuleBook(by_workload=dict.fromkeys(fleet.worker_counts(), rules))
    state = EMPTY
    seen: dict[str, list[float]] = defaultdict(list)
    for at_s in range(START_S - PAST_S + tick_s, START_S + seconds + 1, tick_s):
        clock.now_s = max(START_S, at_s)
        samples = samples_of(at_s, fleet.samples(at_s, at_s, tick_s))
        state, decisions = advance(state, replace(samples, faults={}), book)
        decided = zip(decisions.text["workload"], decisions.numbers["required_workers"], strict=True)
        served = {workload: float(workers) for workload, workers in decided if not np.isnan(workers)}
        shown = dict(zip(decisions.text["workload"], decisions.numbers[number].tolist(), strict=True))
        for workload in served:
            seen[workload].append(shown[workload])
        if at_s > START_S and at_s % 5 == 0:
            fleet.sync(partial(workers_of, served))
    return seen, rescaled(fleet)


def rescaled(fleet: SimulatedFleet) -> set[str]:
    return {workload for workload, counts in fleet.worker_counts().items() if len(counts) > 1}


def workers_of(served: dict[str, float], name: str) -> int | None:
    workers = served.get(f"demo/{name}")
    return None if workers is None else int(workers)
