"""The external metrics that are served, by name; DESIGN.md says what each means."""

METRIC_NAMES = (
    "required_workers",
    "required_workers_padded",
    "backlog_time_seconds",
    "drain_time_seconds",
    "backlog",
    "backlog_growth",
    "throughput",
    "input_rate",
    "forecast_input_rate",
    "utilization",
    "relative_lag_change",
    "highest_partition_backlog",
    "segments",
    "pods_advised",
)
