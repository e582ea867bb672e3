"""The options of the command itself, and `check`. The other subcommands are tested with the code that they start."""

import io
from contextlib import redirect_stderr
from pathlib import Path
from typing import get_args

import pytest
import structlog
import yaml

from adapter import __version__, cli
from adapter.config import ChartValues, chart_values, parse
from adapter.options import Duration

EXAMPLES = Path(__file__).parents[1] / "examples"
CHART = Path(__file__).parents[1] / "charts" / "backlog-adapter"
VALID = """
sources: {kafka: {kind: kafka, bootstrap_servers: "broker:9092"}}
workloads: [{name: orders, read: [{source: kafka, group: orders, topics: [orders]}]}]
pipeline: {checkpoint: /tmp/checkpoint}
"""


def test_version_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"backlog-adapter {__version__}\n")


def test_a_line_of_the_log_goes_to_the_stderr_of_its_time() -> None:
    """The live table of `run` replaces stderr, so that the lines stand above the table."""
    log = structlog.get_logger("access")
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    with redirect_stderr(io.StringIO()) as replaced:
        log.warning("request", code=503)
    assert "code=503" in replaced.getvalue()


def test_check_says_that_a_configuration_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(VALID)
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", "--config", str(file)])
    assert (ended.value.code, capsys.readouterr().out) == (
        0,
        f"{file} is a valid configuration: 1 source, 1 workload, 0 fleets\n",
    )


@pytest.mark.parametrize("example", ["config.yaml", "values.yaml"])
def test_check_needs_none_of_the_files_that_are_mounted_in_the_pod(
    example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", "--config", str(EXAMPLES / example)])
    assert (ended.value.code, capsys.readouterr().err) == (0, "")


def test_check_prints_every_fault_with_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(VALID.replace("source: kafka", "source: kafak") + "timing: {tick_s: soon}\n")
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", "--config", str(file)])
    faults = capsys.readouterr().err
    assert ended.value.code == 2
    assert "timing.tick_s: " in faults
    assert "kafak" in faults


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ("run --for 0s", "--for: expected a duration of more than 0, such as 120s, 2m or 1h, got '0s'"),
        ("run --for soon", "--for: expected a duration of more than 0, such as 120s, 2m or 1h, got 'soon'"),
        ("run --port 99999", "--port: expected a port from 0 to 65535, got '99999'"),
        ("run --port http", "--port: expected a port from 0 to 65535, got 'http'"),
        ("backtest --worker-capacity abc", "--worker-capacity: expected more than 0 records/s, such as 500, got 'abc'"),
        ("backtest --seeds few", "--seeds: expected a whole number from 1 to 1000, got 'few'"),
        ("backtest --worker-capacity 0", "--worker-capacity: expected more than 0 records/s, such as 500, got '0'"),
        ("backtest --seeds 0", "--seeds: expected a whole number from 1 to 1000, got '0'"),
        ("backtest --seeds 1001", "--seeds: expected a whole number from 1 to 1000, got '1001'"),
        ("backtest --price -1", "--price: expected a price of at least 0, such as 0.04, got '-1'"),
        ("backtest --late-price inf", "--late-price: expected a price of at least 0, such as 0.04, got 'inf'"),
    ],
)
def test_a_wrong_number_of_an_option_is_refused_as_a_wrong_setting_is(
    arguments: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments.split())
    assert (ended.value.code, capsys.readouterr().err) == (2, f"backlog-adapter: {fault}\n")


@pytest.mark.parametrize(
    ("text", "duration_s"), [("90", 90), ("2m", 120), ("1.5h", 5400), ("7d", 604_800), ("1w", 604_800)]
)
def test_a_duration_has_the_units_of_a_time_in_the_past(text: str, duration_s: float) -> None:
    option = get_args(Duration)[1]
    assert option.parser(text) == duration_s


VALUES = """
images: {registry: registry.example.com/team}
config:
  sources: {kafka: {kind: kafka, bootstrap_servers: "kafka:9092", properties_file: /run/secrets/kafka/none}}
  workloads:
    - name: orders
      read: [{source: kafka, group: orders, topics: [orders]}]
"""


def checked(file: Path, text: str, *more: str) -> int:
    """The exit code of `check`."""
    file.write_text(text)
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", "--config", str(file), *more])
    return int(ended.value.code or 0)


