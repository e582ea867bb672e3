# Two images: `serve` has neither Java nor Spark, `pipeline` has both.
FROM python:3.13-slim AS build
WORKDIR /src
COPY requirements requirements
COPY pyproject.toml README.md LICENSE ./
COPY adapter adapter
RUN python -m venv /opt/backlog-adapter \
 && /opt/backlog-adapter/bin/pip install --no-cache-dir --require-hashes --requirement requirements/serve.lock \
 && /opt/backlog-adapter/bin/pip install --no-cache-dir --no-deps .

FROM build AS build-pipeline
RUN /opt/backlog-adapter/bin/pip install --no-cache-dir --require-hashes --requirement requirements/pipeline.lock

FROM python:3.13-slim AS serve
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin adapter
COPY --from=build /opt/backlog-adapter /opt/backlog-adapter
USER 10001:10001
ENV PATH=/opt/backlog-adapter/bin:$PATH
EXPOSE 6443
ENTRYPOINT ["/opt/backlog-adapter/bin/backlog-adapter"]
CMD ["serve", "--config", "/etc/backlog-adapter/config.yaml"]

FROM python:3.13-slim AS pipeline
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-21-jre-headless && rm -rf /var/lib/apt/lists/*
# Hadoop, inside Spark, needs an entry in /etc/passwd for its user.
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin adapter
COPY --from=build-pipeline /opt/backlog-adapter /opt/backlog-adapter
USER 10001:10001
ENV PATH=/opt/backlog-adapter/bin:$PATH
EXPOSE 8443
ENTRYPOINT ["/opt/backlog-adapter/bin/backlog-adapter"]
CMD ["pipeline", "--config", "/etc/backlog-adapter/config.yaml"]
