"""The recorded history of a job with known parameters."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from builders import assemble

from adapter.core.samples import WHOLE, Samples

JOB = "shop/orders"
BEGIN_S = 1_767_225_600  # 2026-01-01
TICK_S = 15


@dataclass(kw_only=True)
class PastJob:
    """load: records/s at a second since the start. sizes: second -> desired workers from then on.

    n workers process each * n ** exponent records/s. A size is ready start_s later; then nothing is done for pause_s,
    and speed rises from warm_ratio to 1 in warm_up_s.
    """

    load: Callable[[float], float]
    sizes: Mapping[int, int]
    each: float = 100.0
    exponent: float = 1.0
    start_s: int = 45
    pause_s: int = 30
    warm_up_s: int = 0
    warm_ratio: float = 1.0
    shows_while_down: bool = True
    workload: str = JOB

    def rows(self, until_s: int) -> Iterator[tuple[int, dict[str, float]]]:
        """What is seen every TICK_S seconds."""
        spec = ready = self.sizes[0]
        asked_s, changed_s = -10_000, -10_000
        appended = processed = busy = 0.0
        for at_s in range(until_s + 1):
            if at_s in self.sizes and at_s:
                spec, asked_s = self.sizes[at_s], at_s
            if spec != ready and at_s - asked_s >= (self.start_s if spec > ready else 0):
                ready, changed_s = spec, at_s
            down = at_s - changed_s < self.pause_s
            if at_s % TICK_S == 0:
                counted = {"appended_records": appended, "processed_records": processed}
                counted |= {"backlog_records": appended - processed, "utilization_ratio": busy}
                workers = {"spec_workers": spec, "workers": spec, "ready_workers": ready, "partitions": 60}
                yield BEGIN_S + at_s, (counted if self.shows_while_down or not down else {}) | workers
            appended += self.load(at_s)
            share = (at_s - changed_s - self.pause_s) / self.warm_up_s if self.warm_up_s else 1.0
            speed = 0.0 if down else self.warm_ratio + (1 - self.warm_ratio) * min(share, 1.0)
            able = ready**self.exponent * self.each * speed
            passed = min(able, appended - processed)
            busy = passed / able if able else 0.0
            processed += passed

    def samples(self, until_s: int, without: tuple[str, ...] = ()) -> list[Samples]:
        """Its ticks; without: signals to leave out."""
        return [
            assemble(
                float(at_s),
                [(self.workload, WHOLE, signal, value) for signal, value in seen.items() if signal not in without],
            )
            for at_s, seen in self.rows(until_s)
        ]


def wave(mean: float, swing: float, period_s: float) -> Callable[[float], float]:
    """A load that comes and goes."""
    return lambda at_s: mean + swing * float(np.sin(2 * np.pi * at_s / period_s))


def busy_day(**changes: object) -> PastJob:
    """Three hours with four rescales of every kind, behind after each."""
    sizes = {0: 12, 2400: 18, 4800: 12, 7200: 18, 9300: 13}
    return PastJob(**{"load": wave(900, 80, 3600), "sizes": sizes} | changes)  # type: ignore[arg-type]  # names come from a test
