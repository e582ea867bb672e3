"""Our signals as metrics of the Kubernetes API."""
