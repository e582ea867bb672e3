"""The names of the external metrics: one list for the API, for the HPAs that are looked for, and for the recipes."""

METRIC_NAMES = (
    "required_workers",
    "required_workers_padded",
    "backlog_time_seconds",
    "drain_time_seconds",
    "backlog",
    "backlog_growth",
    "backlog_growth_signed",
    "throughput",
    "input_rate",
    "forecast_input_rate",
    "utilization",
    "relative_lag_change",
    "segments",
    "pods_advised",
)
