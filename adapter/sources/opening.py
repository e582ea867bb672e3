"""A name in the configuration -> the source it stands for, opened."""

from adapter.config import Config
from adapter.sources import Source


def open_source(config: Config, name: str) -> Source:
    """Open one source. Each system's client is imported only where that system is read."""
    settings = config.sources[name]
    match settings.kind:
        case "prometheus":
            from adapter.sources.prometheus import PrometheusReader, queries

            return PrometheusReader(name, settings, queries(config, name))
        case "kafka":
            from adapter.sources import kafka

            return kafka.KafkaReader(name, settings, kafka.readings(config, name))
        case "pravega":
            from adapter.sources import pravega

            return pravega.PravegaReader(name, settings, pravega.readings(config, name))
        case "kubernetes":
            from adapter.sources.kubernetes import KubernetesReader

            return KubernetesReader(name, settings)
        case "trace":
            from adapter.sources.trace import TraceReader

            return TraceReader(name, settings)
