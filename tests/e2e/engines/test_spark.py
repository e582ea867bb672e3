"""Spark Structured Streaming on Kafka: standalone workers follow a load step through the HPA."""

import pytest
from parts.load_step import follow_a_load_step
from parts.spark_workload import SparkWorkload


@pytest.mark.full
def test_the_hpa_scales_spark_workers_with_a_load_step_and_back(spark_query: SparkWorkload) -> None:
    follow_a_load_step(spark_query)
