"""A job that its sink slows down, and one whose hottest stage is not the one that decides."""

import numpy as np
from builders import JOB, TICK_S, Fluid, book, closed, counts, history, job, tick


def test_a_throughput_below_the_capacity_corrects_the_expected_backlog():
    slow = Fluid(lambda at_s: 330.0, workers=10, each=100.0, sink=lambda at_s: 120.0 if at_s >= 900 else np.inf)
    rules = book(policy="drain", max_workers=10)
    found = [decision for decision in closed(slow, 1080, rules) if decision.at_s >= 930]
    outrun = [d for d in found if d.input_rate_records_per_s > 1.5 * d.throughput_records_per_s]
    assert outrun, "the input exceeds the throughput"
    assert all(d.keep_behind_s > 600 for d in outrun if d.keep_behind_s is not None)
    assert any(d.keep_behind_s is not None for d in outrun)


def test_the_utilization_that_is_served_is_that_of_the_hottest_stage():
    def stages(at_s):
        load = {"throughput_records_per_s": 1000.0, "backlog_records": 0.0}
        source = job(JOB, "source", **load | {"backlog_records": 60_000.0}, utilization_ratio=0.35)
        return [*source, *job(JOB, "join", **load, utilization_ratio=0.98), *job(JOB, **counts(5))]

    ticks = [tick(at_s, stages(at_s)) for at_s in np.arange(0, 121, TICK_S).tolist()]
    last = history(ticks, book())[-1]
    assert (last.stage, last.utilization_ratio) == ("source", 0.98)
