"""The recorded answers of a Go metrics server, replayed against this one: `python -m conformance`."""
