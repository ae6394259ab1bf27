# The two commands of a newcomer are `make study` and `make test`; both set up .venv first.
.PHONY: study test test-slow full test-lowest test-newest test-middle test-codes other-codes newest-python middle-python docs fuzz check help clean

# The first interpreter that runs and is 3.11 to 3.13; override with `make PYTHON=...`.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
  $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
# With compiled modules: the oldest versions warn when they are compiled, and in tests a warning is an error.
INSTALL := -m pip --disable-pip-version-check install --quiet
PIP := $(BIN)/python $(INSTALL)

help:
	@echo "make study      the main job: PauliNet's replay, rewritten, checked and counted"
	@echo "make test       lint, types and tests (but the slow and the long ones)"
	@echo "make test-slow  the slow tests"
	@echo "make full       the long tests and whole families, before a release, into studies/full-run.json; hours"
	@echo "make fuzz       random programs, replays, integers, pairs, damaged files, into studies/fuzzing.json; an hour:"
	@echo "                SEED=0 FILES=20000 PROGRAMS=400 REPLAYS=80 INTEGERS=2000 PAIRS=100000 MINUTES=90"
	@echo "make check      lint and types only"
	@echo "make docs       the documentation as a site, in build/site; warnings are errors"
	@echo "make test-lowest, test-middle, test-newest   tests of interfaces with JAX 0.8.0, 0.9 and the newest"
	@echo "make test-codes   DeepQMC 1.3.0's training; NetKet 3.23's kinetic energy, modules of flax, haiku and equinox (Python 3.12)"
	@echo "make other-codes  their energies by their own Laplacians, folx and fusionlab, counted for an absent A100; an hour"

study: .venv/.study-installed
	$(BIN)/fusionlab apply --model paulinet --pass fuse-jvp-replay
	$(BIN)/fusionlab apply --model paulinet --pass fuse-jvp-replay --memory-budget 512MiB

# Processes that run the tests, each a few files at a time; WORKERS=0 runs them in one.
WORKERS ?= 2
# The files in the order of tests/conftest.py, the longest first, so that the processes end together.
PYTEST_OPTIONS ?=
XDIST := --numprocesses $(WORKERS) --dist loadfile
IN_ORDER := --no-loadscope-reorder
# NumPy's products in every process of the tests: threads of several wait for one another.
export OPENBLAS_NUM_THREADS ?= 1
# What XLA compiled in one tier is not compiled again in another; a changed source begins afresh.
export FUSIONLAB_TEST_CACHE ?= $(CURDIR)/build/test-cache

test: check
	$(BIN)/python -m pytest -m "not slow and not full" $(XDIST) $(IN_ORDER) $(PYTEST_OPTIONS)

test-slow: .venv/.test-installed
	$(BIN)/python -m pytest -m "slow and not full" $(XDIST) $(IN_ORDER) $(PYTEST_OPTIONS)

# With JAX 0.9, too, which CI leaves to the versions below and above it.
full: .venv/.test-installed
	$(BIN)/python -m tests.full --numprocesses $(WORKERS)
	@if [ -n "$(MIDDLE_PYTHON)" ]; then $(MAKE) test-middle; \
	  else echo "test-middle was left out: it needs Python 3.12, and none was found"; fi

SEED ?= 0
FILES ?= 20000
PROGRAMS ?= 400
REPLAYS ?= 80
INTEGERS ?= 2000
PAIRS ?= 100000
MINUTES ?= 90

fuzz: .venv/.test-installed
	$(BIN)/python -m tests.fuzzing --seed $(SEED) --files $(FILES) --programs $(PROGRAMS) --replays $(REPLAYS) \
	  --integers $(INTEGERS) --pairs $(PAIRS) --minutes $(MINUTES)

# What touches interfaces that JAX, XLA and click may change is marked ``versions``: lowering, MLIR's bindings and the
# rules of raising (cases of every op and of every pass), compiling and what XLA writes of it, Pallas, the profiler,
# JAX's primitives, and the command line. What our algorithms compute does not depend on the versions once these hold.
VERSION_TESTS = $(shell grep -rlE 'mark\.versions|import test_case' tests --include='test_*.py')
VERSION_OPTIONS = -m "versions and not slow and not full" -p no:cacheprovider $(XDIST) $(VERSION_TESTS)
# JAX 0.11 needs Python 3.12 or 3.13; override with `make NEWEST_PYTHON=...`, MIDDLE_PYTHON likewise. An interpreter on the
# PATH can be a shim of pyenv that ends with an error, and HOME can be unset or another's: pyenv's own folders are looked
# through as well.
python_of = $(shell account=$$(getent passwd "$$(id -u)" 2>/dev/null | cut -d: -f6); \
  for p in python$(1) python3 "$$PYENV_ROOT"/versions/$(1)*/bin/python "$$HOME"/.pyenv/versions/$(1)*/bin/python \
    "$$account"/.pyenv/versions/$(1)*/bin/python; do \
  "$$p" -c 'import ensurepip, sys, venv; sys.exit("%d.%d" % sys.version_info[:2] != "$(1)")' 2>/dev/null && { echo "$$p"; break; }; done)
