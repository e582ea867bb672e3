# The commands of a developer; `make` without a target lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ARGS ?=
SELECTION = e2e
# The tests with Spark mostly wait, so three processes fill two cores, and each begins at another place of the list.
PYTEST = $(BIN)/pytest --numprocesses 3 --dist worksteal
TOOLS = $(or $(BACKLOG_ADAPTER_TOOLS),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/backlog-adapter/tools)
HELM_DOCS = $(TOOLS)/helm-docs-1.14.2/helm-docs
# Without cached bytecode every process compiles every module, and pytest rewrites every assert again.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help run test test-full unit e2e e2e-all e2e-node e2e-scaling e2e-cluster e2e-components e2e-chart e2e-keda e2e-engines wire fuzz bench bench-policies bench-api picture chart dashboards dashboard-pictures tools tools-all lint format lock image clean need-java need-go need-maven

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: need-java $(READY) ## Run the adapter on a simulated fleet; ARGS="--for 120s" ends by itself
	$(BIN)/backlog-adapter run $(ARGS)

test: need-java lint ## Lint, types, import rules, unit tests and Spark tests
	$(PYTEST) -m "not e2e and not full" $(ARGS)

test-full: need-java $(READY) ## What test leaves out: a day of simulation, more damage to checkpoints
	$(PYTEST) -m "not e2e and full" $(ARGS)

unit: $(READY) ## The fast tests on all cores: no Java, no long simulations, no helm
	$(BIN)/pytest --numprocesses auto --dist worksteal --hypothesis-profile quick -m "not e2e and not spark and not simulation and not tools and not full" $(ARGS)

e2e: need-java tools $(READY) ## The core end-to-end tests on real Kafka, Prometheus, Pravega and Kubernetes
	$(MAKE) --jobs 2 e2e-scaling e2e-components e2e-node e2e-cluster e2e-chart SELECTION="e2e and not full"

e2e-all: need-java tools-all test-full ## test-full and all end-to-end tests, also with Flink, KEDA, a Spark cluster and a browser
	$(MAKE) --jobs 2 e2e-engines e2e-scaling e2e-components e2e-node e2e-cluster e2e-chart e2e-keda

# Each group has servers of its own and mostly waits, so two run side by side, the longest first. Three overload two
# cores.
e2e-scaling e2e-cluster e2e-components e2e-chart e2e-keda e2e-engines: e2e-%: $(READY)
	set -o pipefail; tests/e2e/run -v -m "$(SELECTION)" tests/e2e/$* $(ARGS) | sed --unbuffered 's/^/$*: /'

# The group with containers: beside a real node, where one can run.
e2e-node: $(READY)
	set -o pipefail; tests/e2e/run-on-node -v -m "$(SELECTION)" tests/e2e/node $(ARGS) | sed --unbuffered 's/^/node: /'

wire: $(READY) ## Replay recorded answers of a Go metrics server; FILE=recording.jsonl
	$(BIN)/python -m conformance $(FILE) $(ARGS)

fuzz: $(READY) ## Fuzz the metrics API for longer than the tests; EXAMPLES=n for each property
	FUZZ_EXAMPLES=$(or $(EXAMPLES),5000) $(BIN)/pytest tests/fuzz --timeout 3600 $(ARGS)

bench: need-java $(READY) ## Measure speed and memory
	$(BIN)/python -m bench $(ARGS)

bench-policies: need-java $(READY) ## Compare every policy and baseline on every trace; TRACES=folder PROFILES=a,b SEEDS=n DELAYS=0,120 DAYS=28 OUT=dir
	$(BIN)/python -m bench.policies $(if $(TRACES),--traces "$(TRACES)") $(if $(PROFILES),--profiles "$(PROFILES)") \
	  $(if $(SEEDS),--seeds "$(SEEDS)") $(if $(DELAYS),--delays "$(DELAYS)") $(if $(DAYS),--days "$(DAYS)") $(if $(OUT),--out "$(OUT)") $(ARGS)

bench-api: need-java $(READY) ## Measure the metrics API and, after `make tools`, a Go server: speed, memory, stalled clients
	$(BIN)/python -m bench.metrics_api $(ARGS)

picture: $(READY) ## Redraw docs/scenario.svg: one load step under every policy
	$(BIN)/python -m bench.picture

chart: $(READY) ## Write the chart's values.schema.json and, with helm-docs of `make tools-all`, its README.md
	$(BIN)/python -m charts.values_schema
	@if [ -x "$(HELM_DOCS)" ]; then "$(HELM_DOCS)" --chart-search-root charts --sort-values-order file --log-level warning; \
	  else echo "charts/backlog-adapter/README.md is not written: no $(HELM_DOCS); make tools-all"; fi

dashboards: $(READY) ## Write dashboards/*.json, and copy them and the rules into the chart
	$(BIN)/python -W ignore::DeprecationWarning -m dashboards.build

dashboard-pictures: need-java $(READY) ## Run the fleet for 12 minutes under the Prometheus of `make tools`, and draw docs/dashboards
	$(BIN)/python -m dashboards.render.demonstration

tools: need-go need-maven ## Build or fetch the real servers into a cache outside the tree
	tests/e2e/tools/build.sh

tools-all: need-go need-maven ## tools and those of e2e-all: Flink, KEDA, prometheus-adapter, a browser
	tests/e2e/tools/build.sh all

lint: $(READY) ## ruff, mypy, import-linter
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## Format and fix with ruff
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# A lock holds versions and hashes, and no address of a registry.
lock: ## Resolve requirements/*.lock from pyproject.toml
	$(PYTHON) -m venv $(VENV) && $(BIN)/pip install --quiet uv
	set -e; compile() { $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-annotate --no-emit-index-url --upgrade pyproject.toml "$${@:2}" --output-file requirements/$$1.lock; }; \
	compile serve; compile pipeline --extra pipeline; compile dev --extra pipeline --group dev

image: ## Build both images with docker, podman or buildah; REGISTRY=registry.example.com/team/ BASE=image@sha256:...
	REGISTRY=$(REGISTRY) BASE=$(BASE) image/build.sh $(ARGS)

clean: ## Remove build output; the cache of the tools stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist logs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed, found $$($(PYTHON) --version): install it (Debian: apt-get install python3 python3-venv), or run make PYTHON=python3.12"; exit 1; }
	@echo "Building $(VENV) once, in 1 to 3 minutes: 1.3 GB, most of it Spark and Arrow"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

need-java:
	@"$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | awk -F '"' '/version/ {split($$2, v, "."); found = 1; exit v[1] < 17} END {if (!found) exit 1}' || \
	  { echo "Java 17 or newer is needed: install it (Debian 12: apt-get install openjdk-17-jre-headless; Debian 13: openjdk-21-jre-headless) and put it on PATH, or set JAVA_HOME"; exit 1; }

need-go:
	@command -v go >/dev/null || { echo "Go is needed for the end-to-end tests: install it (Debian: apt-get install golang-go; 1.26 or newer, it fetches its own toolchain)"; exit 1; }

need-maven:
	@command -v mvn >/dev/null || { echo "Maven is needed for the end-to-end tests: install it (Debian: apt-get install maven)"; exit 1; }
