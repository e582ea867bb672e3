"""Several sources report one workload: which value counts, and when the difference is a fault."""

import pyarrow as pa
import pytest
from builders import JOB, counts, flow, job

from adapter.config import Config
from adapter.core.engine import advance
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.samples import Samples
from adapter.core.state import EMPTY
from adapter.sources.precedence import with_source
from adapter.sources.sample_table import SampleTable, samples_of

AT_S = 1_800_000_000


def config(*read: str) -> Config:
    """A workload that reads these Prometheus servers in this order; `fleet` and `cluster` are read beside them."""
    servers = {name: {"kind": "prometheus", "url": "http://metrics"} for name in ("broker", "engine", "third", "fleet")}
    entries = [{"source": name, "signals": {"backlog_records": "b{$match}"}} for name in read]
    return Config.model_validate(
        {
            "sources": {**servers, "cluster": {"kind": "kubernetes"}},
            "workloads": [{"namespace": "shop", "name": "orders", "read": entries}],
            "pipeline": {"checkpoint": "/nowhere"},
        }
    )


def samples(settings: Config, at_s: int = AT_S, **by_source: dict[str, float | None]) -> Samples:
    """One tick of what each source reports. "staged" makes it one of a stage."""
    tables = []
    for name, signals in by_source.items():
        table = SampleTable()
        stage = "map" if signals.pop("staged", None) else ""
        for workload, where, signal, value in job(JOB, stage, **signals):
            table.add(at_s, workload, {signal: value}, where)
        tables.append(with_source(table.finish(), settings, name))
    return samples_of(at_s, pa.concat_tables(reversed(tables)))


@pytest.mark.parametrize(
    ("read", "reported", "counts"),
    [
        (("broker", "engine"), {"broker": 10, "engine": 900}, 10),
        (("engine", "broker"), {"broker": 10, "engine": 900}, 900),
        (("broker", "engine"), {"broker": None, "engine": 900}, 900),
        (("broker", "engine"), {"broker": -1, "engine": 900}, 900),
        (("broker", "engine", "broker"), {"broker": 10, "engine": 900}, 10),
        (("engine",), {"fleet": 10, "engine": 900}, 900),
        (("third", "engine"), {"engine": 0, "broker": 5}, 0),
    ],
    ids=[
        "the first entry wins, not the larger value",
        "the order of read decides, not the names",
        "the next source replaces a missing value",
        "a value that means unknown is missing",
        "a source has the place where it is first named",
        "an entry of read comes before a fleet",
        "0 is a value",
    ],
)
def test_the_first_source_in_read_that_has_a_value_counts(
    read: tuple[str, ...], reported: dict[str, float | None], counts: float
) -> None:
    found = samples(config(*read), **{name: {"backlog_records": value} for name, value in reported.items()})
    assert found.stage("backlog_records").tolist() == [counts]


def test_the_api_server_counts_replicas_before_every_exporter() -> None:
    found = samples(config("engine"), engine={"spec_workers": 9.0}, cluster={"spec_workers": 3.0})
    assert found.whole("spec_workers").tolist() == [3]


def test_each_signal_has_its_own_source() -> None:
    found = samples(config("broker", "engine"), broker={"backlog_records": 7.0}, engine={"utilization_ratio": 0.5})
    assert (found.stage("backlog_records").tolist(), found.stage("utilization_ratio").tolist()) == ([7], [0.5])


def test_two_fleets_of_two_sources_still_contest_a_workload() -> None:
    found = samples(config("broker"), fleet={"fleet": 0.0}, engine={"fleet": 1.0})
    assert "fleets[0] and fleets[1] both find this workload" in found.faults[JOB]


def dispute(broker: float, engine: float, staged: bool = False, throughput: float = 100, ticks: int = 10) -> str:
    """What a decision says after some ticks."""
    state, settings = EMPTY, config("broker", "engine")
    book = RuleBook(by_workload={JOB: Rules()})
    for at_s in range(AT_S, AT_S + 15 * ticks, 15):
        moved = flow(at_s - AT_S, throughput) | {"backlog_records": broker}
        other = {"backlog_records": engine, "staged": float(staged) or None}
        state, decisions = advance(state, samples(settings, at_s, broker=moved, engine=other, cluster=counts()), book)
    assert decisions.text["fault"] == ("",)  # no sample is missing
    return decisions.text["dispute"][0]


@pytest.mark.parametrize("staged", [False, True], ids=["of the same stage", "of the stages of an engine"])
def test_a_decision_names_both_sources_whose_backlogs_contradict(staged: bool) -> None:
    assert dispute(50_000, 300, staged) == (
        "two sources contradict: the backlog is 50,000 records according to broker and 300 according to engine; "
        "check both; broker comes first in read and has precedence"
    )


@pytest.mark.parametrize(
    ("broker", "engine", "throughput", "ticks"),
    [(50_000, 26_000, 100, 10), (11_000, 0, 100, 10), (900, 0, 0, 10), (200_000, 10_000, 10_000, 2)],
    ids=[
        "less than twice the other",
        "what arrives between two commits",
        "a few records of an idle job",
        "no rate yet",
    ],
)
def test_smaller_differences_are_no_dispute(broker: float, engine: float, throughput: float, ticks: int) -> None:
    assert dispute(broker, engine, throughput=throughput, ticks=ticks) == ""


def test_of_two_sources_that_read_does_not_name_the_larger_backlog_counts() -> None:
    found = samples(config("third"), broker={"backlog_records": 10.0}, engine={"backlog_records": 5_000.0})
    assert found.stage("backlog_records").tolist() == [5_000]
    assert found.disputes[JOB].sentence.endswith(
        "10 records according to broker and 5,000 according to engine; check both; the larger one is used"
    )


def test_counters_of_another_source_are_no_progress() -> None:
    """The engine counts from another start. While the broker is silent for one tick, its counters stand in."""
    state, settings, throughputs = EMPTY, config("broker", "engine"), []
    book = RuleBook(by_workload={JOB: Rules()})
    for tick in range(40):
        at_s = AT_S + 15 * tick
        engine = flow(15 * tick, 1000)
        broker = {name: value + 1e6 for name, value in engine.items()} if tick != 20 else {}
        state, decisions = advance(state, samples(settings, at_s, broker=broker, engine=engine, cluster=counts()), book)
        throughputs.append(decisions.numbers["throughput_records_per_s"][0])
    assert {round(each) for each in throughputs if each == each} == {1000}
    assert throughputs[-1] == throughputs[-1]


def test_a_note_alone_is_no_failure_of_a_source():
    table = SampleTable()
    table.add_note(AT_S, "shop/orders", "1 partition has no committed offset")
    for add in (table.add_note, table.add_fault):
        add(AT_S, "shop/clicks", f"said by {add.__name__}")
    found = samples_of(AT_S, table.finish())
    assert found.faults["shop/orders"] == "1 partition has no committed offset"
    assert found.assumed == {"shop/orders"}
