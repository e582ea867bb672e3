"""The source of the dashboards."""
