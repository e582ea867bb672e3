#!/usr/bin/env bash
# Builds or fetches each version of the real servers once, into a cache outside the tree. With the argument `all` also
# those of the full set. It can be interrupted: a finished part is moved into place as a whole.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tools=${BACKLOG_ADAPTER_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/backlog-adapter/tools}
goserver=$(cd "$here/../../../bench/goserver" && pwd)
kubernetes=1.36.3 helm=4.3.1 prometheus=0.315.0 kafka=4.3.1 pravega=0.13.0
keda=2.21.0 prometheus_adapter=0.12.0 flink=2.3.0 spark_kafka=4.2.0
kubeconform=0.8.0 helm_docs=1.14.2 openapi="1.31.14 1.33.6 $kubernetes"
prometheus_operator=github.com/prometheus-operator/prometheus-operator@v0.85.0
cert_manager=github.com/cert-manager/cert-manager@v1.21.2
coredns=1.15.0 base=base-trixie-1
mkdir -p "$tools"

# Two builders at a time would compile everything twice.
exec 9>"$tools/.lock"
flock 9

part() {  # part NAME-VERSION FUNCTION
  local place=$tools/$1 partial=$tools/.partial-$1
  [ -d "$place" ] && return
  local began=$SECONDS
  echo "tools: $1"
  rm -rf "$partial" && mkdir -p "$partial"
  (set -e; "$2" "$partial")
  mv "$partial" "$place"
  echo "tools: $1: $((SECONDS - began)) s"
}

build_kubernetes() {  # build_kubernetes FOLDER PROGRAM ...
  local v=k8s.io/component-base/version programs=("${@:2}")
  local flags="-s -w -X $v.gitVersion=v$kubernetes -X $v.gitMajor=1 -X $v.gitMinor=36"
  cd "$here/controlplane"
  # One call links a program, with one CPU, while it compiles the next.
  go build -trimpath -ldflags="$flags" -o "$1/" "${programs[@]/#/k8s.io/kubernetes/cmd/}"
}
build_controlplane() {
  build_kubernetes "$1" kube-apiserver kube-controller-manager kubectl
  go build -trimpath -ldflags='-s -w' -o "$1/etcd" go.etcd.io/etcd/server/v3
}

# The OpenAPI documents of the oldest, a middle and the newest release, as its API server publishes them.
build_openapi() {
  local version module
  for version in $openapi; do
    module=k8s.io/kubernetes@v$version
    go mod download "$module"
    mkdir "$1/${version%.*}"
    cp "$(go env GOMODCACHE)/$module"/api/openapi-spec/v3/api*_openapi.json "$1/${version%.*}/"
  done
  go mod download "$prometheus_operator" "$cert_manager"
  mkdir "$1/crds"
  cp "$(go env GOMODCACHE)/$prometheus_operator"/example/prometheus-operator-crd/monitoring.coreos.com_{service,pod}monitors.yaml \
    "$(go env GOMODCACHE)/$prometheus_operator"/example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml "$1/crds/"
  cp "$(go env GOMODCACHE)/$cert_manager"/deploy/crds/cert-manager.io_{certificates,issuers}.yaml "$1/crds/"
  chmod -R u+w "$1"
}
build_kubeconform() { GOBIN=$1 go install -trimpath -ldflags='-s -w' "github.com/yannh/kubeconform/cmd/kubeconform@v$kubeconform"; }
build_helm_docs() { GOBIN=$1 go install -trimpath -ldflags='-s -w' "github.com/norwoodj/helm-docs/cmd/helm-docs@v$helm_docs"; }
build_node() { build_kubernetes "$1" kubelet kube-scheduler kube-proxy; }
build_coredns() {
  cd "$here/coredns"
  CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$1/" .
}

build_helm() { GOBIN=$1 go install -trimpath -ldflags='-s -w' "helm.sh/helm/v4/cmd/helm@v$helm"; }

