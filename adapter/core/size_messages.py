"""The part of a decision's sentence about its size: the target, the load and the sizes that would carry it."""

from math import ceil, inf
from typing import TYPE_CHECKING

from adapter.core.bounds import Bound
from adapter.core.formatting import (
    DAY_S,
    RESOURCES,
    at_most,
    count,
    counted,
    rate,
    seconds,
    share,
    soon,
    times,
    workers,
)
from adapter.core.policies import LEAST_HORIZON_S, policy_of

if TYPE_CHECKING:
    from adapter.core.decisions import Decision

_HALF_RATIO = 0.5
_HIDDEN_S = 30.0  # a partition that is less behind is not mentioned


def hold_prefix(d: "Decision") -> str:
    """The beginning of a sentence: the target stays."""
    return "No target yet" if d.required_workers is None else f"Holding {workers(d.required_workers)}"


def _scaling(d: "Decision") -> str:
    here, target = d.reference_workers, d.required_workers
    if here is None or target is None:
        return hold_prefix(d) if target is None else f"Scaling to {workers(target)}"
    if d.hpa_off:
        return f"Requiring {workers(target)} for a scale target at 0 replicas, where the HPA is off"
    return f"Scaling {'down' if target < here else 'up'} from {count(here)} to {workers(target)}"


def scale_prefix(d: "Decision") -> str:
    """The beginning of a sentence: the target stays, or leads to another size."""
    return hold_prefix(d) if d.required_workers in (None, d.reference_workers) else _scaling(d)


def ready_count(d: "Decision") -> float | None:
    """The ready workers; the existing ones where a source reports no readiness."""
    return d.workers if d.ready_workers is None else d.ready_workers


def ready_workers(d: "Decision") -> str:
    """How many of the desired workers are ready."""
    ready = count(ready_count(d))
    return f"{ready} of {workers(d.reference_workers)} {'is' if ready == '1' else 'are'} ready"


def scale_up(d: "Decision") -> str:
    """Why more workers are needed."""
    if policy_of(d.policy).follows_partitions:
        return f"{_scaling(d)}: {_by_partitions(d)}"
    if (d.wanted_workers or 0.0) <= (d.reference_workers or 0.0):  # only a bound requires more
        return f"{_scaling(d)}: {_load(d)}{_capacity(d)}"
    why = _full_stage(d) or (_what_if(d) if d.keep_behind_s is not None else _terms(d))
    return f"{_scaling(d)}: {_load(d)}{_capacity(d)}; {why}"


def _full_stage(d: "Decision") -> str:
    """The load of a stage without a backlog of its own, where the backlog of the job gives no reason to scale up."""
    behind = max(d.keep_behind_s or 0.0, d.backlog_time_s or 0.0) > (d.backlog_time_target_s or 0.0)
    if not d.full_stage or behind:
        return ""
    load = share(d.load_ratio)
    return f"stage {d.bottleneck} would have to be busy {load} of the time; the load needs {workers(d.wanted_workers)}"


def scale_down(d: "Decision") -> str:
    """Why fewer workers are enough."""
    if policy_of(d.policy).follows_partitions:
        return f"{_scaling(d)}{_utilization(d)}: {_by_partitions(d)}"
    expected = "; fewer workers are expected to keep up" if d.utilization_ratio is None else ""
    room = "; a smaller size is tried, to learn the capacity" if tries_smaller_size(d) else expected
    same = d.change_workers is not None and d.change_workers == d.required_workers
    change = f"; {_change(d)}" if same and (d.change_behind_s or 0) >= 1 else ""
    return f"{_scaling(d)}{_utilization(d)}: {_load(d)}{_capacity(d)}{'' if d.bound.record.is_cap else room}{change}"


def _by_partitions(d: "Decision") -> str:
    """The size of a policy that follows the partitions, after the load, if that is known."""
    load = "" if d.throughput_records_per_s is None else f"{_load(d)}; "
    return f"{load}{_terms(d)}"


def hold(d: "Decision") -> str:
    """Why the size stays."""
    if policy_of(d.policy).follows_partitions:
        return f"{hold_prefix(d)}{_utilization(d)}: {_by_partitions(d)}"
    return f"{hold_prefix(d)}{_utilization(d)}: {_load(d)}{_capacity(d)}{_other_size(d)}"


def _utilization(d: "Decision") -> str:
    return "" if d.utilization_ratio is None else f" at {share(d.utilization_ratio)} {_resource(d)}utilization"


def _resource(d: "Decision") -> str:
    """The container's resource that is used most; "" for busy time, and where no source reports resources."""
    used = {name: value for signal, name in RESOURCES.items() if (value := getattr(d, signal)) is not None}
    fullest = max(used, key=used.__getitem__, default="")
    return f"{fullest} " if used and used[fullest] >= (d.utilization_ratio or 0.0) else ""


