"""Draws the dashboards from a Prometheus, for documents."""
