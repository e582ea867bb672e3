"""Units -> results on Spark: equal for any number of cores, and complete after a failure."""

import os
import re
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from backtest_folds import FOLDER, TRACES, UNITS, summed
from py4j.protocol import Py4JError

from adapter.backtest import job, results
from adapter.backtest.units import Unit, groups

pytestmark = pytest.mark.timeout(720)  # two children of at most CHILD_WITHIN_S each

HERE = Path(__file__).parent
CHILD_WITHIN_S = 300.0  # much longer than on an idle machine
GROUPS = groups(UNITS)
ALL = len(UNITS)


class Run:
    """Backtests in child processes; each leaves its files in a folder of its own and a mark for each unit folded.

    What a killed JVM leaves is in a temporary folder, whose name has a space and quotes.
    """

    def __init__(self, folder: Path) -> None:
        self.out, self.marks, self.temporary = folder / "out", folder / "marks", folder / 'it\'s "a" folder'
        for needed in (self.marks, self.temporary):
            needed.mkdir(parents=True, exist_ok=True)
        self.result: list[str] = []
        self.stderr = ""  # of the last one

    def of(self, master: str, *folds: str) -> list[str]:
        """One line a fold."""
        command = [sys.executable, str(HERE / "backtest_child.py"), master, str(self.out), *folds]
        path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
        env = os.environ | {FOLDER: str(self.marks), "PYTHONPATH": path, "TMPDIR": str(self.temporary)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHILD_WITHIN_S, env=env, check=False)
        assert done.returncode == 0, done.stderr
        self.stderr = done.stderr
        return done.stdout.splitlines()

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.out.iterdir()}

    def folded(self) -> dict[str, int]:
        """How often each unit was folded."""
        return {path.name: path.stat().st_size for path in self.marks.iterdir()}


