"""The options of a backtest, and the messages for invalid ones."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from adapter import cli, wiring
from adapter.backtest import command
from adapter.backtest.job import BacktestError
from adapter.backtest.units import Grid
from adapter.errors import ConfigError, SetupError


def grid(**changes: Any) -> Grid:
    return command.parse_grid(command.GridOptions(**{"policies": "drain", "profiles": "consumer-group", **changes}))


def test_a_policy_accepts_parameters() -> None:
    varied = "drain:target_utilization_ratio=0.9+backlog_time_target_s=120"

    assert grid(policies=f"drain,{varied},keda-30s").policies == ("drain", varied, "keda-30s")
    assert command.parse_policies(varied) == (varied,)
    assert command.parse_policies("drain:defaults+target_utilization_ratio=0.7")


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        pytest.param("", "--policy: expected at least one of drain, dataflow, ", id="no policy"),
        pytest.param(",", "--policy: expected at least one of drain, dataflow, ", id="a comma alone"),
        pytest.param(
            "drian", "--policy: there is no 'drian'; did you mean drain? there are drain, dataflow, ", id="a slip"
        ),
        pytest.param("dra", "there is no 'dra'; did you mean drain? there are drain, ", id="no such policy"),
        pytest.param("drain,zzz", "--policy: there is no 'zzz'; there are drain, dataflow, ", id="like no other"),
        pytest.param(
            "drain:utilisation=1", "drain:utilisation=1: there is no parameter 'utilisation'", id="no such one"
        ),
        pytest.param(
            "drain:foo=1", "no parameter 'foo'; `backlog-adapter schema` lists the parameters", id="nothing near"
        ),
        pytest.param(
            "drain:target_utilization_ratio=1.5",
            "expected target_utilization_ratio to be a number more than 0 and at most 1, got '1.5'",
            id="a parameter out of bounds",
        ),
        pytest.param("drain:rescale_pause_s=", "expected rescale_pause_s to be a number", id="a parameter of nothing"),
        pytest.param("drain:rescale_pause_s=nan", "expected rescale_pause_s to be a number", id="not a number"),
        pytest.param("drain:min_spare_workers=1.5", "expected min_spare_workers to be a whole number", id="not whole"),
        pytest.param(
            "drain: ", "--policy: expected drain, or drain:parameter=number, got 'drain:'", id="a colon alone"
        ),
        pytest.param("drain:+", "--policy: expected drain", id="a plus alone"),
        pytest.param(
            "keda-30s:", "--policy: keda-30s takes no parameters, got 'keda-30s:'", id="a colon after a baseline"
        ),
        pytest.param(
            "drain:defaults=1", "expected defaults without a number, got 'defaults=1'", id="a number of defaults"
        ),
        pytest.param("keda-30s:lag=1", "keda-30s takes no parameters", id="a baseline has no parameters"),
    ],
)
def test_an_invalid_policy_is_refused_with_a_remedy(requested: str, message: str) -> None:
    with pytest.raises(ConfigError) as result:
        command.parse_policies(requested)
    (fault,) = result.value.faults
    assert message in fault


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        pytest.param(
            {"profiles": "netflx"},
            "--profile: there is no 'netflx'; did you mean netflix? there are consumer-group, ",
            id="a profile with a slip",
        ),
        pytest.param(
            {"delays": "0,soon"},
            "--delay: expected a multiple of 15 s from 0 to 3600, got 'soon'",
            id="a delay that is no number",
        ),
        pytest.param(
            {"delays": "-1"}, "--delay: expected a multiple of 15 s from 0 to 3600, got '-1'", id="a delay before now"
        ),
        pytest.param(
            {"delays": "nan"}, "--delay: expected a multiple of 15 s from 0 to 3600, got 'nan'", id="a delay of NaN"
        ),
        pytest.param(
            {"delays": "20"}, "--delay: expected a multiple of 15 s from 0 to 3600, got '20'", id="a part of a tick"
        ),
    ],
)
def test_an_invalid_profile_or_delay_is_refused_with_valid_ones(requested: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as result:
        grid(**requested)
    (fault,) = result.value.faults
    assert fault.startswith(message)


def test_all_faults_of_a_grid_are_reported_at_once() -> None:
    with pytest.raises(ConfigError) as result:
        grid(policies="dra,dataflo", profiles="consumer", delays="0,soon")
    assert [fault.split(":")[0] for fault in result.value.faults] == [
        "--policy",
        "--policy",
        "--profile",
        "--delay",
    ]


@pytest.mark.parametrize(
    ("options", "result"),
    [
        ("--config a.yaml --profile netflix --seeds 1", "--profile, --seeds: only with --trace"),
        ("--config a.yaml --delay 0 --master local --out b", "--delay, --master, --out: only with --trace"),
        ("--config a.yaml --worker-capacity 9", "--worker-capacity: only with --trace"),
        ("--trace a.csv --from -1d --to now --workload a/b", "--from, --to, --workload: only with --config"),
        ("--trace a.csv --price 1 --currency USD", "--price, --currency: only with --report"),
    ],
    ids=[
        "a grid for a history",
        "a run for a history",
        "a capacity for a history",
        "a time for a load",
        "a price for a table",
    ],
)
def test_conflicting_options_are_refused(options: str, result: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["backtest", *options.split()])
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"backlog-adapter: {result}\n"


def test_a_worker_capacity_that_needs_too_many_workers_is_refused_with_the_least(tmp_path: Path) -> None:
    file = tmp_path / "load.csv"
    file.write_text("seconds,rate\n0,1500\n150,1500\n")

    def requested(capacity: float) -> object:
        options = command.GridOptions(
            policies="drain", profiles="consumer-group", worker_capacity_records_per_s=capacity
        )
        return command.read_request([file], options)

    for given in (0.01, 1e-320):
        with pytest.raises(
            ConfigError, match=r"^--worker-capacity: expected at least 0.3003 records/s, got .*: load with"
        ):
            requested(given)
    assert requested(0.3003)


def test_the_number_of_runs_is_stated_with_its_factors(tmp_path: Path) -> None:
    file = tmp_path / "load.csv"
    file.write_text("seconds,rate\n" + "".join(f"{hour * 3600},1500\n" for hour in range(6 * 24)))
    options = command.GridOptions(policies="drain,ds2", profiles="consumer-group", seeds=3)
    traces, grid = command.read_request([file], options)
    assert command.describe_runs(command.trace_backtest(traces, grid, tmp_path), grid) == (
        "12 runs: policies (2) x profiles (1) x delays (1) x seeds (3) x windows of at most four days (2)"
    )


def test_a_signal_while_spark_starts_is_no_fault_of_spark(tmp_path: Path) -> None:
    """`timeout` also ends the JVM, because its signal goes to the whole process group."""
    file, stop = tmp_path / "load.csv", Event()
    file.write_text("seconds,rate\n0,1500\n150,1500\n")
    traces, wanted = command.read_request([file], command.GridOptions(policies="drain", profiles="consumer-group"))
    backtest = command.trace_backtest(traces, wanted, tmp_path)

    @contextmanager
    def opened() -> Iterator[Any]:
        raise SetupError("Spark does not start with --master local[*,4]")
        yield

    with pytest.raises(SetupError, match="Spark does not start"):
        command.run(backtest, opened, stop)
    stop.set()
    with pytest.raises(BacktestError, match=r"^stopped: (\d+) of \1 runs are left; repeat the command to continue"):
        command.run(backtest, opened, stop)


def test_the_page_of_a_history_has_a_price_without_being_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["backtest", "--config", "nowhere.yaml", "--price", "1"])
    assert capsys.readouterr().err.startswith("backlog-adapter: nowhere.yaml: cannot be read")


def test_the_configuration_may_be_in_values_of_the_chart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(
        """
