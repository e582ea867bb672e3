"""The scale-down window: the workers needed in it, and the work that the next scale-down has to save."""

import numpy as np

from adapter.core.formatting import DAY_S
from adapter.core.observe import Tick
from adapter.core.policies.sizing import policy_has
from adapter.core.samples import Array, first_known
from adapter.core.scale_down_cost import (
    DOWNS_DOUBLE,
    Bucket,
    CurrentSize,
    FewerWorkers,
    bucket_s,
    default_worth_s,
    paying_workers,
)


def window_workers(tick: Tick) -> Array:
    """The largest size needed in the scale-down window, or in the part of it that pays if a rescale has a cost."""
    fast, slow = tick.state.fast, tick.state.slow
    running = Bucket(
        largest_workers=fast.peak_workers,
        age_s=tick.at_s - slow.history.bucket_at_s,
        width_s=bucket_width_s(tick),
    )
    here = CurrentSize(current_workers=tick.current_workers, since_s=tick.at_s - fast.spec_changed_at_s)
    fewer = FewerWorkers(largest_workers=slow.history.fewer_workers, age_s=tick.at_s - slow.history.fewer_since_s)
    paying = paying_workers(slow.peaks, running, fewer, here, due_worth_s(tick))
    whole = np.fmax(np.fmax.reduce(slow.peaks, axis=0), fast.peak_workers)
    return np.where(rescale_worth_s(tick) > 0, paying, whole)


def bucket_width_s(tick: Tick) -> Array:
    """The length of each part of the scale-down window, 0 without a window."""
    return bucket_s(tick.rules, rescale_worth_s(tick))


def due_worth_s(tick: Tick) -> Array:
    """The work that the next scale-down has to save, in seconds: more after recent ones."""
    worth_s: Array = rescale_worth_s(tick) * (1 + recent_downs(tick) / DOWNS_DOUBLE)
    return worth_s


def rescale_worth_s(tick: Tick) -> Array:
    """The work of the whole job that a scale-down has to save, in seconds; NaN where the whole window counts."""
    own = np.where(
        policy_has("waits_until_warm", tick.rules), default_worth_s(tick.rules, tick.current_workers), np.nan
    )
    return first_known(tick.rules.rescale_worth_s, own)


def recent_downs(tick: Tick) -> Array:
    """Scale-downs of the last day, shape (workloads,); older ones fade."""
    history = tick.state.slow.history
    faded: Array = history.downs * np.exp(-(tick.at_s - history.downs_at_s) / DAY_S)
    return np.nan_to_num(faded)
