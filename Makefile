# make run     install into .venv and start the server: needs Python 3.11 or later with pip, nothing else
# make check   formatting, lint, types, architecture and quick tests: before every commit
# make test    everything that is checked, the built wheel included
# make explore tests of what holds of all values, with new values each time; what fails says how to run it again
# make docs    write the reference pages and the client's methods anew

PYTHON ?= $(shell command -v python3.11 || command -v python3)
CONTRACT ?= ../shared/contract
DATA ?= ../shared/data
WORKERS ?= 2
BIN := .venv/bin
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist worksteal
SOURCES := src tests benchmarks docs .ci

# What Python has compiled is kept: many processes begin in a run.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run check static quick test ready slow explore clients browser wheel bench-quality bench-profiles bench-structured bench-speed docs clean

run: .venv/.runs
	$(BIN)/loom serve

# Side by side: the type checker keeps to one processor.
check: .venv/.checks
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target static quick

static: .venv/.checks
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/pyright
	$(BIN)/lint-imports

quick: .venv/.checks
	$(PYTEST) -m "not slow and not clients and not browser"

# What later tests need is installed meanwhile. Slow tests wait for much; the wheel is built and installed beside them.
test: .venv/.checks
	$(MAKE) --no-print-directory --jobs=3 --output-sync=target static quick ready
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target slow wheel
	$(MAKE) --no-print-directory clients browser

ready: .venv/.checks
	$(BIN)/python tests/mcp_clients/setup.py
	$(BIN)/python tests/language_model/setup.py
	$(BIN)/python tests/browser/needed.py

slow: .venv/.checks
	CONTRACT=$(abspath $(CONTRACT)) $(PYTEST) -m "slow and not clients and not browser"

explore: .venv/.checks
	EXAMPLES=random $(PYTEST) -m "hypothesis and not clients and not browser"

clients: .venv/.checks
	$(BIN)/python tests/mcp_clients/setup.py
	$(BIN)/python tests/language_model/setup.py
	$(BIN)/pytest -m clients tests/mcp_clients tests/language_model

browser: .venv/.checks
	$(BIN)/python tests/browser/needed.py
	$(BIN)/pytest -m browser tests/browser

wheel: .venv/.checks
	$(BIN)/python .ci/wheel.py --contract $(abspath $(CONTRACT))

bench-quality: .venv/.checks
	$(BIN)/python benchmarks/quality.py --data $(DATA) --embedder $(or $(EMBEDDER),builtin) $(addprefix --leg ,$(LEGS))
	$(BIN)/python benchmarks/profiles.py --data $(DATA) --embedder $(or $(EMBEDDER),builtin)

bench-profiles: .venv/.checks
	$(BIN)/python benchmarks/fit_profiles.py --dry
	$(BIN)/python benchmarks/profiles.py --data $(DATA) --precision-min 0.95

bench-structured: .venv/.checks
	$(BIN)/python benchmarks/structured.py --users $(or $(USERS),10000)

bench-speed: .venv/.checks
	$(BIN)/python benchmarks/speed.py --engine $(or $(ENGINE),sqlite) --part $(or $(PART),both)
	$(BIN)/python benchmarks/structured.py

docs: .venv/.checks
	$(BIN)/python docs/generate.py

clean:
	rm -rf .venv .venvs .browser build dist src/*.egg-info
	rm -rf .pytest_cache .ruff_cache .hypothesis .import_linter_cache .schemathesis

# The stamps say that an install is done for this pyproject.toml.
.venv/.pip:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"
	touch $@

.venv/.runs: .venv/.pip pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/.checks: .venv/.runs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group test --group lint
	touch $@
