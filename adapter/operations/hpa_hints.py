"""Sentences about an HPA that Kubernetes accepts and that probably does something else than its author expects."""

import time
from collections.abc import Container, Iterator
from math import inf

from adapter.core.formatting import workers
from adapter.core.metrics import METRICS, PADDED
from adapter.core.rules import Rules
from adapter.operations.hpa_manifest import Hpa, number_of
from adapter.sources.annotations import PAUSE_UNTIL, RULES_UNTIL, HpaAnnotations
from adapter.sources.autoscalers import Autoscaler, Json, own_metrics
from adapter.sources.metric_targets import target_hints

_COUNTED = {"records": "record", "records/s": "record/s"}


def hints(hpa: Hpa, whole: Json, own: Autoscaler, configured: Container[str], rules: Rules | None) -> Iterator[str]:
    """All sentences.

    configured: the workloads of the configuration, as "namespace/name".
    rules: those of its workload without its annotations, None if unknown.
    """
    yield from _ended(own.annotations)
    yield from target_hints(own_metrics(whole))
    for source in own_metrics(whole):
        yield from _target_values(source["metric"]["name"], source["target"])
    for name in (name for name in hpa.pods_metrics if name in METRICS):
        text = f"{name} is of type Pods, which the adapter does not serve"
        yield f"{text}; make it External or Object, unless another adapter serves it"
    if not own.workloads:
        yield from _unknown_metrics(hpa, whole["metadata"]["namespace"], configured)
    if rules is not None and own_metrics(whole):  # KEDA scales to zero itself, whatever the minimum of its HPA
        yield from _minima(hpa, own.annotations, rules)
        names = {source["metric"]["name"] for source in own_metrics(whole)}
        if "required_workers" in names:
            yield from _ignored_steps(hpa, own.annotations, rules)
        for name in hpa.resources if names & {"required_workers", PADDED} else ():
            text = f"an HPA takes the largest size of its metrics, so {name} may keep more replicas than are required"
            yield f"{text}; remove it, unless that is intended"


def _ended(annotations: HpaAnnotations) -> Iterator[str]:
    now_s = time.time()
    if annotations.pause_until_s <= now_s:
        yield f"annotation {PAUSE_UNTIL} is in the past, so scaling is not paused; remove the pause, or set a later end"
    if annotations.rules_until_s <= now_s:
        text = "so the policy and rules in annotations have no effect; remove them, or set a later end"
        yield f"annotation {RULES_UNTIL} is in the past, {text}"


def _target_values(name: str, target: Json) -> Iterator[str]:
    """Report a percentage of a share, and the value of a size that is the target of a count or a rate."""
    if name == "utilization" and (share := number_of(target.get("value", "1"))) > 1:
        fix = f"; write {share * 10:.0f}m for {share:.0f} %" if share % 1 == 0 and share < 100 else ""
        yield f'utilization is at most 1, so with Value "{target["value"]}" the HPA only removes replicas{fix}'
    unit = METRICS[name].unit
    if unit in _COUNTED and METRICS[name].target and number_of(target.get("averageValue", "0")) == 1:
        text = f'with AverageValue "1" the HPA wants a replica for each {_COUNTED[unit]} of {name}'
        yield f"{text}; write what a replica may have"


def _unknown_metrics(hpa: Hpa, namespace: str, configured: Container[str]) -> Iterator[str]:
    for metric in (source.metric for source in hpa.sources if source.metric.name not in METRICS):
        if (workload := f"{namespace}/{metric.workload}") in configured:
            text = f"the adapter has no metric {metric.name}, whose selector names the workload {workload}"
            yield f"{text}; correct the name, unless another adapter serves it"


def _minima(hpa: Hpa, annotations: HpaAnnotations, rules: Rules) -> Iterator[str]:
    """Report a minimum of 0 that the other minimum overrides."""
    name, least = _rule("min_workers", annotations, rules)
    replicas = hpa.spec.min_replicas
    if replicas == 0 < least:
        yield f"minReplicas is 0 but {name} is {least:g}, so an idle job keeps {workers(least)}; set {name} to 0"
    if least == 0 and replicas in (None, 1):
        given = "1 by default" if replicas is None else "1"
        fix = "set minReplicas to 0, which needs the feature gate HPAScaleToZero"
        yield f"{name} is 0 but minReplicas is {given}, so an idle job keeps 1 worker; {fix}"


def _ignored_steps(hpa: Hpa, annotations: HpaAnnotations, rules: Rules) -> Iterator[str]:
    """Report a limit of steps that the default tolerance of an HPA, 10 %, ignores from some size on."""
    most = min(hpa.spec.max_replicas, _rule("max_workers", annotations, rules)[1])
    for direction in hpa.default_tolerances:
        name, step = _rule(f"max_step_{direction}_workers", annotations, rules)
        if most > 11 * step:  # nearer to the maximum, the HPA ignores any change
            ignored = f"a step that an HPA with the default tolerance ignores from {10 * step:g} workers on"
            fix = f'set behavior.scale{direction.title()}.tolerance to "0", or scale on {PADDED}'
            yield f"{name} is {step:g}, {ignored}; {fix}"


def _rule(name: str, annotations: HpaAnnotations, rules: Rules) -> tuple[str, float]:
    """How to call a parameter of a workload, and its value; a limit that is unset is infinite."""
    if name in annotations.rules and annotations.rules_until_s > time.time():
        return f"the annotation rules.{name}", annotations.rules[name]
    value = getattr(rules, name)
    return name, inf if value is None else value
