"""Offsets that are committed in steps look like a backlog. It is no reason for more workers."""

from dataclasses import dataclass, field
from functools import cache
from itertools import product
from math import nan

import numpy as np
import pytest
from builders import JOB, Fluid, book, column, counts, history, history_each, job, tick

from adapter.core.commit_steps import commit_age_s, waiting_records
from adapter.core.decisions import Reason
from adapter.core.engine import advance
from adapter.core.report import rows
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.state import EMPTY

INPUT, EACH = 1000.0, 200.0  # records/s; of ten workers, each carries 200: seven are enough with the headroom
INTERVALS_S = (5, 10, 15, 20, 30, 45, 60)
PHASES_S = (0, 3, 6, 9, 12, 14)  # of the commits, relative to the ticks every 15 s
NAMES = {
    f"shop/{interval_s}-{phase_s}-{known}": (interval_s, phase_s, known)
    for interval_s in INTERVALS_S
    for phase_s in PHASES_S
    for known in (True, False)
}


def sample(name: str, at_s: float, workers: int):
    interval_s, phase_s, known = NAMES[name]
    committed_s = max((at_s - phase_s) // interval_s * interval_s + phase_s, 0.0)
    return job(
        name,
        **counts(workers),
        processed_records=INPUT * committed_s,
        appended_records=INPUT * at_s,
        backlog_records=INPUT * (at_s - committed_s),
        **({"utilization_ratio": min(1.0, INPUT / (EACH * workers))} if known else {}),
    )


def sizes():
    """The workers of each job over three hours under `drain`, which starts with ten."""
    book = RuleBook(by_workload=dict.fromkeys(NAMES, Rules(policy="drain", rescale_pause_s=10.0)))
    state, sizes = EMPTY, {name: [10] for name in NAMES}
    for at_s in np.arange(0.0, 3 * 3600.0, 15.0):
        state, decided = advance(state, tick(at_s, *(sample(name, at_s, sizes[name][-1]) for name in NAMES)), book)
        for each in rows(decided):
            sizes[each.workload].append(int(each.required_workers or sizes[each.workload][-1]))
    return sizes


@pytest.mark.simulation
def test_drain_does_not_scale_up_a_steady_job_again_and_again():
    """Once, because at the start three points of the steps may look like a rise.

    A job whose workers are half idle scales down, although each tick sees a backlog time of 12 s: it commits every
    15 s, 3 s after the tick.
    """
    found = sizes()
    assert {name for name, each in found.items() if np.count_nonzero(np.diff(each) > 0) > 1 or max(each) > 22} == set()
    assert found["shop/15-3-True"][-1] == 7


NEARLY = [(15, 14), (15, 14.5), (30, 25), (30, 28), (30, 30), (60, 50)]


@cache
def most_workers(tick_s):
    """The most workers of a job by interval between commits, for the intervals of NEARLY with these ticks."""
    committed_s = {
        interval_s: np.cumsum(interval_s + 0.3 * np.random.default_rng(7).standard_normal(1000))
        for each_s, interval_s in NEARLY
        if each_s == tick_s
    }
    workers = {str(interval_s): 10 for interval_s in committed_s}
    rules = RuleBook(by_workload=dict.fromkeys(workers, Rules(policy="drain", rate_window_s=max(60.0, 2.0 * tick_s))))

    def sample(interval_s, at_s):
        processed = 0.7 * INPUT * max((each for each in committed_s[interval_s] if each <= at_s), default=0.0)
        load = {"processed_records": processed, "appended_records": 0.7 * INPUT * at_s, "partitions": 60.0}
        present = workers[str(interval_s)]
        waits = {"backlog_records": 0.7 * INPUT * at_s - processed, "utilization_ratio": 7 / present}
        return job(str(interval_s), **counts(present), **load, **waits)

    state = EMPTY
    for at_s in np.arange(0.0, 3600.0, tick_s).tolist():
        state, decided = advance(state, tick(at_s, *(sample(each, at_s) for each in committed_s)), rules)
        for each in rows(decided):
            workers[each.workload] = max(workers[each.workload], int(each.required_workers or 0))
    return workers


@pytest.mark.simulation
@pytest.mark.parametrize(("tick_s", "interval_s"), NEARLY)
def test_commits_nearly_as_far_apart_as_ticks_do_not_scale_up_a_steady_job(tick_s, interval_s):
    """Each tick shows a commit, so the backlog between commits rises slowly, by up to a tick, and then falls."""
    assert most_workers(tick_s)[str(interval_s)] == 10


def test_a_backlog_over_the_target_counts_however_far_apart_the_ticks_are():
    """A steady backlog of 45 s, a target of 30 s, and ticks every 60 s."""
    load = {"processed_records": 1000.0, "appended_records": 1000.0}
    ticks = [
        tick(at_s, job(**counts(), **{name: each * at_s for name, each in load.items()}, backlog_records=45_000.0))
        for at_s in np.arange(0.0, 3600.0, 60.0)
    ]
    found = history(ticks, book(policy="drain", rate_window_s=120.0, backlog_time_target_s=30.0))
    assert {each.short_backlog_time_s for each in found} == {10.0, 30.0}
    assert found[-1].required_workers > 10


COUNTED = list(product((0.0, 400.0), (15, 30, 45, 60)))  # growth, interval_s


@cache
def without_a_count_of_the_input():
    """The backlog between two commits would otherwise count as growth, and double the input."""

    def seen(case, at_s):
        grows, interval_s = case
        committed = INPUT * (at_s // interval_s * interval_s)
        return {**counts(), "processed_records": committed, "backlog_records": (INPUT + grows) * at_s - committed}

    return history_each(COUNTED, seen, range(0, 1200, 15), lambda _: {"policy": "drain"})


@pytest.mark.parametrize(("grows", "interval_s"), COUNTED)
def test_without_a_count_of_the_input_the_committed_and_waiting_records_show_it(grows, interval_s):
    decided = without_a_count_of_the_input()[grows, interval_s][-20:]
    assert [each.input_rate_records_per_s for each in decided] == pytest.approx([INPUT + grows] * 20)


STEP_AT_S, STEP_TO = 1800, 3000.0  # records/s; fifteen workers carry it
SETTINGS = {
    "short": Rules(policy="drain", rescale_pause_s=10.0),
    "long": Rules(policy="drain", rescale_pause_s=60.0, metric_delay_s=15.0),
}


@dataclass
class Committer:
    """A simulated job that commits its offsets every interval_s, for the first time at first_s."""

    running: Fluid
    interval_s: float
    rules: Rules
    first_s: float = 0.0
    committed: float = 0.0
    commits: int = 0

    def commit(self, at_s):
        """Commit if it is time."""
        if (at_s - self.first_s) // self.interval_s >= self.commits:
            self.committed, self.commits = self.running.processed, self.commits + 1

    def sample(self, name, facts):
        """Its present samples, with committed offsets."""
        return job(
            name,
            **counts(self.running.workers),
            processed_records=self.committed,
            appended_records=self.running.appended,
            backlog_records=self.running.appended - self.committed,
            **facts,
        )


def ticks_of(jobs, until_s, **facts):
    """Run jobs side by side; yields after each tick."""
    state, book = EMPTY, RuleBook(by_workload={name: each.rules for name, each in jobs.items()})
    for at_s in range(until_s):
        for each in jobs.values():
            each.commit(at_s)
        if at_s % 15 == 0:
            seen = [each.sample(name, facts) for name, each in jobs.items()]
            state, decided = advance(state, tick(float(at_s), *seen), book)
            for each in rows(decided):
                jobs[each.workload].running.scale(each.required_workers)
            yield
        for each in jobs.values():
            each.running.run(1)


STEPS = list(product(INTERVALS_S, SETTINGS, (INPUT, 0.0)))


def sizes_after_a_step():
    """The workers that jobs, which commit at different times, have half an hour after a step of the input."""

    def committer(case, phase_s):
        interval_s, setting, before = case
        running = Fluid(lambda at_s: before if at_s < STEP_AT_S else STEP_TO, each=EACH)
        return Committer(running, interval_s, SETTINGS[setting], phase_s)

    jobs = {
        f"shop/{number}-{phase_s}": committer(case, phase_s)
        for number, case in enumerate(STEPS)
        for phase_s in PHASES_S
    }
    for _ in ticks_of(jobs, 2 * STEP_AT_S):
        pass
    return {
        case: [jobs[f"shop/{number}-{phase_s}"].running.workers for phase_s in PHASES_S]
        for number, case in enumerate(STEPS)
    }


@pytest.mark.simulation
def test_drain_follows_a_step_of_the_input_whenever_offsets_are_committed():
    assert {case: each for case, each in sizes_after_a_step().items() if min(each) < 15} == {}


WAVE_S = 2 * 3600.0
RARE_S = (30, 60, 59.7, 61.3)


def needed_workers():
    """Of jobs without utilization, by the interval of their commits: the mean workers, and the longest backlog time."""
    jobs = {
        f"shop/{interval_s}-{phase_s}": Committer(
            Fluid(lambda at_s: 500 + 300 * np.sin(2 * np.pi * at_s / WAVE_S), workers=12, each=100.0, pause_s=10.0),
            interval_s,
            Rules(policy="drain"),
            phase_s,
        )
        for interval_s in (5, *RARE_S)
        for phase_s in (0, 3, 9)
    }
    workers, behind_s = {name: [] for name in jobs}, dict.fromkeys((5, *RARE_S), 0.0)
    for _ in ticks_of(jobs, int(2 * WAVE_S), partitions=24.0):
        for name, each in jobs.items():
            running = each.running
            workers[name].append(running.workers)
            waits_s = (running.appended - running.processed) / running.load(running.at_s)
            behind_s[each.interval_s] = max(behind_s[each.interval_s], waits_s)
    most = dict.fromkeys(behind_s, 0.0)
    for name, each in jobs.items():
        most[each.interval_s] = max(most[each.interval_s], np.mean(workers[name]))
    return most, behind_s


@pytest.mark.simulation
def test_rare_commits_need_few_more_workers_without_utilization():
    """A backlog that commits leave, and that falls as they drift relative to the ticks, shows no full workers."""
    workers, behind_s = needed_workers()
    assert max(workers.values()) < 1.2 * workers[5]
    assert max(behind_s.values()) < 90


STREAMS_S = 30  # `commit.interval.ms` of Kafka Streams, unless it processes exactly once
GROUPS = {f"shop/{members}-{known}": (members, known) for members in (2, 5, 12, 24) for known in (True, False)}
LEVELS = (400, 800, 300, 900, 500)  # records/s, each for half an hour
LOADS = {
    "wave": lambda at_s: 500 + 300 * np.sin(2 * np.pi * at_s / WAVE_S),
    "steps": lambda at_s: LEVELS[int(at_s // 1800)],
}


@dataclass
class Group:
    """A simulated job of a consumer group. Each member commits at its own time, and all before a rescale."""

    running: Fluid
    members: int
    reports_utilization: bool
    processed: list[float] = field(default_factory=lambda: [0.0])  # at each second
    rescaled_s: int = 0

    def run(self):
        """Advance by a second."""
        self.running.run(1)
        self.processed.append(self.running.processed)

    def scale(self, workers):
        """Scale to a number of workers; None changes nothing."""
        if workers not in (None, self.running.workers):
            self.rescaled_s = len(self.processed) - 1
        self.running.scale(workers)

    def sample(self, name):
        """Its present samples, with committed offsets."""
        phases_s = np.random.default_rng([self.members, self.rescaled_s]).uniform(0, STREAMS_S, self.members)
        commits_s = (len(self.processed) - 1 - phases_s) // STREAMS_S * STREAMS_S + phases_s
        committed = np.mean([self.processed[max(int(commit_s), self.rescaled_s)] for commit_s in commits_s])
        known = {"utilization_ratio": self.running.busy} if self.reports_utilization else {}
        return job(
            name,
            **counts(self.running.workers),
            processed_records=committed,
            appended_records=self.running.appended,
            backlog_records=self.running.appended - committed,
            partitions=24.0,
            **known,
        )


def most_workers_of_groups(load):
    """The most workers of each group within two hours, which begin ten minutes after the start."""
    groups = {name: Group(Fluid(LOADS[load], workers=12, pause_s=10.0), *each) for name, each in GROUPS.items()}
    state, most = EMPTY, dict.fromkeys(GROUPS, 12)
    book = RuleBook(by_workload=dict.fromkeys(GROUPS, Rules(policy="drain")))
    for at_s in range(int(1.25 * WAVE_S)):
        if at_s >= 600 and at_s % 15 == 0:
            state, decided = advance(state, tick(at_s, *(group.sample(name) for name, group in groups.items())), book)
            for each in rows(decided):
                groups[each.workload].scale(each.required_workers)
                most[each.workload] = max(most[each.workload], groups[each.workload].running.workers)
        for group in groups.values():
            group.run()
    return most


@pytest.mark.simulation
def test_members_that_commit_at_their_own_times_do_not_add_workers():
    """800/s at most: ten workers of 100/s carry it with the headroom. A rise of the input is no backlog that rises."""
    assert most_workers_of_groups("wave") == dict.fromkeys(GROUPS, 12)


@pytest.mark.simulation
def test_a_step_of_the_input_adds_no_workers_to_members_that_commit_at_their_own_times():
    """With two members the counter stands still between their commits, and only the backlog shows the step.

    With utilization, `drain` scales down before a step, which then fills the workers.
    """
    names = [name for name, (members, known) in GROUPS.items() if members > 2 and not known]
    most = most_workers_of_groups("steps")
    assert {name: most[name] for name in names} == dict.fromkeys(names, 12)


MEMBERS = (5, 12, 24)


@cache
def sizes_of_groups():
    """The workers of each group of MEMBERS by second. At 1800 s the input rises to 130 % of what ten carry."""

    def group(members):
        return Group(Fluid(lambda at_s: 900.0 if at_s < STEP_AT_S else 1300.0, pause_s=10.0), members, False)

    groups = {str(members): group(members) for members in MEMBERS}
    book = RuleBook(by_workload=dict.fromkeys(groups, Rules(policy="drain", min_workers=10)))
    state, sizes = EMPTY, {name: [] for name in groups}
    for at_s in range(STEP_AT_S + 120):
        if at_s >= 600 and at_s % 15 == 0:
            state, decided = advance(state, tick(at_s, *(each.sample(name) for name, each in groups.items())), book)
            for each in rows(decided):
                groups[each.workload].scale(each.required_workers)
        for name, each in groups.items():
            sizes[name].append(each.running.workers)
            each.run()
    return sizes


@pytest.mark.simulation
@pytest.mark.parametrize("members", MEMBERS)
def test_members_that_commit_at_their_own_times_get_more_workers_soon(members):
    sizes = sizes_of_groups()[str(members)]
    assert set(sizes[: STEP_AT_S + 1]) == {10}
    assert sizes[-1] >= 13


EXCESSES = (1.005, 1.01, 1.015, 1.019, 1.03)


@pytest.mark.simulation
def test_jobs_that_fall_behind_slowly_keep_the_target():
    """At 1800 s the input rises to slightly more than what ten workers carry. They report no utilization."""
    rules = Rules(policy="drain", min_workers=10, rescale_pause_s=30.0)
    jobs = {
        f"shop/{above}": Committer(
            Fluid(lambda at_s, above=above: 900.0 if at_s < STEP_AT_S else 1000.0 * above, pause_s=30.0), 1, rules
        )
        for above in EXCESSES
    }
    behind_s = dict.fromkeys(jobs, 0.0)
    for _ in ticks_of(jobs, STEP_AT_S + 9000):
        for name, each in jobs.items():
            waits_s = (each.running.appended - each.running.processed) / each.running.load(each.running.at_s)
            behind_s[name] = max(behind_s[name], waits_s)
    assert min(each.running.workers for each in jobs.values()) > 10
    assert max(behind_s.values()) <= 60


@pytest.mark.simulation
def test_records_that_no_consumer_can_read_do_not_add_workers():
    """400/s, ten workers of 100/s and 6 000 records that never go, as the markers of transactions."""
    running = Fluid(lambda at_s: 400.0, workers=10, each=100.0, pause_s=10)
    state, book, largest = EMPTY, RuleBook(by_workload={JOB: Rules(policy="drain", rescale_pause_s=10.0)}), 0
    for at_s in np.arange(0.0, 4 * 3600.0, 60.0).tolist():
        waiting = running.appended - running.processed + 6000
        seen = {"appended_records": running.appended + 6000, "processed_records": running.processed}
        one = job(**counts(running.workers), **seen, backlog_records=waiting, utilization_ratio=running.busy)
        state, decided = advance(state, tick(at_s, one), book)
        running.scale(rows(decided)[0].required_workers)
        running.run(60)
        largest = max(largest, running.workers)
    assert (largest, running.workers) == (10, 6)


STOPPED = list(product((5, 20, 30), (60.0, 120.0, 300.0)))


@cache
def stopped():
    """The decisions on jobs that stop at 1800 s. A sample that repeats the one before is no sign of a stop."""

    def seen(case, at_s):
        passed = INPUT * (min(at_s - 15 if at_s == 1500 else at_s, 1800) // case[0] * case[0])
        load = {"processed_records": passed, "appended_records": INPUT * at_s}
        return counts(10) | load | {"backlog_records": INPUT * at_s - passed}

    return history_each(STOPPED, seen, range(0, 2401, 15), lambda case: {"rate_window_s": case[1]})


@pytest.mark.parametrize("case", STOPPED)
def test_a_job_that_stops_is_stuck_soon_and_stays_so_beside_jobs_with_longer_windows(case):
    found = stopped()[case]
    assert {d.reason for d in found if 300 <= d.at_s <= 1800} <= {Reason.HOLD, Reason.DOWN, Reason.NOT_ENACTED}
    assert {d.reason for d in found if d.at_s >= 2010} == {Reason.STUCK}


# Counters of processed records, read at each tick, in which 150 records arrive: those that certainly wait.
WAITING = {
    "a commit processes all": ([0, 0, 0, 450, 450, 450, 900], 0, [nan, nan, nan, nan, 0, 0, nan]),
    "commits leave a backlog": ([0, 0, 0, 450, 450, 450, 900], 200, [nan, nan, nan, nan, 50, 50, nan]),
    "a backlog falls": ([0, 0, 600, 600, 600, 1200, 1200], 900, [nan, nan, nan, 450, 450, nan, 300]),
    "members of a group are read at two points": ([0, 0, 150, 300, 300, 300, 450], 0, [nan] * 4 + [0, 0, nan]),
    "the first sample after a gap": ([0, 0, nan, 300, 300, 450, 450], 0, [nan] * 6 + [150]),
    "the counter rises at every tick": ([0, 150, 300, 450, 600, 750, 900], 30, [30] * 7),
    "one interruption": ([0, 150, 300, 300, 300, 300, 900], 30, [30, 30, 30, 180, 330, 480, 30]),
    "the counter never rises": ([0, 0, 0, 0, 0, 0, 0], 30, [30, 180, 330, 480, 630, 780, 930]),
}


@pytest.mark.parametrize(("processed", "before", "expected"), WAITING.values(), ids=WAITING)
def test_what_was_processed_since_the_last_commit_does_not_wait(processed, before, expected):
    counter = column(*processed)[:, None]
    backlog = before + 150.0 * np.arange(len(counter))[:, None] - counter
    assert waiting_records(backlog, counter)[:, 0] == pytest.approx(column(*expected), nan_ok=True)


# Counters of appended and processed records at five ticks, and how old the last committed record is at each.
COMMIT_AGES = {
    "a steady input": ([0, 150, 300, 450, 600], [0, 150, 150.5, 300, 450], [nan, 0, 14.95, 15, 15]),
    "the input rises": ([0, 150, 450, 900, 1500], [0, 75, 225, 450, 900], [nan, 7.5, 11.25, 15, 15]),
    "a full job": ([0, 300, 600, 900, 1200], [0, 150, 300, 450, 600], [nan, 7.5, 15, 22.5, 30]),
    "older than the points": ([900, 1050, 1200, 1350, 1500], [0, 150, 300, 450, 960], [nan] * 4 + [54]),
    "a commit of all members": ([0, 150, 300, 450, 600], [0, 150, 150, 150, 600], [nan] * 5),
    "a gap": ([0, 150, nan, 450, 600], [0, 75, nan, 300, 450], [nan, 7.5, nan, nan, 15]),
}


@pytest.mark.parametrize(("appended", "processed", "expected"), COMMIT_AGES.values(), ids=COMMIT_AGES)
def test_the_age_of_the_last_committed_record(appended, processed, expected):
    counter = column(*processed)[:, None]
    age_s = commit_age_s(15.0 * np.arange(5), column(*appended)[:, None] - counter, counter)
    assert age_s[:, 0] == pytest.approx(column(*expected), nan_ok=True)


def test_a_backlog_that_is_scraped_rarely_waits():
    """Without new samples, input and progress stand still together."""
    backlog, counter = column(900, 900, 600, 600, 300, 300)[:, None], column(0, 0, 600, 600, 1200, 1200)[:, None]
    assert np.array_equal(waiting_records(backlog, counter), backlog)


def test_a_backlog_that_is_read_apart_from_the_counter_waits():
    """The counter is scraped every 60 s, the backlog at every tick."""
    backlog, counter = 1500.0 * np.arange(9)[:, None], column(0, *[900] * 4, *[1800] * 4)[:, None]
    assert np.array_equal(waiting_records(backlog, counter), backlog)


@pytest.mark.simulation
def test_a_full_job_whose_counter_is_scraped_rarely_is_not_late():
    """1 100/s, ten workers of 100/s without utilization."""
    running, state, scraped, behind_s = Fluid(lambda at_s: 1100.0, pause_s=10.0), EMPTY, 0.0, 0.0
    for at_s in range(0, 1801, 15):
        scraped, waits = running.processed if at_s % 60 == 0 else scraped, running.appended - running.processed
        load = {"processed_records": scraped, "appended_records": running.appended, "backlog_records": waits}
        seen = tick(float(at_s), job(**counts(running.workers), **load, partitions=48.0))
        state, decided = advance(state, seen, book(policy="drain", rescale_pause_s=10.0))
        running.scale(rows(decided)[0].required_workers)
        running.run()
        behind_s = max(behind_s, waits / 1100.0)
    assert behind_s < 45
