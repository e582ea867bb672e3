"""The shard of a workload. It never changes, so that the state survives every change of the cluster's size."""

from zlib import crc32

# Spark's hash spreads these keys evenly over 2, 4, 8 and 16 state partitions; 0..15 would leave 6 of 16 partitions
# empty. The order is part of the checkpoint's format.
SHARD_KEYS = (12, 16, 5, 1, 37, 20, 2, 35, 13, 6, 49, 7, 25, 15, 4, 0)


def shard_of(workload: str) -> int:
    """The shard key, one of SHARD_KEYS, of a workload "namespace/name"; the same in every process and release."""
    return SHARD_KEYS[crc32(workload.encode()) % len(SHARD_KEYS)]
