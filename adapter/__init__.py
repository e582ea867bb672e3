"""A Kubernetes metrics adapter that sizes streaming jobs by their backlog, and says why."""

__version__ = "0.1.0"
