"""The real programs of the end-to-end tests, one a module, and the stand-in for the kubelet."""
