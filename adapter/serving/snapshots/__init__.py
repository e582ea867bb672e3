"""The snapshots that the pipeline publishes: their format, their transport, and the store of the newest one."""
