"""Serve the newest snapshot: as metrics API, as Prometheus metrics, as a page and as a table."""
