"""Metrics that another adapter has."""
