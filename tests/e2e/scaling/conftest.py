"""An adapter that reads Kafka and Prometheus."""

import pytest
from parts.adapter import Systems
from parts.broker import Broker
from parts.prometheus import Prometheus


@pytest.fixture(scope="session")
def systems(broker: Broker, prometheus: Prometheus) -> Systems:
    return Systems(broker=broker, prometheus=prometheus)