def _other_size(d: "Decision") -> str:
    """The size that was not taken: a bound prevents it, or it is not worth a rescale."""
    here, wanted = d.required_workers, d.wanted_workers
    if here is not None and wanted is not None and wanted != here:
        if d.bound is Bound.NONE and wanted < here:  # it fits the ready workers
            return f"; {ready_workers(d)}"
        more = d.keep_behind_s is not None and wanted > here
        return f"; {_what_if(d)}" if more else f"; the policy wants {workers(wanted)}"
    expected = _expected_backlog(d)
    if d.bound is not Bound.NONE or here is None or d.needed_workers is None:
        return expected
    needed = ceil(min(d.needed_workers, max(d.max_workers or inf, here)) - 1e-9)
    # Otherwise it only spreads the partitions evenly, or the measured capacity is out of date.
    if needed == here or (needed > here and (_is_capacity_unknown(d) or _is_half_idle(d))):
        return f"{expected}{_too_small(d)}"
    effect = "would be enough" if needed < here else "would restore headroom" if expected else "would fit the load"
    why = f"; {why_unchanged(d)}".removesuffix("; ")
    return f"{expected}{'.' if expected else ';'} {count(needed)} {effect}{why}"


def _is_half_idle(d: "Decision") -> bool:
    """Whether even the busiest subtask is idle half of the time, so that the job has headroom whatever its capacity."""
    busiest = d.busiest_subtask_ratio
    return busiest is not None and (d.utilization_ratio or 0.0) <= busiest <= _HALF_RATIO


def _too_small(d: "Decision") -> str:
    """The size that the mean load of the workers would allow; as far as is known, it carries too little."""
    if d.too_small_workers is None or d.reference_workers is None or d.too_small_workers >= d.reference_workers:
        return ""
    carry = "carries" if d.too_small_workers == 1 else "carry"
    expected = (d.input_rate_records_per_s or 0.0) * (d.expected_times or 1.0)
    highest = max(expected, d.forecast_input_rate_records_per_s or 0.0)
    tight = ", without headroom" if (d.too_small_capacity_records_per_s or 0.0) >= highest else ""
    return f"; {workers(d.too_small_workers)} {carry} {rate(d.too_small_capacity_records_per_s)} at most{tight}"


def why_unchanged(d: "Decision") -> str:
    """Why the policy keeps the present size although the load needs another one; "" if it has no outlook."""
    if d.calm is None:
        return ""
    if (d.needed_workers or 0.0) > (d.reference_workers or 0.0):
        return _why_no_scale_up(d)
    if d.blocking_rise_records_per_s is not None:
        rise = rate(d.blocking_rise_records_per_s)
        return f"no scale-down, because the input may rise by {rise} before a scale-up can take effect"
    if d.calm == 0:
        if d.throughput_records_per_s == 0:
            return "no scale-down while nothing is processed"
        is_short = (d.backlog_time_s or 0.0) < (d.short_backlog_time_s or 0.0)
        return (
            "no scale-down, because the backlog has just grown"
            if is_short
            else "no scale-down while there is a backlog"
        )
    return "a rescale does not pay yet"


def _why_no_scale_up(d: "Decision") -> str:
    if d.in_step:
        return "no scale-up before the next tick shows the new input in full"
    if _is_below_capacity(d):
        return f"no scale-up yet, because {workers(d.reference_workers)} could process more"
    if _is_capacity_unknown(d):
        return "no scale-up while the capacity is unknown and no backlog requires it"
    course = "stays" if (d.keep_behind_s or 0.0) <= (d.backlog_time_target_s or 0.0) else "falls"
    return f"the backlog time {course} below {seconds(d.backlog_time_target_s)} without a rescale"


def _is_capacity_unknown(d: "Decision") -> bool:
    """Whether a policy with an outlook expects nothing, because it does not know the capacity."""
    return d.calm is not None and d.keep_behind_s is None


def tries_smaller_size(d: "Decision") -> bool:
    """Whether the load is not known to need fewer workers, and the policy tries them."""
    return _is_capacity_unknown(d) and (d.needed_workers or 0.0) < min(d.keep_up_workers or 0.0, d.workers or 0.0)


def _expected_backlog(d: "Decision") -> str:
    """The backlog that is expected without a change within the horizon, which is LEAST_HORIZON_S or longer."""
    if d.keep_behind_s is None:
        return ""
    if (d.backlog_time_s or 0.0) >= max(d.keep_behind_s, 1.0):
        return "" if (d.growth_records_per_s or 0.0) > 0 else "; the backlog time is expected to fall"
    if d.keep_behind_s < 1:
        return f"; no backlog is expected within {soon(LEAST_HORIZON_S)}"
    if _is_below_capacity(d):
        reached = f"would reach {seconds(d.keep_behind_s)} in {soon(d.keep_after_s)}"
        return f"; at this throughput the backlog time {reached}"
    within = soon(max(d.keep_after_s or 0.0, LEAST_HORIZON_S))
    return f"; a backlog time of {at_most(d.keep_behind_s)} is expected within {within}"