def test_check_reads_the_configuration_of_chart_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what the chart adds, and without the files of the pods."""
    file = tmp_path / "values.yaml"
    assert checked(file, VALUES) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{file} has values of the chart with a valid config: 2 sources, 1 workload, 0 fleets\n"
    assert "the number of workers" not in printed.err


def test_a_null_in_chart_values_removes_a_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(tmp_path / "values.yaml", VALUES.replace("sources: {", "sources: {cluster: null, ")) == 0
    printed = capsys.readouterr()
    assert "1 source," in printed.out
    assert "config.sources: the sources of default/orders do not provide the number of workers" in printed.err


@pytest.mark.parametrize("command", ["check", "backtest"])
def test_a_warning_reads_as_a_fault_and_has_its_line(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(VALID)
    with pytest.raises(SystemExit):
        cli.main([command, "--config", str(file)])
    [warning] = [line for line in capsys.readouterr().err.splitlines() if "keeps its replicas" in line]
    assert warning.startswith("backlog-adapter: warning: sources: the sources of default/orders do not provide")
    assert warning.endswith(f"({file} line 2)")


def test_check_warns_of_what_has_no_effect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = VALUES.replace("sources: {", "sources: {spare: {kind: prometheus, url: 'http://spare'}, ")
    text = text.replace("name: orders\n", "name: orders\n      pause: {direction: up, until: 2026-01-31T18:00:00Z}\n")
    assert checked(tmp_path / "values.yaml", text) == 0
    printed = capsys.readouterr().err
    assert "backlog-adapter: warning: config.sources.spare: no workload or fleet reads this source;" in printed
    assert "backlog-adapter: warning: config.workloads[0].pause.until: is in the past, so scaling is not" in printed


def test_a_backtest_does_not_warn_of_a_pause_that_may_hold_in_its_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(VALID.replace("orders, read", "orders, pause: {direction: up, until: 2026-01-31T18:00:00Z}, read"))
    with pytest.raises(SystemExit):
        cli.main(["backtest", "--config", str(file)])
    assert "pause" not in capsys.readouterr().err


def test_check_accepts_the_lives_of_certificates_in_chart_values(tmp_path: Path) -> None:
    """The chart adds the Lease and the Service that an issuer needs."""
    file = tmp_path / "values.yaml"
    assert checked(file, VALUES + "  serving: {issuer: {leaf_lifetime_s: 86400}}\n") == 0
    assert checked(file, VALUES + "  serving: {issuer: {leaf_lifetime_s: 1}}\n") == 2


def test_a_fault_of_chart_values_has_its_path_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "values.yaml"
    assert checked(file, VALUES.replace("source: kafka", "source: kafak") + "  1: 2\n") == 2
    reference, key = capsys.readouterr().err.splitlines()
    assert reference.startswith("backlog-adapter: config.workloads[0].read[0].source: expected one of ")
    assert reference.endswith(f"did you mean kafka? ({file} line 7)")
    assert key.startswith("backlog-adapter: config[1]: ")
    assert key.endswith(f"({file} line 8)")


@pytest.mark.parametrize("file", sorted((CHART / "ci").glob("*-values.yaml")), ids=lambda file: file.name)
def test_check_has_no_warning_of_values_for_ci(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", "--config", str(file)])
    assert (ended.value.code, capsys.readouterr().err) == (0, "")


def test_check_warns_of_a_file_that_no_secret_is_mounted_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, mounts = tmp_path / "values.yaml", "pipeline: {secretMounts: {kafka: /run/secrets/kafka}}\n"
    assert checked(file, VALUES + mounts) == 0
    assert capsys.readouterr().err == ""
    assert checked(file, VALUES) == 0
    assert capsys.readouterr().err == (
        "backlog-adapter: warning: config.sources.kafka.properties_file: the chart mounts nothing at "
        "/run/secrets/kafka/none; add its Secret to pipeline.secretMounts, as NAME: /run/secrets/kafka "
        f"({file} line 4)\n"
    )


def test_check_warns_of_a_setting_that_the_chart_overwrites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "values.yaml"
    assert (
        checked(file, VALUES + "  pipeline: {port: 9443, host: 127.0.0.1, cores: 4}\n  serving:\n    port: 7443\n") == 0
    )
    printed = capsys.readouterr().err
    reason = "has no effect, because the chart sets it; remove it"
    assert f"backlog-adapter: warning: config.pipeline.port: {reason} ({file} line 8)\n" in printed
    assert f"warning: config.serving.port: {reason}, and set serve.port of the values ({file} line 10)\n" in printed
    assert f"warning: config.pipeline.host: {reason} (" in printed
    assert printed.count(reason) == 3


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("sourcs: {}", "sourcs: is not a value of the chart; did you mean config.sources?"),
        ("imagePullSecrets: []", "imagePullSecrets: is not a value of the chart; set images.pullSecrets"),
        ("affinity: {}", "affinity: is not a value of the chart; set serve.affinity and pipeline.affinity"),
        ("confg: {}", "confg: is not a value of the chart; did you mean config?"),
        ("workloads: [orders]", "workloads: is not a value of the chart; move it below config"),
        ("1: 2", "[1]: is not a value of the chart"),
        ("config:", "config: expected settings, got nothing; write them below it, or remove it"),
        ("config: {rules: }", "config.rules: expected a value, got nothing; write it, or remove it"),
        (
            "config: {workloads: , pause: , fleets: }",
            "config.pause: expected a value, got nothing; write it, or remove it",
        ),
    ],
)
def test_check_refuses_the_names_that_helm_refuses(
    line: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "values.yaml"
    assert checked(file, f"serve: {{replicas: 1}}\n{line}\nglobal: {{}}\n") == 2
    assert capsys.readouterr().err == f"backlog-adapter: {fault} ({file} line 2)\n"


@pytest.mark.parametrize(("wrong", "meant"), [("serv", "serve"), ("pipline", "pipeline")])
def test_check_lists_the_faults_of_config_after_a_name_that_helm_refuses(
    wrong: str, meant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "values.yaml"
    assert checked(file, f"config:\n  timing: {{tick_s: 0}}\n{wrong}: {{}}\n") == 2
    assert capsys.readouterr().err == (
        f"backlog-adapter: {wrong}: is not a value of the chart; did you mean {meant}? ({file} line 3)\n"
        f"backlog-adapter: config.timing.tick_s: expected at least 1, got 0 ({file} line 2)\n"
    )


@pytest.mark.parametrize("command", ["run", "pipeline", "serve", "explain shop/orders"])
def test_other_commands_refuse_values_with_one_fault(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(VALUES)
    with pytest.raises(SystemExit) as ended:
        cli.main([*command.split(), "--config", str(file)])
    fault = "expected a configuration, got values of the chart, which only check and backtest accept"
    fault += "; write what is below config into its own file, and add pipeline.checkpoint"
    assert (ended.value.code, capsys.readouterr().err) == (2, f"backlog-adapter: {file}: {fault}\n")


def test_check_says_that_values_without_config_scale_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "values.yaml"
    assert checked(file, "serve: {replicas: 1}\n") == 0
    assert capsys.readouterr().out == (
        f"{file} has values of the chart with a valid config: 1 source, 0 workloads, 0 fleets; "
        "name a workload or a fleet, otherwise nothing is scaled\n"
    )


def test_a_configuration_without_sources_is_no_values_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(tmp_path / "config.yaml", "workloads: []\npipeline: {checkpoint: /tmp/checkpoint}\n") == 2
    assert "sources: is required" in capsys.readouterr().err


def test_a_configuration_at_the_top_of_values_belongs_below_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "values.yaml"
    assert checked(file, f"serve: {{replicas: 1}}{VALID.partition('pipeline')[0]}") == 2
    assert capsys.readouterr().err == (
        f"backlog-adapter: sources: is not a value of the chart; move it below config ({file} line 2)\n"
        f"backlog-adapter: workloads: is not a value of the chart; move it below config ({file} line 3)\n"
    )


def test_a_misspelt_name_beside_a_checkpoint_is_the_fault_of_a_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert checked(tmp_path / "config.yaml", f"{VALID}serve: {{port: 1}}\n") == 2
    assert "serve: is not a setting here; did you mean serving?" in capsys.readouterr().err


def test_check_says_that_a_file_is_neither_configuration_nor_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "values.yaml"
    for text, hint in (("replicaCount: 2\n", ""), ("confg: {sources: {}}\n", "; 'confg': did you mean config?")):
        assert checked(file, text) == 2
        fault = "expected a configuration with sources and pipeline, or values of the chart with config; got neither"
        assert capsys.readouterr().err == f"backlog-adapter: {file}: {fault}{hint}\n"


def test_check_reads_the_hpas_of_manifests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = str(CHART.parents[1] / "hpa" / "kafka-consumer.yaml")
    assert checked(tmp_path / "values.yaml", VALUES, "--hpa", manifest) == 0
    assert "1 HPA without a fault for 1 workload" in capsys.readouterr().out


def test_check_compares_hpas_with_the_apis_of_chart_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = str(CHART.parents[1] / "hpa" / "object.yaml")
    assert checked(tmp_path / "values.yaml", VALUES, "--hpa", manifest) == 0
    assert "a metric of type Object needs apiService.custom.create: true" in capsys.readouterr().err


def test_check_says_that_it_checks_no_hpa_beside_a_faulty_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = VALUES.replace("source: kafka", "source: kafak")
    assert checked(tmp_path / "values.yaml", text, "--hpa", "hpas.yaml") == 2
    fault, skipped = capsys.readouterr().err.splitlines()
    assert "did you mean kafka?" in fault
    assert skipped == "backlog-adapter: --hpa: no HPA was checked; correct the configuration first"


def test_check_says_that_the_configuration_of_values_is_a_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert checked(tmp_path / "values.yaml", "config: |\n  sources: {}\n") == 2
    assert "config: expected settings, got the text 'sources: {}" in (printed := capsys.readouterr().err)
    assert "remove the | after config: " in printed


def test_the_chart_has_the_sources_and_the_names_of_values_that_check_assumes() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    assert values["config"].items() <= chart_values.RELEASE.items()
    served = {api: switch["create"] for api, switch in values["apiService"].items()}
    assert served == {api: ChartValues(parse(VALID, "c"), {}).serves(api) for api in served}
    assert values.keys() == chart_values.VALUES | {"config", "pipeline"}