MIDDLE_PYTHON ?= $(call python_of,3.12)
NEWEST_PYTHON ?= $(or $(call python_of,3.13),$(MIDDLE_PYTHON))

test-lowest: .venv-lowest/.installed
	.venv-lowest/bin/python -m pytest $(VERSION_OPTIONS)

# Between them: JAX 0.9, on Python 3.12.
test-middle: .venv-middle/.installed
	.venv-middle/bin/python -m pytest $(VERSION_OPTIONS)

test-newest: .venv-newest/.installed
	.venv-newest/bin/python -m pytest $(subst not slow,(newest or not slow),$(VERSION_OPTIONS))

# What these codes take decides the versions: DeepQMC pins JAX below 0.9, NetKet takes the newest that we do.
test-codes: .venv-deepqmc/.installed .venv-netket/.installed
	.venv-deepqmc/bin/python -m pytest -p no:cacheprovider tests/codes/deepqmc_training.py tests/codes/deepqmc_local_energy.py
	.venv-netket/bin/python -m pytest -p no:cacheprovider tests/codes/netket_kinetic.py
	.venv-netket/bin/python -m pytest -p no:cacheprovider tests/codes/modules.py

# Fills studies/other-codes-a100.json; what is there and of the same sources is not measured again.
other-codes: .venv-deepqmc/.targets-installed .venv-netket/.targets-installed
	.venv-deepqmc/bin/python benchmarks/other_codes.py
	.venv-netket/bin/python benchmarks/other_codes.py --markdown studies/other-codes-a100.md

newest-python:
	@echo "$(NEWEST_PYTHON)"

middle-python:
	@echo "$(MIDDLE_PYTHON)"

.venv-lowest/.installed: pyproject.toml requirements-lowest.txt
	rm -rf .venv-lowest && $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python $(INSTALL) -c requirements-lowest.txt \
	  --editable '.[targets,models]' pytest pytest-xdist hypothesis
	@touch $@

.venv-middle/.installed: JAX := 'jax>=0.9,<0.10' 'jaxlib>=0.9,<0.10' 'jax-cuda12-plugin>=0.9,<0.10'
.venv-newest/.installed: PYTHON_OF = $(NEWEST_PYTHON)
.venv-middle/.installed .venv-deepqmc/.installed .venv-netket/.installed: PYTHON_OF = $(MIDDLE_PYTHON)
.venv-middle/.installed .venv-newest/.installed: .venv-%/.installed: pyproject.toml
	@test -n "$(PYTHON_OF)" || { echo "$* needs Python 3.12 or 3.13, and none was found" >&2; exit 2; }
	rm -rf .venv-$* && $(PYTHON_OF) -m venv .venv-$*
	.venv-$*/bin/python $(INSTALL) --editable '.[targets,models]' $(JAX) \
	  pytest pytest-xdist hypothesis
	@touch $@

.venv-deepqmc/.installed: CODE := deepqmc==1.3.0 hydra-core==1.3.2
.venv-netket/.installed: CODE := netket==3.23 equinox dm-haiku folx
.venv-deepqmc/.installed .venv-netket/.installed: .venv-%/.installed: pyproject.toml
	@test -n "$(PYTHON_OF)" || { echo "$* needs Python 3.12, and none was found: say make MIDDLE_PYTHON=..." >&2; exit 2; }
	rm -rf .venv-$* && $(PYTHON_OF) -m venv .venv-$*
	.venv-$*/bin/python $(INSTALL) --editable . $(CODE) pytest hypothesis
	@touch $@

# XLA's plugin is to be of the version of the JAX that the code took.
.venv-%/.targets-installed: .venv-%/.installed
	.venv-$*/bin/python $(INSTALL) folx \
	  jax-cuda12-plugin==$$(.venv-$*/bin/python -c 'import jax; print(jax.__version__)')
	@touch $@

docs: .venv/.test-installed
	$(BIN)/python -m mkdocs build --strict --quiet

check: .venv/.test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "fusionlab needs Python 3.11 to 3.13; none was found. Say make PYTHON=/path/to/python" >&2; exit 2; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; \
	  echo "a virtual environment could not be made (on Debian: apt-get install python3-venv)" >&2; exit 2; }

.venv/.study-installed: pyproject.toml | .venv/bin/python
	$(PIP) --editable '.[targets,models]'
	@touch $@

.venv/.test-installed: pyproject.toml | .venv/bin/python
	$(PIP) --editable '.[targets,kernels,test]'
	@touch $@ .venv/.study-installed

clean:
	rm -rf .venv .venv-lowest .venv-middle .venv-newest .venv-deepqmc .venv-netket build fusionlab-dump
