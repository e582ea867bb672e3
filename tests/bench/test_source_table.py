"""docs/sources.md agrees with the sources, the presets and the engine."""

import re

import pytest
import yaml

from adapter import config
from adapter.core.samples import STAGE_SIGNALS, WORKLOAD_SIGNALS
from adapter.sources import needs, presets, prometheus_plan, promql
from adapter.sources.autoscalers import Scale, add_workers, autoscalers
from adapter.sources.sample_table import SampleTable
from bench.source_table import DERIVED, FILE, HPA_SIGNALS, READ, cells, replace_table, sources

PAGE = FILE.read_text("utf-8")
FENCES = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
HPA = {
    "metadata": {"namespace": "shop", "name": "a", "annotations": {"backlog-adapter/workload": "orders"}},
    "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "orders"}, "maxReplicas": 9},
}


def test_the_table_is_that_of_the_present_program() -> None:
    assert replace_table(PAGE) == PAGE, "run `python -m bench.source_table`"


@pytest.mark.parametrize("name", sources())
def test_yes_is_a_signal_that_the_source_reads(name: str) -> None:
    signals, known = sources()[name], cells(sources()[name])
    of = DERIVED | READ
    assert {heading for heading, cell in known.items() if cell == "yes"} == {h for h in of if of[h] in signals}


def test_computed_follows_from_other_signals() -> None:
    assert cells(("processed_records", "backlog_records"))["backlog time"] == "computed"
    assert cells(("processed_records",))["backlog time"] == "no"
    assert cells(("cpu_ratio",))["utilization"] == "computed"
    assert set(cells(()).values()) == {"no"}


def test_the_headings_are_signals() -> None:
    assert {*READ.values()} <= {*STAGE_SIGNALS, *WORKLOAD_SIGNALS}


def test_the_kubernetes_source_reports_its_signals() -> None:
    [hpa] = found = autoscalers([HPA])
    table = SampleTable()
    add_workers(table, 0, found, {hpa.target: Scale(4, 4, 4)})
    assert set(HPA_SIGNALS) <= set(table.finish().column("signal").to_pylist())


def test_each_preset_has_a_row_with_its_needs_and_limits() -> None:
    assert re.findall(r"^\| `([a-z-]+)` \| [^|]{4,} \| [^|]{8,} \|$", PAGE, re.MULTILINE) == [*presets.names()]


def test_the_configuration_of_the_page_reads_all_that_its_policy_needs() -> None:
    example = config.parse(FENCES[0], "sources.md")
    assert [*prometheus_plan.check(example), *needs.check(example), *needs.hints(example)] == []


def test_the_preset_of_the_page_is_valid() -> None:
    preset = presets.parse(yaml.safe_load(FENCES[1])["name"], FENCES[1])
    queries = [presets.fill(text, "", (preset.workload_label,), "60s") for text in preset.signals.values()]
    assert [promql.fault(query) for query in queries] == [None, None]
    assert not any(promql.drops(query, preset.workload_label) for query in queries)
