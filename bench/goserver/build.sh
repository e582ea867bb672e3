#!/bin/sh
# Builds the metrics server and the load generator of this module into a directory: build.sh OUT_DIR
set -eu
[ $# -eq 1 ] || { echo "build.sh: expected one argument, the directory for the binaries" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
go build -trimpath -o "$out/" ./cmd/server ./cmd/load
