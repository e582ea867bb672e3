"""Which signals a policy needs, and a decision at all, and which of them the sources of each workload can give."""

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
    Workload,
)
from adapter.core.policies import POLICIES, Need
from adapter.core.rules import Rules
from adapter.core.samples import STAGE_SIGNALS, WORKLOAD_SIGNALS
from adapter.sources import presets
from adapter.sources.offsets import SIGNALS as KAFKA_SIGNALS
from adapter.sources.segments import RATES


@dataclass(frozen=True, slots=True)
class _Lack:
    """A need of a policy that is not met. place: where the policy is set, "" by default. entries: of whom, paths."""

    place: str
    policy: str
    need: Need
    entries: tuple[str, ...]


NEEDS: Mapping[str, tuple[Need, ...]] = {policy.name: policy.needs for policy in POLICIES}
WORKERS = ("workers", "spec_workers", "ready_workers")  # any of them counts the workers
_DEFAULT = {"policy": Rules().policy}
_EVERYTHING = frozenset((*STAGE_SIGNALS, *WORKLOAD_SIGNALS))


def check(config: Config) -> list[str]:
    """Policies that can never decide: nothing their workload reads gives what they need."""
    return [_sentence(lack, "needs") for lack in _lacks(config) if not lack.need.without]


def hints(config: Config) -> list[str]:
    """What could do more than it can, for want of a signal; each sentence begins with its path."""
    useful = [lack for lack in _lacks(config) if lack.need.without]
    told = [f"{_sentence(lack, 'could use')}; without it {lack.need.without}" for lack in useful]
    return [*told, *_uncounted(config)]


def _lacks(config: Config) -> list[_Lack]:
    """One for each place that sets a policy, for a thousand workloads may lack the same."""
    lacking: dict[tuple[str, str, Need], list[str]] = {}
    for path, entry, given in _entries(config):
        own = "policy" in entry.rules
        policy: str = {**_DEFAULT, **config.rules, **entry.rules}["policy"]
        place = f"{path}.rules.policy" if own else "rules.policy" if "policy" in config.rules else ""
        for need in NEEDS[policy]:
            if given.isdisjoint(need.signals):
                lacking.setdefault((place, policy, need), []).append(path)
    return [_Lack(*key, tuple(paths)) for key, paths in lacking.items()]


def _sentence(lack: _Lack, verb: str) -> str:
    policy = lack.policy if lack.place else f"{lack.policy} (default)"
    wanted, given = " or ".join(lack.need.signals), _who_gives(lack.need.signals)
    nobody = f"nothing that {_named(lack.entries)} gives that"
    return f"{lack.place or lack.entries[0]}: the policy {policy} {verb} {wanted}, and {nobody}; {given}"


def _named(paths: Sequence[str]) -> str:
    return f"{paths[0]} reads" if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more read"


def _uncounted(config: Config) -> Iterator[str]:
    """The workloads whose workers nobody counts. A kubernetes source counts those of all that an HPA scales."""
    if any(isinstance(source, KubernetesSource) for source in config.sources.values()):
        return
    paths = [path for path, _, given in _entries(config) if given.isdisjoint(WORKERS)]
    if paths:
        nobody = f"nothing that {_named(paths)} tells how many workers there are"
        yield f"sources: {nobody}; {_who_gives(WORKERS)}; without it nothing is ever decided"


def _entries(config: Config) -> Iterator[tuple[str, Workload | Fleet, frozenset[str]]]:
    for at, workload in enumerate(config.workloads):
        yield f"workloads[{at}]", workload, frozenset().union(*(_of_reading(config, one) for one in workload.read))
    for at, fleet in enumerate(config.fleets):
        yield f"fleets[{at}]", fleet, frozenset(KAFKA_SIGNALS if fleet.groups is not None else _of_queries(fleet))


def _of_reading(config: Config, reading: AnyReading) -> Iterable[str]:
    match reading:
        case KafkaReading():
            return KAFKA_SIGNALS
        case PrometheusReading():
            return _of_queries(reading)
        case PravegaReading():
            source = config.sources[reading.source]
            return ("partitions", *(RATES if isinstance(source, PravegaSource) and source.prometheus else ()))
        case _:
            return _EVERYTHING  # what a trace holds is known only when it is read


def _of_queries(reads: PrometheusReading | Fleet) -> Iterable[str]:
    known = presets.load(reads.preset).signals if reads.preset in presets.names() else {}
    return _EVERYTHING if reads.preset and not known else (*known, *reads.signals)


def _who_gives(signals: tuple[str, ...]) -> str:
    """The end of a sentence: where one of the signals could come from."""
    able = [name for name in presets.names() if not presets.load(name).signals.keys().isdisjoint(signals)]
    named = [f"the preset {name}" for name in able]
    if not set(KAFKA_SIGNALS).isdisjoint(signals):
        named = ["a kafka source", *named]
    if not set(WORKERS).isdisjoint(signals):
        named = ["a kubernetes source", *named]
    return f"{', '.join([*named, f'or a query of your own (signals: {{{signals[-1]}: ...}})'])} could"