# `go install` refuses a module with replace lines, so the source is copied and built in place.
build_module() {  # build_module FOLDER MODULE@VERSION [OPTION OF go build ...] PACKAGE ...
  local folder=$1 module=$2
  shift 2
  go mod download "$module"
  cp -r "$(go env GOMODCACHE)/$module" "$folder/source"
  chmod -R u+w "$folder/source"
  cd "$folder/source" && rm -f go.work
  go build -trimpath -ldflags='-s -w' -o "$folder/" "$@"
}
build_prometheus() {
  build_module "$1" "github.com/prometheus/prometheus@v$prometheus" -tags remove_all_sd ./cmd/prometheus
  rm -rf "$1/source"
}
build_promtool() {
  build_module "$1" "github.com/prometheus/prometheus@v$prometheus" -tags remove_all_sd ./cmd/promtool
  rm -rf "$1/source"
}
build_prometheus_adapter() {
  build_module "$1" "sigs.k8s.io/prometheus-adapter@v$prometheus_adapter" ./cmd/adapter
  rm -rf "$1/source"
}
# 11 minutes of CPU, most of them for the clients of its other triggers.
build_keda() {
  build_module "$1" "github.com/kedacore/keda/v2@v$keda" ./cmd/operator ./cmd/adapter
  mv "$1/source/config/crd/bases" "$1/crd"
  rm -rf "$1/source"
}