@pytest.fixture(scope="module")
def one_core(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(tmp_path_factory.mktemp("one-core"))
    run.result = run.of("local[1,4]", "stopped", "summed", "summed")
    return run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


@pytest.mark.spark
def test_every_unit_has_the_result_of_its_function(
    one_core: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    for group in GROUPS:
        expected, found = summed(group, TRACES), results.load(one_core.out, group)
        assert found["seed"].tolist() == [unit.seed for unit in group]
        assert found["policy"].tolist() == [unit.policy for unit in group]
        assert found["cost"].tolist() == expected["cost"].tolist()
        assert found["random"].tolist() == expected["random"].tolist()


@pytest.mark.spark
def test_a_lost_worker_is_replaced_and_two_cores_give_equal_results(one_core: Run, run: Run) -> None:
    assert run.of("local[2,4]", "dies_once")[0].endswith(f"{ALL}/{ALL}")
    assert "died" in run.folded()
    assert run.files() == one_core.files()


@pytest.mark.spark
def test_a_failed_group_is_named_and_the_next_run_repeats_only_it(one_core: Run, run: Run) -> None:
    failed, mended = run.of("local[2,4]", "dies_always", "summed")
    baselines = sum(unit.policy == "static-peak" for unit in UNITS)
    assert f"{baselines // 2} runs (trace hour; policy static-peak; profile consumer-group): " in failed
    assert failed.startswith("BacktestError: ")
    assert failed.endswith(f"; all other results are stored in {run.out}")
    assert mended.split()[0] == f"{ALL - baselines}/{ALL}"
    assert run.folded() == dict.fromkeys((unit.id for unit in UNITS), 1)
    assert run.files() == one_core.files()


@pytest.mark.spark
def test_a_stopped_run_resumes_without_repeating_units(one_core: Run) -> None:
    stopped, resumed, again = one_core.result
    left = re.fullmatch(
        rf"BacktestError: stopped: (\d+) of {ALL} runs are left; repeat the command to continue", stopped
    )
    assert left
    assert 0 < int(left[1]) < ALL
    assert resumed.split()[0] == f"{ALL - int(left[1])}/{ALL}"
    assert resumed.split()[-1] == again == f"{ALL}/{ALL}"


@pytest.mark.spark
def test_a_stopped_run_whose_jvm_was_killed_ends_with_the_same_error(run: Run) -> None:
    (stopped,) = run.of("local[1,4]", "killed")
    assert re.fullmatch(r"BacktestError: stopped: \d+ of \d+ runs are left; repeat the command to continue", stopped)
    assert list(run.temporary.glob("spark-*")), "Spark's files are not in TMPDIR"
    assert run.stderr == ""


@pytest.mark.spark
@pytest.mark.full
def test_a_run_of_more_groups_than_threads_ends_when_it_is_stopped(run: Run) -> None:
    (stopped,) = run.of("local[1,4]", "crowd-stopped")
    assert re.fullmatch(r"BacktestError: stopped: \d+ of \d+ runs are left; repeat the command to continue", stopped)


def test_a_worker_with_other_code_refuses_to_work() -> None:
    traces: Any = SimpleNamespace(value=TRACES)  # a Broadcast, as a worker has it
    with pytest.raises(job.BacktestError, match="another release of backlog-adapter or numpy than the driver"):
        list(job.GroupTask(units=GROUPS[0], traces=traces, release="older")(iter([])))


def test_a_group_that_cannot_be_written_does_not_affect_others(tmp_path: Path) -> None:
    name = save(tmp_path / "other", GROUPS[0])
    (tmp_path / f".{name}.part").symlink_to("/dev/full")
    running: dict[Future[bytes], tuple[Unit, ...]] = {}
    for group in GROUPS:
        ended: Future[bytes] = Future()
        ended.set_result(results.encode(group, {"cost": np.ones(len(group))}))
        running[ended] = group
    with pytest.raises(results.ResultsError, match="No space left on device"):
        job.collect(running, ALL, tmp_path, lambda done, total: None, Event())
    assert set(results.missing(tmp_path, UNITS)) == set(GROUPS[0])


def test_a_failed_group_is_named_with_its_causes_in_java(tmp_path: Path) -> None:
    failed: Future[bytes] = Future()
    failed.set_exception(Py4JError("An error occurred while calling o7.collect.\n: java.io.EOFException\n\tat spark"))

    (sentence,) = job.collect({failed: GROUPS[0]}, ALL, tmp_path, lambda done, total: None, Event())
    assert sentence.endswith(": java.io.EOFException")


def test_a_full_disk_is_reported_and_old_results_stay(tmp_path: Path) -> None:
    group, other = GROUPS[:2]
    save(tmp_path, group)
    name = save(tmp_path / "other", other)
    (tmp_path / f".{name}.part").symlink_to("/dev/full")
    with pytest.raises(results.ResultsError, match=r"cannot be written \(No space left on device\); free some space"):
        save(tmp_path, other)
    assert results.missing(tmp_path, [*group, *other]) == other
    save(tmp_path, other)
    assert results.missing(tmp_path, [*group, *other]) == ()


def test_an_unwritable_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(results.ResultsError, match="results cannot be written here"):
        results.open_folder(tmp_path / "file" / "out")


def test_a_file_that_is_not_a_result_is_named(tmp_path: Path) -> None:
    name = save(tmp_path, GROUPS[0])
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:100])
    with pytest.raises(
        results.ResultsError, match=f"{name} is not a file of results .*; remove it and repeat the command"
    ):
        results.finished_ids(tmp_path)


def test_a_file_that_was_half_written_does_not_count(tmp_path: Path) -> None:
    (tmp_path / ".units-0123.parquet.part").write_bytes(b"PAR1")
    assert results.finished_ids(tmp_path) == frozenset()


def test_named_columns_are_read_beside_files_of_an_older_version(tmp_path: Path) -> None:
    """The rows have the order of the units, whatever the order of the files."""
    older, *groups_now = GROUPS
    save(tmp_path, older)
    for number, group in enumerate(groups_now):
        values = np.array([[number, place] for place in range(len(group))], float)
        results.save(tmp_path, group, results.encode(group, {"new": values, "unread": np.ones(len(group))}))
    wanted = [unit for group in reversed(groups_now) for unit in reversed(group)]
    found = results.load(tmp_path, wanted, ["new"])
    assert list(found) == ["id", "new"]
    assert found["id"].tolist() == [unit.id for unit in wanted]
    numbered = reversed(list(enumerate(groups_now)))
    assert found["new"].tolist() == [[at, place] for at, group in numbered for place in reversed(range(len(group)))]


def save(folder: Path, group: tuple[results.Unit, ...]) -> str:
    """The name of the file that the group's results are in now."""
    before = {path.name for path in results.open_folder(folder).iterdir()}
    results.save(folder, group, results.encode(group, {"cost": np.ones(len(group))}))
    return next(path.name for path in folder.iterdir() if path.name not in before)
