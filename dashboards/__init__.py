"""Grafana dashboards and Prometheus rules; not part of the images."""
