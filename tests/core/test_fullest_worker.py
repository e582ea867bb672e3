"""The sum hides one partition that lags. Its own backlog counts while it does not catch up (S4-38)."""

from dataclasses import dataclass
from itertools import pairwise
from math import inf, nan

import pytest
from builders import JOB, Fluid, book, closed_each, counts, flow, job, last, tick
from policy_inputs import stage_input

from adapter.core.engine import replay
from adapter.core.messages import sentence
from adapter.core.policies import drain
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules

# 91 % busy: more workers would have fewer partitions each.
BUSY = {"policy": "drain", "worker_capacity_records_per_s": 110.0, "max_workers": 20}
QUIET = (0,) * 20


def seen(records, partitions, hottest=None, backlog=0, **more):
    """Ticks of ten workers that keep pace with 1 000/s. records: the backlog of the worst partition at each."""
    known = {"hottest_partition_ratio": hottest} | more
    return [
        tick(at_s, job(**flow(at_s, backlog=backlog), **counts(10, partitions=partitions), **known | worst))
        for at_s, worst in ((15.0 * at, {"highest_partition_backlog_records": each}) for at, each in enumerate(records))
    ]


def lagging(*records, stuck=None, partitions=20, hottest=None):
    """The last decision. Arguments as of `seen`."""
    return last(seen(records, partitions, hottest, stuck_backlog_records=stuck), book(**BUSY))


@pytest.mark.parametrize(
    ("records", "more"),
    [
        pytest.param((*QUIET, *range(2900, 3001, 10)), False, id="60 s of a partition's share: in time"),
        pytest.param((*QUIET, *range(2950, 3100, 10)), True, id="more than 60 s for a window, and growing: late"),
        pytest.param(tuple(range(5000, 3000, -100)), False, id="it catches up by itself"),
        pytest.param((*QUIET, *(0, 1500, 3000, 4500) * 5), False, id="a saw of commits, each time gone again: in time"),
        pytest.param((*QUIET, 3100, 3110, 3120, *(None,) * 8), False, id="no longer reported"),
    ],
)
def test_s4_38_a_partition_that_falls_behind_needs_more_workers(records, more):
    decided = lagging(*records)
    assert (decided.required_workers > 10) == more


@pytest.mark.parametrize(
    ("hottest", "more"),
    [
        pytest.param(None, True, id="of the mean rate: 61 s behind"),
        pytest.param(1.02, False, id="of 1.02 times the mean rate: 60 s behind"),
        pytest.param(0.5, True, id="no partition is below the mean one"),
    ],
)
def test_s4_38_the_worst_partition_has_the_rate_of_the_hottest_one(hottest, more):
    decided = lagging(*QUIET, *range(2950, 3100, 10), hottest=hottest)
    assert (decided.required_workers > 10) == more


def test_a_stuck_partition_needs_no_workers():
    assert lagging(*QUIET, *range(3100, 3200, 10), stuck=3200.0).required_workers == 10


def test_without_a_count_of_partitions_the_worst_one_is_unknown():
    assert lagging(*QUIET, *range(3100, 3200, 10), partitions=None).required_workers == 10


def test_the_sentence_names_the_worst_partition_if_the_sum_hides_it():
    assert "backlog time 0.0 s (61 s in the worst partition), input 1 000/s" in sentence(
        lagging(*QUIET, *range(2950, 3060, 10))
    )
    assert "(61 s in the worst partition)" in sentence(lagging(*QUIET, *range(5900, 6110, 10), hottest=2))
    assert "worst" not in sentence(lagging(*QUIET, 1000, 1050))


def learned(*records, minutes=0, partitions=25, backlog=0, hottest=None):
    """The load at which the fullest of ten workers fell behind. It has 3 of 25 partitions, which is 1.2 of the mean."""
    ticks = seen((*records, *(0,) * 4 * minutes), partitions, hottest, backlog)
    *_, (state, _) = replay(ticks, book(**BUSY | {"worker_capacity_records_per_s": 125.0}))
    return state.slow.fullest_ratio[0]


@pytest.mark.parametrize(
    ("records", "more", "ratio"),
    [
        pytest.param((*QUIET, *range(1300, 1400, 10)), {}, 0.96, id="35 s behind at 80 % of all: 96 % of the fullest"),
        pytest.param((*QUIET, *range(1100, 1200, 10)), {}, nan, id="30 s behind is in time"),
        pytest.param((*QUIET, *range(1300, 1400, 10)), {"backlog": 16_000}, 0.96, id="the others are 14.2 s behind"),
        pytest.param((*QUIET, *range(1300, 1400, 10)), {"backlog": 18_000}, nan, id="the others are 16.1 s behind"),
        pytest.param((*QUIET, *range(2600, 2700, 10)), {"hottest": 2}, 0.96, id="35 s at twice the mean rate"),
        pytest.param((*QUIET, *range(2200, 2300, 10)), {"hottest": 2}, nan, id="30 s at twice the mean rate"),
        pytest.param((*QUIET, *range(1400, 1300, -10)), {}, nan, id="it catches up"),
        pytest.param((*QUIET, *range(1600, 1700, 10)), {"partitions": 20}, 0.8, id="an even spread"),
        pytest.param((*QUIET, *range(1300, 1400, 10)), {"partitions": None}, nan, id="partitions are unknown"),
        pytest.param((*QUIET, *range(1300, 1400, 10)), {"minutes": 72}, 0.965, id="0.1 is forgotten a day"),
    ],
)
def test_s4_38_the_load_at_which_the_fullest_worker_fell_behind_is_learned(records, more, ratio):
    assert learned(*records, **more) == pytest.approx(ratio, abs=0.001, nan_ok=True)