# Its version is a hash of its source; programs find it by the link without a version.
build_goserver() { "$goserver/build.sh" "$1"; }
of_goserver() { cat "$goserver"/{go.mod,go.sum,build.sh,cmd/*/*.go} | sha256sum | cut -c 1-12; }

copy_jars() {  # copy_jars POM FOLDER
  mvn -q -B -ntp -f "$here/$1/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$2/libs"
}
build_kafka() { copy_jars kafka "$1"; }
build_pravega() { copy_jars pravega "$1"; }
build_spark_kafka() { copy_jars spark "$1"; }
# The distribution is a Python package, with hash; the connector comes from Maven, and the job is compiled here.
build_flink() {
  python3 -m pip download --quiet --no-deps --require-hashes --requirement "$here/flink/requirements.txt" --dest "$1/wheel"
  python3 -m zipfile --extract "$1"/wheel/*.whl "$1/wheel"
  copy_jars flink "$1"
  mv "$1"/wheel/pyflink/lib/*.jar "$1/libs/"
  mkdir "$1/plugins" "$1/classes"
  mv "$1/wheel/pyflink/plugins/metrics-prometheus" "$1/plugins/"
  javac -d "$1/classes" -cp "$1/libs/*" "$here/flink/PacedJob.java"
  rm -rf "$1/wheel"
}

# The node tests run the product's images in containers on a real kubelet. What they need beyond Go is a package.
readonly node_packages=(containerd runc containernetworking-plugins nftables iptables conntrack buildah mmdebstrap gcc libc6-dev)
missing_packages() {
  local package
  for package in "${node_packages[@]}"; do
    [ "$(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}
# Prints why no node can run here; nothing where one can.
node_fault() {
  [ "$(id -u)" = 0 ] || { echo "a node needs root"; return; }
  local reason
  reason=$(unshare --net --mount --pid --fork --kill-child --mount-proc true 2>&1) || { echo "no namespaces: $reason"; return; }
  [ -e /sys/fs/cgroup/memory/cgroup.procs ] || { echo "a node needs cgroup version 1 hierarchies here"; return; }
  command -v dpkg-query apt-get >/dev/null || { echo "the packages of a node come from apt, and there is none"; return; }
  local missing began=$SECONDS
  missing=$(missing_packages | tr '\n' ' ')
  [ -n "$missing" ] || return 0
  echo "tools: $missing" >&2
  if (apt-get -qq update && install_packages $missing) >&2; then echo "tools: packages: $((SECONDS - began)) s" >&2; return; fi
  echo "apt-get does not install $missing"
}
install_packages() { DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@"; }

build_base() {
  local mirror
  # A machine has one of the two files.
  mirror=$(sed -n 's/^URIs: //p; s/^deb \(\[[^]]*\] \)\?\(http[^ ]*\) .*/\2/p' /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1) || true
  mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Retries "3"' --include=python3,python3-venv,python3-pip,ca-certificates trixie "$1/base.tar" \
    ${mirror:+"deb $mirror trixie main"}
}
build_images() { bound_image_store; TOOLS=$tools BASE_PART=$base COREDNS_PART=$(of_coredns) "$here/images.sh" build "$1"; }
of_coredns() { echo "coredns-$coredns-$(cat "$here"/coredns/{go.mod,go.sum,main.go} | sha256sum | cut -c 1-12)"; }

# The layers of every checkout stay in the store, 3 GB after the first: a full one starts again.
bound_image_store() {
  # A build that was interrupted leaves its layers mounted.
  ! mountpoint -q "$tools/image-store/overlay" || umount --recursive "$tools/image-store/overlay"
  [ ! -d "$tools/image-store" ] || [ "$(du -sm "$tools/image-store" | cut -f 1)" -lt 10240 ] || rm -rf "$tools/image-store"
}

# An image cache takes gigabytes: of the older ones only the last stays, for another checkout.
forget_old_images() {
  local old
  for old in $(ls -dt "$tools"/images-* | tail -n +3); do rm -rf "$old"; done
}

fault=$(node_fault)
[ -z "$fault" ] || echo "tools: no node: $fault. The tests on a node are skipped"

build_downloads() {
  part "kafka-$kafka" build_kafka
  part "pravega-$pravega" build_pravega
  [ -z "$fault" ] || return 0
  part "$(of_coredns)" build_coredns
  part "$base" build_base
  local images
  images=$("$here/images.sh" name)
  part "$images" build_images
  touch "$tools/$images"
  forget_old_images
}
build_programs() {
  part "controlplane-$kubernetes" build_controlplane
  part "helm-$helm" build_helm
  part "kubeconform-$kubeconform" build_kubeconform
  part "openapi-${openapi// /-}" build_openapi
  part "prometheus-$prometheus" build_prometheus
  part "promtool-$prometheus" build_promtool
  part "goserver-$(of_goserver)" build_goserver
  [ -L "$tools/goserver" ] || rm -rf "$tools/goserver"
  ln -sfn "goserver-$(of_goserver)" "$tools/goserver"
  [ -n "$fault" ] || part "node-$kubernetes" build_node
}

# Downloads and images wait for the network while the compiler uses the CPUs. They are a process group of their own, so
# that all of it ends with this script.
set -m
build_downloads &
downloads=$!
set +m
trap 'kill -- "-$downloads" 2>/dev/null || true' EXIT
build_programs
wait "$downloads"
trap - EXIT

[ "${1:-}" = all ] || exit 0
part "helm-docs-$helm_docs" build_helm_docs
part "keda-$keda" build_keda
part "prometheus-adapter-$prometheus_adapter" build_prometheus_adapter
part "spark-kafka-$spark_kafka" build_spark_kafka
if command -v javac >/dev/null; then part "flink-$flink" build_flink
else echo "tools: no javac, so Flink is not tested; install a JDK (Debian 12: openjdk-17-jdk-headless)" >&2; fi

# The tests of the report page use the browser of the system. Without one they are skipped.
ensure_chromium() {
  local name
  for name in "${BACKLOG_ADAPTER_CHROMIUM:-chromium}" chromium-browser google-chrome google-chrome-stable; do
    command -v "$name" >/dev/null && return
  done
  echo "tools: chromium"
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium && return
  fi
  echo "tools: no Chromium or Chrome is installed, so the report page is not tested; install the package chromium" >&2
}

ensure_chromium
