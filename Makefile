# Yardmaster: `make demo` shows what it does, `make test` shows that it works.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-nightly test-gpu check format bench reference site picture examples checklist clean

help:  ## List the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/.installed  ## Create the virtual environment and install Yardmaster into it

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Yardmaster needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Yardmaster into $(VENV) (once) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup  ## Compare schedulers on a built-in workload; print the table, write demo/report.html
	@$(BIN)/yardmaster demo

test: setup  ## Run the tests
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal

test-nightly: setup  ## Run the property tests with thousands of examples
	@YARDMASTER_PROPERTY_EXAMPLES=5000 $(BIN)/python -m pytest -q tests/properties

# On a machine with a GPU there may be no virtual environment, and less in it than `setup` installs.
test-gpu:  ## Run the tests of environments on a GPU, on the GPU (needs numba-cuda, torch, pytest)
	@export PYTHONPATH="src:$$PYTHONPATH"; \
	several=$$($(PYTHON) -c "import os, xdist; print('-n', min(os.cpu_count(), 8))" 2> /dev/null); \
	$(PYTHON) -m pytest -q -W default -p no:cacheprovider --confcutdir=tests/gpu $$several tests/gpu

check: setup  ## Lint, types and import layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: setup  ## Format the code
	@$(BIN)/ruff check --fix-only -q .
	@$(BIN)/ruff format .

bench: setup  ## Measure replay speed against plain Python and SimPy, side by side
	@$(BIN)/python benchmarks/run.py

reference: setup  ## Write docs/reference from the code
	@$(BIN)/python docs/build_reference.py

site: setup  ## Build the documentation as HTML into site/; a link that leads nowhere fails
	@$(BIN)/python docs/build_site.py

picture: setup  ## Draw the picture of the README
	@$(BIN)/python docs/pictures/make_picture.py

examples: setup  ## Run examples and notebooks, and write down what they print
	@for each in examples/[0-9]*.py; do echo $$each; \
		$(BIN)/python -W error $$each > examples/expected/$$(basename $$each .py).txt || exit 1; done
	@$(BIN)/python -W error examples/notebooks/run_notebook.py

checklist: setup  ## Judge the project by its checklist, row by row, and print the score
	@$(BIN)/python benchmarks/checklist.py

clean:  ## Remove what the commands above made, except the virtual environment
	rm -rf demo runs site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
