import pytest

from adapter.errors import ConfigError
from adapter.sources import presets, promql

SOUND = """
name: mine
description: what it is
workload_label: group
signals: {backlog_records: 'sum by ($by) (lag{$match})'}
"""


def test_the_first_presets_are_there() -> None:
    assert presets.names() == ("flink", "kafka-exporter", "spark")


@pytest.mark.parametrize("name", presets.names())
@pytest.mark.parametrize("match", ["", 'a="b"', 'a=~"b|c",d="e"'])
def test_every_query_of_every_preset_parses_and_keeps_the_workload(name: str, match: str) -> None:
    preset = presets.load(name)
    for template in preset.signals.values():
        text = presets.filled(template, match, (preset.workload_label, "another"), "60s")
        assert promql.fault(text) is None
        assert not promql.drops(text, preset.workload_label)


def test_the_spark_preset_says_that_it_has_no_lag() -> None:
    assert "no lag" in presets.load("spark").description
    assert "backlog_records" not in presets.load("spark").signals


def test_a_dollar_sign_that_is_no_placeholder_stays() -> None:
    template = 'label_replace(a{$match, b=~"c$"}, "q", "$1", "n", "${2}$$match")'
    assert (
        presets.filled(template, 'x="y"', (), "60s") == 'label_replace(a{x="y", b=~"c$"}, "q", "$1", "n", "${2}$match")'
    )


@pytest.mark.parametrize(
    ("was", "becomes", "sentence"),
    [
        pytest.param("group\n", "[group]\n", "`str`, got `array` - at `$.workload_label`", id="a wrong type"),
        pytest.param("workload_label: group", "", "missing required field `workload_label`", id="a missing key"),
        pytest.param("description", "descripton", "unknown field `descripton`", id="an unknown key"),
        pytest.param("mine", "yours", "must be that of the file, got 'yours'", id="another name than its file"),
        pytest.param("backlog_records", "backlog_record", "did you mean backlog_records?", id="an unknown signal"),
        pytest.param("$by", "$wndow", "$wndow is none of $match, $by, $window", id="an unknown placeholder"),
        pytest.param("signals: {", "signals: {{", "presets/mine.yaml: ", id="no YAML"),
    ],
)
def test_a_wrong_preset_is_refused_with_its_place(was: str, becomes: str, sentence: str) -> None:
    presets.parse("mine", SOUND)
    with pytest.raises(ConfigError) as caught:
        presets.parse("mine", SOUND.replace(was, becomes, 1))
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("presets/mine.yaml: ")


def test_an_unknown_preset_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="no preset is named 'kafka_exporter'; did you mean kafka-exporter"):
        presets.load("kafka_exporter")
