# make demo [SOURCE=/folder] [CRASH=1]   deposits real files over HTTP, mends one that fails, shows both reports
# make demo-monitor                      checks 200 services of a real MapServer twice, and mails what changed
# make demo-receivers                    detects in archives of simulated receivers, and mends a bug
# make test                              every test, linter and type check
# make long                              every test in its long form
# make bench, make chaos                 figures; faults of every kind under load, and the table of what was lost
# make bench-peers [PEERS="--peer huey"]  Spinney beside other job queues, which are installed into build/peers
# make sim [SEEDS=100000] [SEED=12345]   that many simulated lives of clusters; one of them again
# make postgres                          the whole contract on PostgreSQL, directly and through a pooler

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
MAPSERVER := mapserver-bin gdal-bin
SEEDS  ?= 5000
SEED   ?=
SOURCE ?=
CRASH  ?=
SMTP   ?=
PEERS  ?=
export SOURCE CRASH SMTP
# Every command, node and worker is a process: without compiled files each would compile all of it for itself.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo demo-monitor demo-receivers test long lint types bench bench-peers chaos sim postgres clean
.DELETE_ON_ERROR:

help:
	@sed -n '1,/^$$/s/^# //p' Makefile

demo: $(VENV)/.runtime
	@$(BIN)/python -m examples.ingest

demo-receivers: $(VENV)/.runtime
	@$(BIN)/python -m examples.receivers

demo-monitor: $(VENV)/.runtime $(VENV)/.mapserver
	@$(BIN)/python -m examples.monitor

# The type check is one of the tests: it takes a minute, in which only one processor would work.
test: $(VENV)/.servers $(VENV)/.openapi-client
	@$(MAKE) --no-print-directory --jobs 2 lint $(VENV)/.compiled
	@$(BIN)/python -m pytest -n 4 --dist loadgroup

long: $(VENV)/.tools $(VENV)/.servers $(VENV)/.openapi-client
	@SPINNEY_LONG=1 $(BIN)/python -m pytest -n 4 --dist loadgroup --timeout 3600

lint: $(VENV)/.tools
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/lint-imports

types: $(VENV)/.tools
	@$(BIN)/mypy

bench: $(VENV)/.tools
	@$(BIN)/python -m benchmarks

bench-peers: $(VENV)/.tools build/peers/.installed
	@PYTHONPATH=tests $(BIN)/python -m benchmarks.peers $(PEERS)

chaos: $(VENV)/.tools
	@SPINNEY_LONG=1 $(BIN)/python -m pytest --timeout 3600 tests/chaos tests/node/test_database_away.py tests/store/test_lost_answers.py

sim: $(VENV)/.tools
	@PYTHONPATH=tests $(BIN)/python -m simulation $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))

postgres: $(VENV)/.tools $(VENV)/.servers
	@SPINNEY_POSTGRES=1 $(BIN)/python -m pytest -n 2 tests/contract -k postgresql
	@SPINNEY_POSTGRES=pooled $(BIN)/python -m pytest -n 2 tests/contract -k pooled

clean:
	rm -rf $(VENV) demo-out demo-monitor-out build *.egg-info

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
	@$(PIP) -e '.[ingest,server,demo]'
	@touch $@

$(VENV)/.tools: $(VENV)/.runtime
	@echo "installing the test tools"
	@$(PIP) -e '.[ingest,server,test]'
	@touch $@

# The tests' modules, compiled once and not by each of the processes that share the tests: beside the linters, in the
# time that they take on another core. What cannot be collected is told by the tests themselves.
$(VENV)/.compiled: $(VENV)/.tools
	@$(BIN)/python -m pytest --collect-only -qq > /dev/null 2>&1 || true
	@touch $@

# Servers that tests start for themselves. Without them those tests are skipped, and say why.
$(VENV)/.servers: $(VENV)/.made tests/debian-packages Makefile
	@echo "getting servers for tests from Debian's packages"
	@tests/debian-packages $(VENV)/debian pgbouncer chromium-headless-shell libarchive-tools \
	  && tests/debian-packages $(VENV)/mapserver $(MAPSERVER) && touch $(VENV)/.mapserver \
	  && tests/debian-packages $(VENV)/zookeeper zookeeper default-jre-headless && touch $@ \
	  || echo "cannot get them (is there apt, and a network?): tests that need them are skipped" >&2

# In an environment of its own: it needs an older typer than the command line.
$(VENV)/.openapi-client: $(VENV)/.made Makefile
	@echo "installing a generator of clients from OpenAPI documents"
	@$(PYTHON) -m venv $(VENV)/openapi-client \
	  && $(VENV)/openapi-client/bin/python -m pip install --quiet --disable-pip-version-check openapi-python-client==0.29.1 \
	  && touch $@ \
	  || echo "cannot install it (is there a network?): the test that needs it is skipped" >&2

# In a folder of its own: its many libraries are for no other program.
$(VENV)/.mapserver: $(VENV)/.made tests/debian-packages
	@echo "getting MapServer and GDAL from Debian's packages"
	@tests/debian-packages $(VENV)/mapserver $(MAPSERVER)
	@touch $@

# Other job queues, for `bench-peers`: none of them is for the environment of Spinney. One that cannot be installed is
# shown as missing in the table.
build/peers/.installed: $(VENV)/.made benchmarks/peers/constraints.txt benchmarks/peers/package.json
	@echo "installing the peers into build/peers"
	@mkdir -p build/peers && $(PYTHON) -m venv build/peers/venv && cp benchmarks/peers/package.json build/peers
	@for peer in 'pgqueuer[asyncpg]' procrastinate huey redis 'celery[redis]' 'dramatiq[redis]' dbos; do \
	  build/peers/venv/bin/python -m pip install --quiet --disable-pip-version-check \
	    -c benchmarks/peers/constraints.txt "$$peer" || echo "cannot install $$peer" >&2; \
	done
	@cd build/peers && npm install --silent --no-package-lock --no-audit --no-fund || echo "cannot install graphile-worker" >&2
	@tests/debian-packages build/peers/debian redis-server || echo "cannot get Redis: its peers are left out" >&2
	@touch $@
