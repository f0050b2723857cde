# make help lists the targets.
# Each target sets up what it needs by itself; the second run needs no network.
PYTHON ?= python3
BIN := .venv/bin
DEMO ?= out/demo
RECORDS ?= 20000
EXTRAS := .[spark,checks,live,dev]
LOCK := requirements-dev.lock
# Two processes have Spark, and mostly wait for it: a third keeps two cores busy. WORKERS=0 runs all tests in one.
WORKERS ?= 3
SEED ?= $(shell date +%s)
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile
QUICK := -m "not long" --ignore tests/browser --ignore tests/broker --ignore tests/cluster --ignore tests/stores

.PHONY: help setup demo lint test test-wide test-shuffled test-long test-browser test-broker test-cluster test-stores test-clients bench docs lock clean java
.DEFAULT_GOAL := help

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' Makefile

setup: .venv/ready  ## make the virtual environment in .venv, with wheels and jars

# uv takes a quarter of pip's time, but does not read pip's configuration: pip where it finds no index.
.venv/ready: pyproject.toml $(LOCK) | java
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed; this is $$($(PYTHON) --version). Name another: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet uv && $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint $(LOCK) --editable '$(EXTRAS)' || \
	  $(BIN)/pip install --quiet --constraint $(LOCK) --editable '$(EXTRAS)' || \
	  { echo "The versions in $(LOCK) cannot be installed here: the newest ones that pyproject.toml allows are taken"; \
	    $(BIN)/pip install --quiet --editable '$(EXTRAS)'; }
	$(BIN)/python -m jobs.tables.session || \
	  { echo "Spark did not start, or Delta's jars did not come from Maven; the cause is above"; exit 1; }
	@touch $@

java:
	@java -version 2>&1 | awk -F'[".]' '/version/ { found = 1; exit $$2 < 17 } END { if (!found) exit 1 }' || \
	  { echo "Java 17 or later is needed by Spark: sudo apt-get install openjdk-17-jre-headless (or: brew install openjdk@17)"; exit 1; }

demo: setup  ## fill tables from the sample logs, write a report, print its path
	COORDINATOR_AUDIT_ENGINE__RUNNER=spark $(BIN)/coordinator-audit nightly data/samples/logs --config conf/small.yaml --tables $(DEMO)/tables --cluster sample --report $(DEMO)/report.html

lint: setup  ## linters, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint  ## linters and the quick tests
	$(PYTEST) $(QUICK) --ignore tests/differential --ignore tests/end_to_end

test-wide: lint  ## also the differential and end-to-end tests
	$(PYTEST) $(QUICK)

test-shuffled: setup  ## the quick tests in another order and with another seed each time (SEED=1234: those of that seed)
	$(PYTEST) $(QUICK) --ignore tests/differential --ignore tests/end_to_end -p randomly --randomly-seed $(SEED)

test-long: setup  ## the tests that take minutes each
	$(BIN)/python -m pytest -m long --ignore tests/cluster --ignore tests/stores

test-browser: setup  ## the report in Chromium
	@test -x /usr/bin/chromium || { echo "Chromium is needed: sudo apt-get install chromium"; exit 1; }
	@$(BIN)/python -c 'import playwright' 2>/dev/null || \
	  { echo "playwright is needed: $(BIN)/pip install '.[browser]' (it needs no browser of its own)"; exit 1; }
	$(BIN)/python -m pytest tests/browser

test-broker: setup  ## tests against a real Kafka broker
	@for tool in javac mvn; do command -v $$tool >/dev/null || { \
	  echo "$$tool is needed by the broker tests: sudo apt-get install openjdk-17-jdk-headless maven"; exit 1; }; done
	$(BIN)/python -m pytest tests/broker

test-cluster: setup  ## nights on a Spark cluster of this machine, with killed processes (RECORDS=20000)
	$(BIN)/python -m pytest tests/cluster --cluster-records $(RECORDS)

test-stores: setup  ## nights into an object store: a server of S3 on this machine
	@$(BIN)/python -c 'import moto' 2>/dev/null || { echo "moto is needed: $(BIN)/pip install '.[stores]'"; exit 1; }
	$(BIN)/python -m pytest tests/stores

test-clients: setup  ## nights by clients of other versions of Spark and Python, each in an environment of its own
	$(BIN)/python -m tests.clients

bench: setup  ## benchmarks, as ratios to named references
	$(BIN)/python -m benchmarks

docs: setup  ## build the documentation into site/
	$(BIN)/mkdocs build --strict

lock: setup  ## write the versions of all dependencies to requirements-dev.lock again
	$(BIN)/uv pip compile pyproject.toml --extra spark --extra checks --extra live --extra dev --universal --upgrade --quiet \
	  --python-version 3.11 --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' --output-file $(LOCK)

clean:  ## remove what demo and Spark wrote
	rm -rf out spark-warehouse metastore_db derby.log
