"""What the adapter costs, measured on this machine: `python -m bench [NAME...]`. Nothing is asserted."""