def test_a_job_without_workers_has_no_load_while_a_partition_of_another_one_is_behind():
    ticks = [
        tick(
            15.0 * number,
            job(**flow(15.0 * number), **counts(10, partitions=25), highest_partition_backlog_records=waiting),
            job("shop/stopped", **flow(15.0 * number, throughput=0, growth=100), **counts(0)),
        )
        for number, waiting in enumerate((*QUIET, *range(1300, 1400, 10)))
    ]
    rules = Rules(policy="drain", worker_capacity_records_per_s=125.0)
    *_, (state, _) = replay(ticks, RuleBook(by_workload={JOB: rules, "shop/stopped": rules}))
    assert state.slow.fullest_ratio == pytest.approx([0.96, nan], abs=0.001, nan_ok=True)


@pytest.mark.parametrize(("ratio", "size"), [(nan, 23), (0.95, 23), (0.88, 26)])
def test_s4_37_a_size_leaves_the_fullest_worker_below_the_load_at_which_it_fell_behind(ratio, size):
    """25 workers carry the load; 23 have at most 8 of 180 partitions each as well, 26 have at most 7."""
    stage = stage_input(30, 20_000, 0, policy="drain", records=((30, 30_000),), partitions=180, fullest_ratio=ratio)
    assert drain.size(stage).needed_workers[0] == size


@dataclass
class Uneven(Fluid):
    """A job with one subtask of four times the mean load: 16 workers of 60/s carry 240/s, and 32 carry 480/s."""

    times: float = 4.0
    even_s: float = inf  # when its keys become even
    release_s: float = inf  # when a new release makes it faster
    faster: float = 3.0
    stage: str = ""  # that has this subtask
    more_rows: tuple = ()  # of another stage

    def skew(self):
        return self.times if self.at_s < self.even_s else 1.0

    def rows(self, workload):
        busiest = {"busiest_subtask_ratio": min(1.0, self.busy * self.skew())} | dict.fromkeys(self.missing(self.at_s))
        own = [*super().rows(workload), *job(workload, partitions=32.0), *job(workload, stage=self.stage, **busiest)]
        return [*own, *job(workload, stage="other", **dict(self.more_rows))]

    def run(self, seconds):
        for _ in range(seconds):
            self.each = 60.0 * (1.0 if self.at_s < self.release_s else self.faster)
            self.sink = lambda at_s: self.workers * self.each / self.skew()
            super().run(1)


UNEVEN = {  # the size after four hours of 300 records/s
    "uneven": ({}, 32),
    "even after two hours": ({"even_s": 7200.0}, 7),
    "uneven in a later stage": ({"stage": "later"}, 32),
    "faster after two hours": ({"release_s": 7200.0}, 16),
    "much faster after two hours": ({"release_s": 7200.0, "faster": 10.0}, 16),
}


def test_a_size_whose_busiest_subtask_fell_behind_is_not_tried_again_until_its_busy_time_allows_it():
    jobs = {name: Uneven(lambda at_s: 300.0, workers=32, pause_s=20.0, **more) for name, (more, _) in UNEVEN.items()}
    jobs["less uneven"] = Uneven(lambda at_s: 300.0, workers=32, pause_s=20.0, times=2.6)
    decided = closed_each(jobs, 14400, RuleBook(by_workload=dict.fromkeys(jobs, Rules(policy="drain"))))
    sizes = {name: [each.required_workers for each in history] for name, history in decided.items()}
    assert {name: set(sizes[name][120:240]) for name in UNEVEN} == {name: {32} for name in UNEVEN}
    assert {name: sizes[name][-1] for name in UNEVEN} == {name: size for name, (_, size) in UNEVEN.items()}
    assert sentence(decided["uneven"][-1]).endswith("; 16 workers carry 240/s at most")
    assert decided["even after two hours"][-1].too_small_workers is None
    assert sentence(decided["much faster after two hours"][-1]).endswith("; no backlog is expected within 15 min")
    # Another size may spread the keys a little worse: without an allowance for it, the target changes 16 times.
    assert sum(one != other for one, other in pairwise(sizes["less uneven"])) <= 6


LIGHT = (("throughput_records_per_s", 300.0), ("utilization_ratio", 0.02), ("busiest_subtask_ratio", 0.04))


def test_the_busy_time_of_a_light_stage_does_not_replace_a_missing_one():
    own = {"workers": 32, "pause_s": 20.0, "times": 1.9, "missing": lambda at_s: ("busiest_subtask_ratio",)}
    jobs = {name: Uneven(lambda at_s: 300.0, **own, more_rows=rows) for name, rows in {"a": (), "b": LIGHT}.items()}
    decided = closed_each(jobs, 3600, RuleBook(by_workload=dict.fromkeys(jobs, Rules(policy="drain"))))
    alone, beside = ([each.required_workers for each in history] for history in decided.values())
    assert beside[1:] == alone[1:]
