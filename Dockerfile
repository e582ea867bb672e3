# Two images: `serve` has neither Java nor Spark, `pipeline` has both. docs/images.md describes them.
# Debian 13 or newer (Java 21) with Python 3.11 or newer as /usr/local/bin/python, also by digest: BASE=python:3.13-slim@sha256:...
ARG BASE=python:3.13-slim

# The locked requirements, without the code: this layer changes only with a lock.
FROM ${BASE} AS serve-requirements
COPY requirements/serve.lock /src/requirements/
RUN python -m venv --without-pip /opt/backlog-adapter \
 && python -m pip --python /opt/backlog-adapter/bin/python install --no-cache-dir --require-hashes \
      --requirement /src/requirements/serve.lock
COPY image /src/image
RUN /opt/backlog-adapter/bin/python /src/image/prune.py /src/image/unneeded.txt \
 && /opt/backlog-adapter/bin/python /src/image/sbom.py /src/requirements/serve.lock > /opt/backlog-adapter/sbom.cdx.json

FROM ${BASE} AS pipeline-requirements
COPY requirements/pipeline.lock /src/requirements/
RUN python -m venv --without-pip /opt/backlog-adapter \
 && python -m pip --python /opt/backlog-adapter/bin/python install --no-cache-dir --require-hashes \
      --requirement /src/requirements/pipeline.lock
COPY image /src/image
RUN /opt/backlog-adapter/bin/python /src/image/prune.py /src/image/unneeded.txt \
 && /opt/backlog-adapter/bin/python /src/image/sbom.py /src/requirements/pipeline.lock > /opt/backlog-adapter/sbom.cdx.json

# The modules of Java that Spark uses, a third of a whole Java.
FROM ${BASE} AS java
RUN apt-get update && apt-get install -y --no-install-recommends openjdk-21-jdk-headless binutils
RUN jlink --output /opt/java --strip-debug --no-header-files --no-man-pages --compress zip-6 --generate-cds-archive \
      --add-modules java.se,jdk.charsets,jdk.crypto.ec,jdk.httpserver,jdk.incubator.vector,jdk.management,jdk.net,jdk.security.auth,jdk.unsupported,jdk.zipfs

# The code alone, in the layout of the virtual environment.
FROM ${BASE} AS code
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY adapter adapter
RUN python -m venv --without-pip /opt/backlog-adapter \
 && python -m pip --python /opt/backlog-adapter/bin/python install --no-cache-dir --no-deps --prefix /code .

FROM ${BASE} AS serve
COPY --from=serve-requirements /opt/backlog-adapter /opt/backlog-adapter
COPY --from=code /code /opt/backlog-adapter
ENV PATH=/opt/backlog-adapter/bin:$PATH
# A number, so that Kubernetes can see that it is not root. Any other user works too.
USER 10001:10001
EXPOSE 6443
ENTRYPOINT ["/opt/backlog-adapter/bin/backlog-adapter"]
CMD ["serve", "--config", "/etc/backlog-adapter/config.yaml"]
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="backlog-adapter-serve" \
      org.opencontainers.image.description="Serves metrics of streaming jobs to HorizontalPodAutoscalers" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

FROM ${BASE} AS pipeline
COPY --from=java /opt/java /opt/java
COPY --from=pipeline-requirements /opt/backlog-adapter /opt/backlog-adapter
COPY --from=code /code /opt/backlog-adapter
ENV PATH=/opt/backlog-adapter/bin:/opt/java/bin:$PATH JAVA_HOME=/opt/java
USER 10001:10001
EXPOSE 8443
ENTRYPOINT ["/opt/backlog-adapter/bin/backlog-adapter"]
CMD ["pipeline", "--config", "/etc/backlog-adapter/config.yaml"]
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="backlog-adapter-pipeline" \
      org.opencontainers.image.description="Sizes streaming jobs by their backlog, on Spark Structured Streaming" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
