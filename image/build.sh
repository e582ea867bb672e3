#!/usr/bin/env bash
# Builds both images with docker, podman or buildah, the first that works; the arguments go to its build command.
# REGISTRY=registry.example.com/team/ goes before their names. BASE=python:3.13-slim@sha256:... is the base image.
# ENGINE names another program, with its options.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)

# An installed client is not enough: docker needs its daemon, podman and buildah need user namespaces or root.
working_engine() {
  local reasons='' reason
  for engine in 'docker version' 'podman info' 'buildah info'; do
    reason=$($engine 2>&1 >/dev/null) && { echo "${engine%% *}"; return; }
    reasons+="  ${engine}: $(tail -n 1 <<<"$reason")"$'\n'
  done
  printf 'no working container engine: install and start docker, podman or buildah\n%s' "$reasons" >&2
  return 1
}

engine=${ENGINE:-$(working_engine)}
for role in serve pipeline; do
  $engine build --target "$role" --tag "${REGISTRY:+${REGISTRY%/}/}backlog-adapter-$role:$version" \
    ${BASE:+--build-arg "BASE=$BASE"} --build-arg "VERSION=$version" --build-arg "REVISION=$revision" "$@" .
done
