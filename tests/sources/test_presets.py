import gzip
import re
from functools import cache
from pathlib import Path

import pytest

from adapter.errors import ConfigError
from adapter.sources import presets, promql

SOUND = """
name: mine
description: what it is
workload_label: group
signals: {backlog_records: 'sum by ($by) (lag{$match})'}
"""


SCRAPES = Path(__file__).parents[1] / "data" / "scrapes"
FLINK_SERIES = re.compile(r"flink_[A-Za-z_]+")


@cache
def scraped() -> frozenset[str]:
    """The names of all series in the recorded scrapes of Flink."""
    texts = [gzip.decompress(path.read_bytes()).decode() for path in SCRAPES.glob("flink-*.gz")]
    texts += [path.read_text("utf-8") for path in SCRAPES.glob("flink-*.prom")]
    return frozenset(re.match(r"[^{ ]*", line)[0] for text in texts for line in text.splitlines() if line[:1] != "#")


def test_every_preset_is_listed() -> None:
    assert presets.names() == (
        "beam",
        "cadvisor",
        "cadvisor-memory",
        "flink",
        "flink-sink",
        "flink-varga",
        "kafka-exporter",
        "kafka-lag-exporter",
        "klag",
        "kminion",
        "kube-state-metrics",
        "pravega",
        "pravega-flink",
        "spark",
    )


@pytest.mark.parametrize("name", ["flink", "flink-varga", "flink-sink"])
def test_every_series_in_a_flink_preset_exists_on_a_real_flink(name: str) -> None:
    series_of_presets = {
        series for template in presets.load(name).signals.values() for series in FLINK_SERIES.findall(template)
    }
    assert series_of_presets - scraped() == set()
    assert series_of_presets


def test_s1_10_s1_11_s1_14_have_a_preset_with_the_published_metrics() -> None:
    signals = presets.load("flink-varga").signals
    assert re.search(r"records_lag_max{\$match}\s+\* \w+_assigned_partitions", signals["backlog_records"])
    assert re.search(r"avg_over_time\(\s+\w+_records_consumed_rate{", signals["throughput_records_per_s"])
    assert "1 - avg by ($by) (flink_taskmanager_job_task_idleTimeMsPerSecond{" in signals["utilization_ratio"]


@pytest.mark.parametrize("name", [name for name in presets.names() if name != "spark"])
def test_the_label_of_each_preset_is_documented(name: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / "sources.md").read_text("utf-8")
    (paragraph,) = [each for each in text.split("\n\n") if each.startswith("`match` selects the series")]
    assert f"`{presets.load(name).workload_label}`" in paragraph


@pytest.mark.parametrize("name", presets.names())
@pytest.mark.parametrize("match", ["", 'a="b"', 'a=~"b|c",d="e"'])
def test_every_query_of_every_preset_parses_and_keeps_the_workload(name: str, match: str) -> None:
    preset = presets.load(name)
    for template in preset.signals.values():
        text = presets.fill(template, match, (preset.workload_label, "another"), "60s")
        assert promql.fault(text) is None
        assert not promql.drops(text, preset.workload_label)


def test_the_description_of_the_spark_preset_states_that_it_has_no_lag() -> None:
    assert "no lag" in presets.load("spark").description
    assert "backlog_records" not in presets.load("spark").signals


def test_a_dollar_sign_without_a_placeholder_stays() -> None:
    template = 'label_replace(a{$match, b=~"c$"}, "q", "$1", "n", "${2}$$match")'
    assert (
        presets.fill(template, 'x="y"', (), "60s") == 'label_replace(a{x="y", b=~"c$"}, "q", "$1", "n", "${2}$match")'
    )


@pytest.mark.parametrize(
    ("was", "becomes", "sentence"),
    [
        pytest.param("group\n", "[group]\n", "`str`, got `array` - at `$.workload_label`", id="a wrong type"),
        pytest.param("workload_label: group", "", "missing required field `workload_label`", id="a missing key"),
        pytest.param("description", "descripton", "unknown field `descripton`", id="an unknown key"),
        pytest.param("mine", "yours", "must be the name of the file, got 'yours'", id="another name than its file"),
        pytest.param("backlog_records", "backlog_record", "did you mean backlog_records?", id="an unknown signal"),
        pytest.param("$by", "$wndow", "$wndow is not $match, $by or $window", id="an unknown placeholder"),
        pytest.param("signals: {", "signals: {{", "presets/mine.yaml: ", id="no YAML"),
    ],
)
def test_a_faulty_preset_is_refused_with_its_path(was: str, becomes: str, sentence: str) -> None:
    presets.parse("mine", SOUND)
    with pytest.raises(ConfigError) as caught:
        presets.parse("mine", SOUND.replace(was, becomes, 1))
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("presets/mine.yaml: ")


def test_an_unknown_preset_is_reported_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="there is no preset 'kafka_exporter'; did you mean kafka-exporter"):
        presets.load("kafka_exporter")


def test_a_preset_can_leave_out_signals_of_another() -> None:
    text = "name: mine\ndescription: ''\nworkload_label: job\nsame_as: flink\nwithout: [throughput_records_per_s, x]"
    with pytest.raises(ConfigError, match=r"presets/mine\.yaml: without: flink has no x"):
        presets.parse("mine", text)
    left_out = presets.load("flink").signals.keys() - presets.load("pravega-flink").signals.keys()
    assert "throughput_records_per_s" in left_out
