"""The Kubernetes metrics API as functions: a request in, an answer out. No socket, no network, no clock of its own."""
