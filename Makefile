# The whole interface: each target sets up what it needs. Only Python 3.11 or later with venv, and make, must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXAMPLE := examples/llama3-70b-1024xh100.yaml

.PHONY: help demo setup setup-dev test lint types accuracy bench fit mutants schema clean

help:
	@echo "make demo      set up and answer the main question on a real cluster, with an HTML report"
	@echo "make test      set up, lint, check types and layers, run the tests"
	@echo "make accuracy  predict every measured row and write docs/accuracy.md"
	@echo "make bench     measure speed and memory"
	@echo "make mutants   plant faults and count those that tests find (PACKAGE=workload, SAMPLE=200)"
	@echo "make fit       fit the global constants on the measured rows again"

$(VENV)/.user: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("eastwest needs Python 3.11 or later") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.dev: $(VENV)/.user
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

setup: $(VENV)/.user

setup-dev: $(VENV)/.dev

demo: setup
	$(BIN)/eastwest compare $(EXAMPLE) --html report.html
	@echo
	@echo "The report is report.html: open it in a browser; it needs no network."

lint: setup-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: setup-dev
	$(BIN)/mypy

test: lint types
	$(BIN)/python -m pytest

accuracy: setup
	$(BIN)/python tools/write_accuracy.py

fit: setup-dev
	$(BIN)/python tools/fit_collectives.py --write

mutants: setup-dev
	$(BIN)/python tools/mutants.py $(PACKAGE) --sample $(or $(SAMPLE),0)

schema: setup
	$(BIN)/eastwest init - --schema > docs/cluster.schema.json

bench: setup-dev
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/flows.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis report.html
