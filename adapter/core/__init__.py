"""Samples -> decisions. Pure: values in, values out.

Code in this folder knows numpy and the standard library's types. It knows no clock, file, log, thread, chance or
network: the time is in the samples. Unknown is NaN inside arrays and None at the edge; it is never 0.
No reduction runs across workloads, so a decision does not depend on who shares the shard.
"""
