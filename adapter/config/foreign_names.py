"""Names of settings in other programs, such as KEDA, or in another place, with what stands for them here."""

from collections.abc import Mapping

_LARGEST = "maxReplicas of the HPA limits the size, as does rules.max_workers"
_LEAST = "minReplicas of the HPA limits the size, as does rules.min_workers"
_SLOTS = "its equivalent is rules.slots_per_worker"

FOREIGN_NAMES: Mapping[str, str] = {
    "maxReplicas": _LARGEST,
    "maxReplicaCount": _LARGEST,
    "minReplicas": _LEAST,
    "minReplicaCount": _LEAST,
    "scaleTargetRef": "the HPA names the scale target",
    "lagThreshold": "drain sizes by time, not by records: set rules.backlog_time_target_s",
    "pollingInterval": "its equivalent is timing.tick_s",
    "cooldownPeriod": "it concerns 0 replicas alone; for other scale-downs set rules.cooldown_down_s",
    "topics": "only the `read` of a workload names topics; a fleet reads those in which a group has committed offsets",
    "numberOfTaskSlots": _SLOTS,
    "taskmanager.numberOfTaskSlots": _SLOTS,
    "job.autoscaler.target.utilization": "its equivalent is rules.target_utilization_ratio",
    "job.autoscaler.utilization.target": "its equivalent is rules.target_utilization_ratio",
    "job.autoscaler.restart.time": "its equivalent is rules.rescale_pause_s",
    "job.autoscaler.catch-up.duration": "drain derives it from rules.rescale_pause_s; "
    "dataflow has rules.time_to_reduce_backlog_s",
    "job.autoscaler.stabilization.interval": "its equivalent is rules.settle_s",
    "job.autoscaler.metrics.window": "its equivalent is rules.rate_window_s",
    "job.autoscaler.scale-down.interval": "drain needs no delay; the nearest setting is rules.cooldown_down_s",
}

# Names that other programs give to settings, which difflib finds too different.
SYNONYMS: Mapping[str, str] = {
    "type": "kind",
    "brokers": "bootstrap_servers",
    "consumer_group": "group",
    "consumerGroup": "group",
    "serverAddress": "url",
}
