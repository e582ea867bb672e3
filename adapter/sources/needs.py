"""Compare the signals that each policy needs with the signals that the sources of each workload provide."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from adapter.config import (
    AnyReading,
    Config,
    Fleet,
    KafkaReading,
    KubernetesSource,
    PravegaReading,
    PravegaSource,
    PrometheusReading,
    TraceReading,
)
from adapter.config.faults import path_text
from adapter.config.settings import rule_sources
from adapter.core.policies import POLICIES, Need
from adapter.core.rules import Rules
from adapter.core.samples import STAGE_SIGNALS, WORKLOAD_SIGNALS
from adapter.sources import presets
from adapter.sources.offsets import SIGNALS as KAFKA_SIGNALS


@dataclass(frozen=True, slots=True)
class _Entry:
    """A workload or fleet of the configuration."""

    path: str
    name: str  # of a workload; the path of a fleet
    provided: frozenset[str]  # the signals that its sources provide


@dataclass(frozen=True, slots=True)
class _UnmetNeed:
    """A need of a policy that no source meets."""

    place: str  # path of the setting that selects the policy, "" for the default policy
    policy: str
    need: Need
    entries: tuple[_Entry, ...]  # to which it applies


NEEDS: Mapping[str, tuple[Need, ...]] = {policy.name: policy.needs for policy in POLICIES}
WORKERS = ("workers", "spec_workers", "ready_workers")  # one of them is enough
_EVERYTHING = frozenset((*STAGE_SIGNALS, *WORKLOAD_SIGNALS))


def check(config: Config) -> list[str]:
    """Policies that can never decide, because no source of their workload provides a signal that they need."""
    return [_sentence(unmet, "needs") for unmet in _unmet_needs(config) if not unmet.need.without]


def hints(config: Config) -> list[str]:
    """Workloads whose policy can do more with another signal; each sentence begins with its path."""
    optional = [unmet for unmet in _unmet_needs(config) if unmet.need.without]
    sentences = [f"{_sentence(unmet, 'could use')}; without it {unmet.need.without}" for unmet in optional]
    return [*sentences, *_without_workers(config)]


def _unmet_needs(config: Config) -> list[_UnmetNeed]:
    """One for each setting that selects a policy, because it may apply to a thousand workloads."""
    unmet: dict[tuple[str, str, Need], list[_Entry]] = {}
    sources = rule_sources(config)
    for entry, rules in zip(_entries(config), (*sources.workloads, *sources.fleets), strict=True):
        for layers in sources.layers(rules):
            layer = layers.strongest(["policy"])
            policy: str = layer.settings.get("policy", Rules().policy)
            place = path_text((*layer.path, "policy")) if "policy" in layer.settings else ""
            for need in NEEDS[policy]:
                if entry.provided.isdisjoint(need.signals):
                    unmet.setdefault((place, policy, need), []).append(entry)
    return [_UnmetNeed(*key, tuple(dict.fromkeys(entries))) for key, entries in unmet.items()]


def _sentence(unmet: _UnmetNeed, verb: str) -> str:
    entry = unmet.entries[0].path  # the path of shared rules would hide whose sources lack the signal
    is_own = unmet.place.startswith(f"{entry}.")
    policy = unmet.policy if is_own else f"{unmet.policy} ({unmet.place or 'default'})"
    missing = f"{verb} {' or '.join(unmet.need.signals)}, which {_readers(unmet.entries)} not provide"
    return f"{unmet.place if is_own else entry}: the policy {policy} {missing}; {_providers(unmet.need.signals)}"


def _readers(entries: Sequence[_Entry]) -> str:
    more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
    return f"the sources of {entries[0].name}{more} do"


def _without_workers(config: Config) -> Iterator[str]:
    """The workloads without a count of workers. A kubernetes source counts those of every HPA."""
    if any(isinstance(source, KubernetesSource) for source in config.sources.values()):
        return
    entries = [entry for entry in _entries(config) if entry.provided.isdisjoint(WORKERS)]
    if entries:
        missing = f"{_readers(entries)} not provide the number of workers"
        # This is no fault, because backlog and rates are served without it.
        without = "without it required_workers stays unknown, and an HPA on it keeps its replicas"
        yield f"sources: {missing}; {_providers(WORKERS)}; {without}"


def _entries(config: Config) -> Iterator[_Entry]:
    """The workloads, then the fleets."""
    for at, workload in enumerate(config.workloads):
        provided = frozenset().union(*(_of_reading(config, one) for one in workload.read))
        yield _Entry(f"workloads[{at}]", workload.id, provided)
    for path, fleet in ((f"fleets[{at}]", fleet) for at, fleet in enumerate(config.fleets)):
        yield _Entry(path, path, frozenset(KAFKA_SIGNALS if fleet.groups is not None else _of_queries(fleet)))


def _of_reading(config: Config, reading: AnyReading) -> Iterable[str]:
    match reading:
        case KafkaReading():
            return KAFKA_SIGNALS
        case PrometheusReading():
            return _of_queries(reading)
        case PravegaReading():
            source = config.sources[reading.source]
            has_rates = isinstance(source, PravegaSource) and source.prometheus
            return ("partitions", *(presets.stream_rates() if has_rates else ()))
        case TraceReading():
            return _EVERYTHING  # the signals of a trace are unknown until it is read


def _of_queries(reads: PrometheusReading | Fleet) -> Iterable[str]:
    known = presets.load(reads.preset).signals if reads.preset in presets.names() else {}
    is_faulty = (reads.preset and not known) or not reads.signals.keys() <= set(presets.SIGNALS)  # another check's
    return _EVERYTHING if is_faulty else (*known, *reads.signals)


def _providers(signals: tuple[str, ...]) -> str:
    """The end of a sentence: what could provide one of the signals."""
    able = [name for name in presets.names() if not presets.load(name).signals.keys().isdisjoint(signals)]
    providers = [f"the preset{'s' if len(able) > 1 else ''} {', '.join(able)}"] if able else []
    if not set(KAFKA_SIGNALS).isdisjoint(signals):
        providers = ["a kafka source", *providers]
    if not set(WORKERS).isdisjoint(signals):
        providers = ["a kubernetes source (cluster: {kind: kubernetes})", *providers]
    return f"{', '.join([*providers, f'or a query of your own (signals: {{{signals[-1]}: ...}})'])} could"
