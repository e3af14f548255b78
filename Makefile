# make demo [SOURCE=/folder] [CRASH=1]   deposits real files, shows the report
# make test                              every test, linter and type check
# make bench, make chaos                 figures; the long kill tests
# make postgres                          the whole contract on PostgreSQL

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
SOURCE ?=
CRASH  ?=
export SOURCE CRASH

.PHONY: help demo test lint types bench chaos postgres clean
.DELETE_ON_ERROR:

help:
	@sed -n '1,4s/^# //p' Makefile

demo: $(VENV)/.runtime
	@$(BIN)/python -m spinney.apps.ingest.demo

test: lint types
	@$(BIN)/python -m pytest -n 2

lint: $(VENV)/.tools
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports

types: $(VENV)/.tools
	@$(BIN)/mypy

bench: $(VENV)/.tools
	@$(BIN)/python -m benchmarks

chaos: $(VENV)/.tools
	@SPINNEY_LONG=1 $(BIN)/python -m pytest --timeout 3600 tests/chaos

postgres: $(VENV)/.tools
	@SPINNEY_POSTGRES=1 $(BIN)/python -m pytest -n 2 tests/contract -k postgresql

clean:
	rm -rf $(VENV) demo-out build *.egg-info

# The stamps say which step has been done whole; a step that was cut off is done again.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Spinney needs Python 3.11 or later: install it, or name it with make PYTHON=python3.12." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo "Python's venv module is missing: run 'apt install python3-venv' as root, then make again." >&2; exit 1; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.made pyproject.toml constraints.txt
	@echo "installing Spinney and what it runs on"
	@$(PIP) -e .
	@touch $@

$(VENV)/.tools: $(VENV)/.runtime
	@echo "installing the test tools"
	@$(PIP) -e '.[test]'
	@touch $@
