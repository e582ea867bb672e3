"""Measure the cost of the adapter on this machine: `python -m bench [NAME...]`. Nothing is asserted."""
