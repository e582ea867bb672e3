"""What may be asked of a backtest, and what is said of what may not."""

from pathlib import Path

import pytest

from adapter import cli
from adapter.backtest import command
from adapter.errors import ConfigError


def test_a_policy_may_be_asked_for_with_other_parameters() -> None:
    varied = "drain:target_utilization_ratio=0.9+backlog_time_target_s=120"

    assert command.grid(f"drain,{varied},keda-30s", "consumer-group", None, 1).policies == ("drain", varied, "keda-30s")
    assert command.policies(varied) == (varied,)
    assert command.policies("") == ()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        pytest.param("dra", "there is no 'dra'; did you mean drain? there are drain, ", id="no such policy"),
        pytest.param(
            "drain:utilisation=1", "drain:utilisation=1: there is no parameter 'utilisation'", id="no such one"
        ),
        pytest.param(
            "drain:target_utilization_ratio=1.5",
            "expected a number for target_utilization_ratio (gt 0, le 1), got '1.5'",
            id="a parameter out of bounds",
        ),
        pytest.param("drain:rescale_pause_s=", "expected a number for rescale_pause_s", id="a parameter of nothing"),
        pytest.param("drain:rescale_pause_s=nan", "expected a number for rescale_pause_s", id="a number that is none"),
        pytest.param("keda-30s:lag=1", "keda-30s takes no parameters", id="a rival is what it is"),
    ],
)
def test_a_policy_that_cannot_be_run_is_told_with_what_would_mend_it(asked: str, said: str) -> None:
    with pytest.raises(ConfigError) as told:
        command.policies(asked)
    assert said in str(told.value)


def test_all_faults_of_a_question_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as told:
        command.grid("dra,dataflo", "consumer", "0,soon", 0)
    assert [fault.split(":")[0] for fault in told.value.faults] == [
        "--policy",
        "--policy",
        "--profile",
        "--delay",
        "--seeds",
    ]


@pytest.mark.parametrize("options", [[], ["--trace", "load.csv", "--config", "adapter.yaml"]])
def test_either_loads_or_a_history_are_asked_for(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["backtest", *options])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "backlog-adapter: backtest: expected either --trace FILE or --config FILE\n"


def test_a_load_that_is_none_ends_the_command_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "load.csv"
    file.write_text("seconds,rate\n0,1\n60,-2\n")
    with pytest.raises(SystemExit) as ended:
        cli.main(["backtest", "--trace", str(file), "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"backlog-adapter: {file}:3: ")
