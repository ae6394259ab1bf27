# The two commands of a newcomer are `make study` and `make test`; both set up .venv first.
.PHONY: study test test-slow fuzz check help clean

# The first interpreter that runs and is 3.11 or 3.12; override with `make PYTHON=...`.
PYTHON ?= $(shell for p in python3.11 python3.12 python3 python; do \
  $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

help:
	@echo "make study      the main job: PauliNet's replay, rewritten, checked and counted"
	@echo "make test       lint, types and tests (but the slow ones)"
	@echo "make test-slow  the slow tests"
	@echo "make fuzz       random programs, replays and damaged files, into studies/fuzzing.json; about an hour:"
	@echo "                SEED=0 FILES=20000 PROGRAMS=400 REPLAYS=80 MINUTES=60"
	@echo "make check      lint and types only"

study: .venv/.study-installed
	$(BIN)/fusionlab apply --model paulinet --pass fuse-jvp-replay
	$(BIN)/fusionlab apply --model paulinet --pass fuse-jvp-replay --memory-budget 512MiB

# Processes that run the fast tier, each a few files at a time; WORKERS=0 runs it in one.
WORKERS ?= 2

test: check
	$(BIN)/python -m pytest -m "not slow" --numprocesses $(WORKERS) --dist loadfile

test-slow: .venv/.test-installed
	$(BIN)/python -m pytest -m slow

SEED ?= 0
FILES ?= 20000
PROGRAMS ?= 400
REPLAYS ?= 80
MINUTES ?= 60

fuzz: .venv/.test-installed
	$(BIN)/python -m tests.fuzzing --seed $(SEED) --files $(FILES) --programs $(PROGRAMS) --replays $(REPLAYS) \
	  --minutes $(MINUTES)

check: .venv/.test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "fusionlab needs Python 3.11 or 3.12; none was found. Say make PYTHON=/path/to/python" >&2; exit 2; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; \
	  echo "a virtual environment could not be made (on Debian: apt-get install python3-venv)" >&2; exit 2; }

.venv/.study-installed: pyproject.toml | .venv/bin/python
	$(PIP) --editable '.[targets,models]'
	@touch $@

.venv/.test-installed: pyproject.toml | .venv/bin/python
	$(PIP) --editable '.[targets,test]'
	@touch $@ .venv/.study-installed

clean:
	rm -rf .venv fusionlab-dump