def _is_below_capacity(d: "Decision") -> bool:
    """Whether a backlog over the target follows from the throughput, although the capacity would carry the input."""
    throughput, capacity, behind_s = d.throughput_records_per_s, d.capacity_records_per_s, d.keep_behind_s
    if throughput is None or capacity is None or behind_s is None or capacity <= throughput:
        return False
    ahead = d.forecast_input_rate_records_per_s or 0.0
    carried = max(d.input_rate_records_per_s or 0.0, ahead) <= capacity
    return carried and behind_s > max(d.backlog_time_s or 0.0, d.backlog_time_target_s or inf)


def _load(d: "Decision") -> str:
    stage = f"stage {d.stage} has " if d.stage else ""
    behind = f"{stage}backlog time {seconds(d.backlog_time_s)}{_worst(d)}"
    arriving = f"input {rate(d.input_rate_records_per_s)}{_forecast(d)}"
    return f"{behind}, {arriving}, throughput {rate(d.throughput_records_per_s)}"


def _worst(d: "Decision") -> str:
    """The partition furthest behind, where the sum hides it."""
    if not d.highest_partition_backlog_records or not d.partitions or not d.throughput_records_per_s:
        return ""
    partitions = d.partitions / max(1.0, d.hottest_partition_ratio or 0.0)  # as heavy as the hottest one
    behind_s = d.highest_partition_backlog_records * partitions / d.throughput_records_per_s
    hidden = behind_s > max(_HIDDEN_S, 2 * (d.backlog_time_s or 0.0))
    return f" ({seconds(behind_s)} in the worst partition)" if hidden else ""


def _forecast(d: "Decision") -> str:
    if d.expected_times is not None:
        return f" ({times(d.expected_times)} in an expected event)"
    ahead = d.forecast_input_rate_records_per_s
    differs = ahead is not None and rate(ahead) != rate(d.input_rate_records_per_s)
    return f" (forecast {rate(ahead)})" if differs else ""


def _capacity(d: "Decision") -> str:
    """The capacity, for the policies that size by it, unless the throughput shows it."""
    if not policy_of(d.policy).reads_capacity:
        return ""
    if d.capacity_records_per_s is None:
        return ", capacity unknown" if d.expected_times is None else ", capacity unknown: the event adds no workers"
    capacity = rate(d.capacity_records_per_s)
    observed = "" if capacity == rate(d.throughput_records_per_s) else f", capacity {capacity}"
    return {
        "observed": observed,
        "prior": f", capacity {capacity} (configured)",
        "estimated": f", capacity {capacity} (estimated)",
    }.get(d.confidence, "")


def _terms(d: "Decision") -> str:
    """The size that the policy wants, and the terms that lead to it."""
    need = f"the load needs {workers(d.wanted_workers)}"
    policy = policy_of(d.policy)
    if d.keep_up_workers is None:
        return f"{need} for {counted(d.partitions, 'segment')}" if policy.follows_partitions else need
    terms = f"{d.keep_up_workers:.1f} to keep up"
    if d.catch_up_workers is not None:
        catch_up = f"{d.catch_up_workers:.1f} to catch up"
        terms = f"{terms} plus {catch_up}" if policy.adds_terms else f"the larger of {terms} and {catch_up}"
    elif d.utilization_ratio is not None:
        terms += f",{_utilization(d)}"
    return f"{need}: {terms}{_rounding(d)}"


def _rounding(d: "Decision") -> str:
    total = ceil((d.keep_up_workers or 0) + (d.catch_up_workers or 0) - 1e-9)
    policy = policy_of(d.policy)  # the size of a policy that does not add its terms has other reasons to exceed them
    rounds = policy.adds_terms and policy.spreads_evenly
    return ", rounded up to spread the partitions evenly" if rounds and (d.wanted_workers or 0) > total else ""


def _what_if(d: "Decision") -> str:
    size = workers(d.reference_workers)
    after = f"in {soon(d.keep_after_s)}, {size} would have a backlog time of {seconds(d.keep_behind_s)}"
    # A backlog below the target is a reason only if it does not end soon.
    endless = (d.short_backlog_time_s or 0.0) < (d.keep_behind_s or 0.0) <= (d.backlog_time_target_s or 0.0)
    behind = f"{'is' if d.reference_workers == 1 else 'are'} {seconds(d.keep_behind_s)} behind now"
    now = f"would not catch up within {soon(LEAST_HORIZON_S)}" if endless else behind
    pace = "at this throughput, " if _is_below_capacity(d) else ""
    keep = f"{pace}{after if d.keep_after_s else f'{size} {now}'}"
    return f"{keep}; {_change(d)}" if d.change_behind_s is not None else keep


def _change(d: "Decision") -> str:
    never = d.caught_up_s is None or d.caught_up_s >= DAY_S
    end = "not catch up within a day" if never else f"catch up in {soon(d.caught_up_s)}"
    return f"{workers(d.change_workers)} would be {at_most(d.change_behind_s)} behind and {end}"
