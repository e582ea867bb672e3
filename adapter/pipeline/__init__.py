"""Spark, live: the sources as one stream, folded shard by shard, published tick by tick."""
