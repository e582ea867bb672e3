#!/usr/bin/env bash
# Builds the product's images as `make image` does, and unpacks them with CoreDNS and pause into a root of containerd.
#   images.sh name: the name of the result, by a hash of all that goes into it
#   images.sh build FOLDER: builds it. TOOLS is the cache of tests/e2e/tools/build.sh, PARTS its base and CoreDNS
# Layers stay in TOOLS/image-store, so a change of the code rebuilds only the layer of the code.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$here/../../.." && pwd)
kubernetes=1.36.3 pause=3.10

inputs() {
  cd "$project"
  find Dockerfile .dockerignore adapter image requirements pyproject.toml README.md LICENSE "$here/images.sh" \
    "$here/coredns" "$here/node/containerd.toml" -type f ! -path '*/__pycache__/*' | LC_ALL=C sort
}
name() { inputs | (cd "$project" && xargs sha256sum) | sed "s#$project/##" | sha256sum | cut -c 1-12 | sed 's/^/images-/'; }

store() { buildah --root "$TOOLS/image-store" --runroot "$scratch/runroot" --storage-driver overlay "$@"; }

# An image of one static program, as an archive.
program_image() {  # program_image FILE NAME:TAG
  local container program
  program=/$(basename "$1")
  container=$(store from scratch)
  store copy -q "$container" "$1" "$program"
  store config --entrypoint "[\"$program\"]" "$container"
  store commit -q --rm "$container" "docker-archive:$scratch/${program#/}.tar:localhost/$2" >/dev/null
}

# The distribution's packages in place of Docker's image of the same name.
base_image() {
  local container
  store inspect --type image localhost/python:3.13-slim >/dev/null 2>&1 && return
  container=$(store from scratch)
  store add -q "$container" "$TOOLS/$BASE_PART/base.tar" / >/dev/null
  store run "$container" -- ln -sf /usr/bin/python3 /usr/local/bin/python
  store commit -q --rm "$container" localhost/python:3.13-slim >/dev/null
}

# The image's package installers need this machine's CA bundle and package index.
product_images() {
  local index engine
  index=$(python3 -m pip config get global.index-url 2>/dev/null || true)
  printf '[global]\ncert = /run/host-ca.crt\n%s\n' "${index:+index-url = $index}" > "$scratch/pip.conf"
  engine="buildah --root $TOOLS/image-store --runroot $scratch/runroot --storage-driver overlay"
  ENGINE=$engine REGISTRY=localhost/ "$project/image/build.sh" --quiet --layers --network host --pull-never \
    --volume "$scratch/pip.conf:/etc/pip.conf:ro" \
    --volume /etc/ssl/certs/ca-certificates.crt:/run/host-ca.crt:ro >/dev/null
  for role in serve pipeline; do
    store push -q "localhost/backlog-adapter-$role:$version" \
      "docker-archive:$scratch/$role.tar:localhost/backlog-adapter-$role:$version"
  done
}

# A containerd of its own, in namespaces of its own: it neither sees nor disturbs one of the system.
unpack() {  # unpack FOLDER ARCHIVE ...
  unshare --mount --pid --fork --kill-child --mount-proc bash -euc '
    folder=$1 config=$2; shift 2
    mkdir -p "$folder/lib"
    mount -t tmpfs run /run && mount --bind "$folder/lib" /var/lib
    containerd --config "$config" --log-level error > "$folder/containerd.log" 2>&1 & server=$!
    until ctr version >/dev/null 2>&1; do kill -0 $server || { cat "$folder/containerd.log"; exit 1; }; sleep 0.1; done
    for archive in "$@"; do ctr --namespace k8s.io images import "$archive" >/dev/null; done
    kill $server && wait $server || true
    rm -rf "$folder/lib/containerd/io.containerd.grpc.v1.cri"
  ' unpack "$1" "$here/node/containerd.toml" "${@:2}"
}

build() {  # build FOLDER
  export BUILDAH_ISOLATION=chroot
  version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$project/pyproject.toml")
  scratch=$1/scratch
  mkdir -p "$scratch" "$TOOLS/image-store"
  store rm --all >/dev/null 2>&1 || true  # of a build that was interrupted
  gcc -Os -static -s "-DVERSION=$pause" -o "$scratch/pause" \
    "$(go env GOMODCACHE)/k8s.io/kubernetes@v$kubernetes/build/pause/linux/pause.c"
  base_image
  program_image "$scratch/pause" "pause:$pause"
  program_image "$TOOLS/$COREDNS_PART/coredns" coredns:1
  product_images
  unpack "$1" "$scratch"/*.tar
  rm -rf "$scratch"
}

"$@"
