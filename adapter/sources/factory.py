"""Open the source of a name in the configuration."""

from adapter.config import Config
from adapter.sources import Source


def open_source(config: Config, name: str) -> Source:
    """Open one source. The client library of a system is imported only if the configuration reads that system."""
    settings = config.sources[name]
    match settings.kind:
        case "prometheus":
            from adapter.sources.prometheus import PrometheusReader
            from adapter.sources.prometheus_plan import queries

            return PrometheusReader(name, settings, queries(config, name))
        case "kafka":
            from adapter.sources.kafka import KafkaReader
            from adapter.sources.kafka_plan import read_plan

            return KafkaReader(name, settings, read_plan(config, name))
        case "pravega":
            from adapter.sources.pravega import PravegaReader, stream_reads

            return PravegaReader(name, settings, stream_reads(config, name))
        case "kubernetes":
            from adapter.sources.kubernetes import KubernetesReader

            return KubernetesReader(name, settings)
        case "trace":
            from adapter.sources.trace import TraceReader

            return TraceReader(name, settings)
