# Kente's commands: `make demo`, `make test` and `make bench`. All make the environment they need in .venv.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/pip --quiet --disable-pip-version-check

# Two test processes of one thread each beat one process of two threads: torch's small tensors do not share work well.
TEST_PROCESSES ?= 2
PYTEST_ARGS    ?=
# For instance BENCH_ARGS=--quick; docs/benchmarks.md tells more.
BENCH_ARGS     ?=

.DEFAULT_GOAL := help
.PHONY: help demo test coverage bench lint format clean

help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1|/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Kente needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; try: make PYTHON=python3.12 ...")'
	@echo "Installing Kente and its tools into $(VENV): one or two minutes the first time"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(STAMP)  ## train a translator on the embedded corpus and try it
	@$(BIN)/kente demo

test: lint  ## lint, type check, all tests
	@$(BIN)/python -c 'import sys, importlib.util as i; sys.exit(i.find_spec("g2p_en") is None)' || $(PIP) install -c constraints.txt --no-deps g2p-en || echo "no g2p-en here: the test of its weights is skipped"
	@echo "Testing"
	@OMP_NUM_THREADS=1 $(BIN)/pytest -n $(TEST_PROCESSES) --dist worksteal $(PYTEST_ARGS)

coverage: $(STAMP)  ## which lines the tests reach (they take half as long again)
	@OMP_NUM_THREADS=1 $(BIN)/pytest -n $(TEST_PROCESSES) --dist worksteal --cov --cov-report=term $(PYTEST_ARGS)

bench: $(STAMP)  ## measure Kente beside its peers (BENCH_ARGS=--quick: five minutes)
	@$(BIN)/python -m benchmarks.run $(BENCH_ARGS)

lint: $(STAMP)  ## formatting, lint rules and types
	@echo "Checking format, lint rules and types"
	@$(BIN)/ruff format --check --quiet . || { echo "make format would put this right"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary

format: $(STAMP)  ## put formatting right
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:  ## remove the environment and everything made by tools (not your runs)
	rm -rf $(VENV) build dist .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
