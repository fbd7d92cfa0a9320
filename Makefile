.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test ui bench chaos crash cuts lint schema lock clean

PORT ?= 8080
ROOT ?= .sluice

BIN := .venv/bin
INSTALLED := .venv/.installed
READY := .venv/.ready
BROWSER := .venv/.browser
DUCKDB := .venv/.duckdb
LANDING ?= $(if $(wildcard $(ROOT)/landing),$(ROOT)/landing,landing)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(READY) ## Make .venv with the locked packages, fetch the locked jars, archive the JVM's classes

$(INSTALLED): requirements.lock pyproject.toml
	@python=$$(sh include/sluice/setup/check.sh) && { test -x $(BIN)/python || "$$python" -m venv .venv; }
	@# The lock installs its own installer first; pip takes over where uv cannot reach the index (it does not read pip's settings).
	@awk '/^uv==/ { on = 1 } on { print } on && !/\\$$/ { exit }' requirements.lock > .venv/uv.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r .venv/uv.lock
	@# Compiled here: where a run may not write beside them (a container's user, PYTHONDONTWRITEBYTECODE), each start would compile them anew.
	$(BIN)/uv pip install -q --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.lock \
	  || $(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q include/sluice
	@touch $@

$(READY): $(INSTALLED) include/sluice/setup/jars.lock.json
	$(BIN)/sluice jars fetch core
	$(BIN)/python -m sluice.warmup
	@touch $@

$(BROWSER): $(INSTALLED)
	$(BIN)/python -m sluice.setup.browser
	@touch $@

demo: $(READY) ## Land four days of orders and let Airflow drain them: four runs, four reports; NAME=cloudtrail a worked pipeline, a run a landing
	@$(if $(filter devices,$(NAME)),$(BIN)/sluice jars fetch kafka broker)
	@$(BIN)/python -m sluice.demo $(NAME)

test: $(READY) $(BROWSER) ## Run the linters and the tests, layer by layer; with LONG=1 further cases of some as well
	@$(BIN)/sluice jars fetch core avro kafka broker jdbc s3
	@SLUICE_LONG=$(or $(LONG),$(SLUICE_LONG)) $(BIN)/python tests/run.py

ui: $(READY) ## Start Airflow with the project's DAGs at PORT, over the tables in ROOT
	@LANDING="$(LANDING)" $(BIN)/python -m sluice.orchestration.serve --port $(PORT) --root $(ROOT)

bench: $(READY) $(DUCKDB) ## Measure runs against hand-written PySpark and DuckDB in SIZE pairs, a first load of ROWS; ONLY=P4,P7 some of them; GROUP=growth what grows, GROUP=days fifty days, GROUP=state what Spark keeps, GROUP=gold a gold table that is refreshed
	@$(BIN)/sluice jars fetch kafka broker
	@$(BIN)/python -m tests.benchmarks.bench --size $(or $(SIZE),1) --rows $(or $(ROWS),500000) \
	  $(if $(GROUP),--groups $(GROUP)) --only "$(ONLY)" --json $(or $(JSON),bench.json)

$(DUCKDB): $(INSTALLED)
	@$(BIN)/uv pip install -q --python $(BIN)/python duckdb==2.0.0 || $(BIN)/python -m pip install -q duckdb==2.0.0
	@touch $@

chaos: $(READY) ## Do in N histories of ten acts what people do to a pipeline, in any order, with SEED; each is compared with an oracle; REFRESHES=3 instead: histories for each query that is refreshed
	@$(BIN)/sluice jars fetch core kafka broker jdbc
	@SLUICE_CHAOS=$(or $(N),200) SLUICE_CHAOS_SEED=$(or $(SEED),20260101) SLUICE_REFRESHES=$(REFRESHES) SLUICE_SEED=$(or $(SEED),20260101) \
	  $(BIN)/python -m pytest -q -s --tb=short -p no:logging $(if $(REFRESHES),tests/spark/test_refresh.py,tests/crash/test_operator.py)

crash: $(READY) ## Kill N runs, KAFKA_KILLS from Kafka, JOIN_KILLS of a join, SESSION_KILLS of sessions, REFRESH_KILLS of a chain of refreshed steps and SUPERVISORS of Airflow's at random moments, race RACES pairs of runs, and compare the tables
	@$(BIN)/sluice jars fetch core kafka broker jdbc
	@SLUICE_CRASH_SIZE=$(or $(N),$(SIZE),50) SLUICE_RACES=$(or $(RACES),12) SLUICE_SUPERVISOR_KILLS=$(or $(SUPERVISORS),4) SLUICE_CRASH_SEED=$(or $(SEED),20260101) \
	  SLUICE_KAFKA_KILLS=$(or $(KAFKA_KILLS),30) SLUICE_JOIN_KILLS=$(or $(JOIN_KILLS),20) \
	  SLUICE_SESSION_KILLS=$(or $(SESSION_KILLS),20) SLUICE_REFRESH_KILLS=$(or $(REFRESH_KILLS),20) \
	  $(BIN)/python -m pytest -q -s tests/crash/test_kills.py tests/crash/test_kafka_kills.py tests/crash/test_join_kills.py tests/crash/test_session_kills.py tests/crash/test_refresh_kills.py tests/crash/test_races.py tests/e2e/test_killed_supervisor.py

cuts: $(READY) ## Cut EXAMPLES drawn backlogs and DAYS retail files over batches and runs in every way, and compare with plain computations
	@SLUICE_EXAMPLES=$(or $(EXAMPLES),1000) SLUICE_DAYS=$(or $(DAYS),200) \
	  $(BIN)/python -m pytest -q -s tests/spark/test_law_2_any_cut.py tests/spark/test_retail.py

lint: $(INSTALLED) ## Check style, format, types and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check include tests dags jobs
	@$(BIN)/mypy

schema: $(INSTALLED) ## Write the JSON Schema that editors complete pipeline files from
	$(BIN)/sluice schema > include/pipelines/pipeline.schema.json

lock: $(INSTALLED) ## Resolve requirements.txt into requirements.lock
	$(BIN)/uv pip compile requirements.txt -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --custom-compile-command "make lock, which resolves requirements.txt" -o requirements.lock

clean: ## Remove the virtual environment and everything the demo and the tests made
	rm -rf .venv .sluice/demo .sluice/demos .pytest_cache .ruff_cache .mypy_cache .hypothesis build include/*.egg-info spark-warehouse
