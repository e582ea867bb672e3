"""Edge out: the held snapshot as metrics API, as Prometheus metrics, as page and as table."""