images: {registry: registry.example.com/team}
config:
  sources: {kafka: {kind: kafka, bootstrap_servers: "kafka:9092"}}
  workloads: [{namespace: shop, name: orders, read: [{source: kafka, group: orders, topics: [orders]}]}]
"""
    )
    with pytest.raises(SystemExit):
        cli.main(["backtest", "--config", str(file), "--report", str(tmp_path / "orders.html")])
    assert "shop/orders: no source in `read` stores past values" in capsys.readouterr().err


def test_faults_of_options_and_traces_are_reported_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["backtest", "--trace", str(tmp_path / "no.csv"), "--policy", "dra"])
    policy, file = capsys.readouterr().err.splitlines()
    assert "--policy: there is no 'dra'" in policy
    assert "no.csv: cannot be read: No such file" in file


def test_all_faults_of_traces_are_reported_at_once(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "orders.csv").write_text("seconds,rate\n0,1\n150,2\n")
    paths = [tmp_path / "none.csv", tmp_path / "one" / "orders.csv", tmp_path / "two" / "orders.csv"]
    with pytest.raises(ConfigError) as result:
        command.read_traces(paths)
    missing, twice = result.value.faults
    assert "No such file" in missing
    assert twice == f"{paths[2]}: there is another trace named orders; rename one of the files"


def test_a_file_named_twice_is_refused(tmp_path: Path) -> None:
    path, again = tmp_path / "orders.csv", tmp_path / ".." / tmp_path.name / "orders.csv"
    path.write_text("seconds,rate\n0,1\n150,2\n")
    with pytest.raises(ConfigError) as result:
        command.read_traces([path, again])
    assert result.value.faults == (f"{again}: is the same file as {path}; name it once",)


@pytest.mark.parametrize(
    ("given", "opened"),
    [
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://head:7077", "spark://head:7077"),
    ],
)
def test_a_local_task_is_retried_unless_the_master_sets_the_attempts(given: str, opened: str) -> None:
    assert wiring.with_retries(given) == opened


@pytest.mark.spark
def test_an_invalid_master_ends_the_command_with_a_message(
    tmp_path: Path,
) -> None:
    file, out = tmp_path / "load.csv", tmp_path / "out"
    file.write_text("seconds,rate\n0,1\n150,2\n")
    words = ["backtest", "--trace", str(file), "--master", "nope", "--out", str(out)]
    # In a process of its own: the tests of a run share one session, and a second one would be borrowed.
    done = subprocess.run([sys.executable, "-m", "adapter", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    result = done.stderr.splitlines()[-1]
    assert result.startswith("backlog-adapter: Spark does not start with --master nope: ")
    assert result.endswith(f"for details see {out / 'spark.log'}")
    assert "Traceback" not in done.stderr
    assert "Master must either be yarn or start with spark" in (out / "spark.log").read_text()


@pytest.mark.parametrize(
    ("options", "given"), [([], "neither"), (["--trace", "load.csv", "--config", "adapter.yaml"], "both")]
)
def test_either_traces_or_a_history_are_required(
    options: list[str], given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["backtest", *options])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"backtest: expected either --trace FILE or --config FILE, got {given}\n")


def test_an_invalid_trace_ends_the_command_with_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "load.csv"
    file.write_text("seconds,rate\n0,1\n60,-2\n")
    with pytest.raises(SystemExit) as ended:
        cli.main(["backtest", "--trace", str(file), "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"backlog-adapter: {file}:3: ")
