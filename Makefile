# Two commands for everyone: `make run` and `make test`. Each installs what it needs by itself.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_READY := $(VENV)/.ready-to-run
READY := $(VENV)/.ready
FRAMEWORKS := .venv-frameworks
FRAMEWORKS_READY := $(FRAMEWORKS)/.ready
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install

# The tests start hundreds of processes: without byte code each of them would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-alone test-all test-frameworks torture lint reference docs lock vendors clean

run: $(RUN_READY)
	@$(BIN)/memoranda demo

# More processes than cores, because many tests wait.
PYTEST := $(BIN)/python -m pytest --dist worksteal

# The everyday run: no slow tests, few examples per property, and nothing is tried again.
test: $(READY)
	$(PYTEST) -n 3 -m "not slow"

# Everything: crash, concurrency and large-input tests too. A test that fails is tried once more and named: a busy
# machine must not hide what the rest says.
test-all: $(READY)
	$(PYTEST) -n 4 --durations=25 --reruns 1 -rR

# The adapters in their frameworks, and the pages about them; there is no reason to skip one here.
test-frameworks: $(FRAMEWORKS_READY)
	$(FRAMEWORKS)/bin/python -m pytest -n 4 --dist loadfile --full --reruns 1 -p tests.no_skips \
		tests/integrations/frameworks tests/docs/test_framework_pages.py

# 1,000 kills, 200 power cuts, 400 failing system calls and 500 damaged copies; and with the record on a server, 1,000
# killed clients, 50 crashes, 200 ended connections and 200 lost answers: half an hour. Needs strace.
# Then the tests that kill, with their full numbers, of which `make test-all` takes an eighth; then all tests, with every
# example of every property, and all parts on both versions of PostgreSQL.
torture: $(READY)
	$(BIN)/python -m tests.torture
	$(BIN)/python -m pytest --torture --full
	$(PYTEST) -n 4 --full --reruns 1 -rR

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_house.py

# The generated parts of docs/reference, which are committed.
reference: $(READY)
	$(BIN)/python -m tests.docs.reference

# The documentation site in site/, with llms.txt and all pages in one file; a broken link fails it.
docs: reference
	$(BIN)/python -m tests.docs.site

# What running needs: few packages. The program itself is installed in place, so that it follows the sources.
$(RUN_READY): requirements/run.lock requirements/build.lock pyproject.toml
	@echo "Installing $$(grep -c == requirements/run.lock) packages, and one to build with, into $(VENV) with $$($(PYTHON) --version)."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --require-hashes -r requirements/run.lock -r requirements/build.lock
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) --no-deps --no-build-isolation --editable .
	@echo "Ready: $(BIN)/memoranda is installed."; echo
	@touch $@

# The rest: what tests, checks and the documentation need.
$(READY): $(RUN_READY) requirements/dev.lock
	@echo "Installing what the tests need: $$(grep -c == requirements/dev.lock) packages. This takes a minute or two."
	@$(PIP) --require-hashes -r requirements/dev.lock
	@touch $@

# Agent frameworks in an environment of their own: 1 GB.
$(FRAMEWORKS_READY): requirements/frameworks.lock pyproject.toml
	@echo "Installing the agent frameworks into $(FRAMEWORKS): $$(grep -c == requirements/frameworks.lock) packages."
	@$(PYTHON) -m venv $(FRAMEWORKS)
	@$(FRAMEWORKS)/bin/python -m pip --quiet --disable-pip-version-check install \
		--no-deps --no-compile --require-hashes -r requirements/frameworks.lock
	@PATH="$(CURDIR)/$(FRAMEWORKS)/bin:$$PATH" $(FRAMEWORKS)/bin/python -m pip --quiet --disable-pip-version-check install \
		--no-deps --no-build-isolation --editable .
	@touch $@

# The locks name versions and hashes only; no address of a package registry belongs in the repository.
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--group build -o requirements/build.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		pyproject.toml -o requirements/run.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		pyproject.toml --extra models -o requirements/models.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		pyproject.toml --extra server --extra postgres -o requirements/server.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		pyproject.toml --extra models --extra zstd --extra encryption --extra onnx --extra postgres --extra server --extra client --extra telemetry --group dev -o requirements/dev.lock
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		pyproject.toml --extra models --extra postgres --extra server --extra client \
		--extra claude-agent --extra openai-agents --extra langgraph --extra langchain --extra pydantic-ai \
		--extra google-adk --extra agent-framework --extra llama-index --extra strands \
		--group frameworks -o requirements/frameworks.lock

# Vendors' real servers, installed into .cache/vendors: takes minutes, and needs the package registries.
# VENDORS="mem0 honcho" runs some of them.
vendors: $(READY)
	$(BIN)/python -m tests.acceptance.vendors.run $(VENDORS)

clean:
	rm -rf $(VENV) $(FRAMEWORKS) .hermes-venv dist site .cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
