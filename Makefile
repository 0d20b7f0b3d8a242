# Two commands on a fresh machine: `make demo` and `make test`. Each sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS := deploy/constraints.txt

.PHONY: demo test check chdb constraints wheel clean

demo: $(VENV)/.server
	$(BIN)/flopwatch demo $(ARGS)

test: $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses 2 --dist load --benchmark-disable $(ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

chdb: .venv-chdb/.made

wheel: $(VENV)/.dev
	$(BIN)/uv build --wheel --out-dir dist

constraints: $(VENV)/.dev
	$(BIN)/uv pip compile -q --universal --python-version 3.10 --all-extras --group dev --no-annotate \
		pyproject.toml -o $(CONSTRAINTS)

$(VENV)/.pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade 'pip>=25.1'
	touch $@

$(VENV)/.server: pyproject.toml $(CONSTRAINTS) | $(VENV)/.pip
	$(BIN)/python -m pip install -q -c $(CONSTRAINTS) -e '.[server]'
	touch $@

$(VENV)/.dev: pyproject.toml $(CONSTRAINTS) | $(VENV)/.pip
	$(BIN)/python -m pip install -q -c $(CONSTRAINTS) -e '.[server]' --group dev
	touch $@ $(VENV)/.server

.venv-chdb/.made: deploy/constraints-chdb.txt
	$(PYTHON) -m venv .venv-chdb
	.venv-chdb/bin/python -m pip install -q --no-deps -r deploy/constraints-chdb.txt
	touch $@

clean:
	rm -rf $(VENV) .venv-chdb dist .mypy_cache .ruff_cache .pytest_cache
